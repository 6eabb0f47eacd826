"""The pipes of one engine process, a deadline on every wait, and its end, reaped for certain.

It knows pipes and process groups, and nothing of UCI.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

from spsa.errors import EngineFault
from worker.uci.spawning import EngineLimits, spawn
from worker.uci.working_folders import remove

CHUNK = 65_536
_EXIT_PATIENCE = 1.0
_LONGEST_WAIT = 2**31 - 1  # milliseconds, all that poll takes: 24 days


class Overdue(Exception):
    """A deadline passed before the engine had written anything more."""


class Stopped(Exception):
    """The alarm rang while an engine was being waited for."""


class Alarm:
    """A pipe by which one thread wakes another out of its wait for an engine."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        return self._read

    def ring(self) -> None:
        with suppress(BlockingIOError):  # a full pipe rings already
            os.write(self._write, b"!")

    def silence(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._read, CHUNK)

    @property
    def rung(self) -> bool:
        return bool(select.select([self._read], [], [], 0)[0])

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class EngineProcess:
    """The pipes of one engine, with a deadline on every wait.

    The kernel kills the engine when the *thread* that made this object ends (Linux), so it has to
    be made by a thread that lives as long as the worker plays.
    """

    def __init__(self, path: str, alarm: Alarm, confinement: EngineLimits) -> None:
        self._warden = confinement.orphan_reaper
        self._mark = self._warden.mark() if self._warden else ""
        self._folders = confinement.folders
        self._folder = self._folders.make(self._mark) if self._folders else None
        self._process = self._started(path, confinement)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._alarm = alarm.fileno()
        self._end = _exit_descriptor(self._process.pid)
        self._poll = _poll(self._out, self._alarm, self._end)
        self._glance = _poll(self._out)
        self._output_alone = [(self._out, select.POLLIN)]

    def _started(self, path: str, confinement: EngineLimits) -> "subprocess.Popen[bytes]":
        try:
            return spawn(path, confinement, self._mark, self._folder)
        except EngineFault:
            self._clear()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def write(self, data: bytes) -> None:
        """Hand `data` over; an engine that leaves 64 KiB of commands unread hangs."""
        try:
            written = os.write(self._in, data)
        except BlockingIOError:
            written = 0
        except BrokenPipeError:
            raise self._ended() from None
        if written < len(data):
            raise EngineFault("hang", "it does not read its commands")

    def read(self, heard: bytearray, deadline: float) -> None:
        """Put what the engine writes next at the end of `heard`.

        Overdue when the monotonic clock reaches `deadline`.
        """
        left = deadline - time.monotonic()
        ready = self._poll(min(left * 1000, _LONGEST_WAIT) if left > 0 else 0)
        if ready != self._output_alone:
            self._look_up({descriptor for descriptor, _ in ready})
        chunk = os.read(self._out, CHUNK)
        if not chunk:
            raise self._ended()
        heard += chunk

    def _look_up(self, ready: set[int]) -> None:
        """Where more or something else than its output is ready, see whether to read on."""
        if not ready:
            raise Overdue
        if self._alarm in ready:
            raise Stopped
        # A child that it left may hold its output open, so its end is not always the output's.
        if self._out not in ready:
            raise self._ended()

    def unread(self) -> bytes:
        """What the engine has written that nobody waited for, at most one chunk of it."""
        return os.read(self._out, CHUNK) if self._glance(0) else b""

    def close(self, farewell: bytes, timeouts: float) -> None:
        """Say `farewell`, wait for the end of the output, then kill the group and reap."""
        try:
            if timeouts > 0:
                self._part(farewell, time.monotonic() + timeouts)
        finally:
            self._kill()

    def _part(self, farewell: bytes, deadline: float) -> None:
        # The end of its output comes as a fault, as it would in a game; here it is what is wanted.
        with suppress(EngineFault, Overdue, Stopped):
            self.write(farewell)
            while time.monotonic() < deadline:
                self.read(bytearray(), deadline)

    def _kill(self) -> None:
        # The leader is not reaped before its group is signalled, so its number is still its own.
        # When nobody is left of it, Linux says so and macOS refuses.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._warden is not None:
            self._warden.gone(self._mark)
        self._clear()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        if self._end is not None:
            os.close(self._end)
            self._end = None

    def _clear(self) -> None:
        if self._folder is not None:
            remove(self._folder)
            self._folder = None

    @property
    def _is_overfull(self) -> bool:
        """Whether it wrote more into its working folder than it may."""
        if self._folders is None or self._folder is None:
            return False
        return self._folders.is_overfull(self._folder)

    def _ended(self) -> EngineFault:
        """The fault of an engine whose pipes are closed."""
        try:
            status = self._process.wait(_EXIT_PATIENCE)
        except subprocess.TimeoutExpired:
            return EngineFault("exit", "it closed its output and runs on")
        if status == -signal.SIGKILL and self._is_overfull:
            return EngineFault("crash", "killed because it filled its working folder")
        if status < 0:
            return EngineFault("crash", f"killed by {_signal_name(-status)}")
        if status > 0:
            return EngineFault("crash", f"exit status {status}")
        return EngineFault("exit", "it left with status 0")


def _poll(*descriptors: int | None) -> Callable[[float], list[tuple[int, int]]]:
    """Waits milliseconds for one of these to be readable, and says which are."""
    poll = select.poll()
    for descriptor in descriptors:
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
    return poll.poll


def _exit_descriptor(pid: int) -> int | None:
    """What becomes readable when the process ends; None where the system has no such thing."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
