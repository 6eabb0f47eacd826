"""One engine process: its pipes, with a deadline on every wait, and its certain end.

This module knows pipes and process groups, but not UCI.
"""

import os
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from secrets import token_hex
from shutil import rmtree

from spsa.errors import EngineFault
from spsa.text import printable
from spsa.uci import system
from spsa.uci.spawning import EngineLimits, spawn

CHUNK = 65_536
"""The most bytes that one look at a pipe returns."""

_KEPT_ERRORS = 8_192
_LAST_LINES, _MAX_LINE = 12, 160  # lines, and characters of one
_EXIT_SECONDS = 1.0
_EXIT_PAUSE = 0.002
_BY_SIGNAL = 128
_ID_BYTES = 4
_LOOK_SECONDS = 0.1  # between two looks whether a wait is to end


class Overdue(Exception):
    """A deadline passed before the engine wrote more."""


class Stopped(Exception):
    """`is_stopped` ended a wait for an engine: its game is broken off."""


class EngineProcess:
    """The pipes of one engine, with a deadline on every wait, which `is_stopped` ends, too.

    On Linux the kernel kills the engine when the *thread* that made this object ends, so a thread
    has to make it that lives as long as the worker plays.
    """

    def __init__(
        self,
        program: Sequence[str],
        limits: EngineLimits,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._limits = limits
        self._is_stopped = is_stopped
        self._id = f"{limits.worker_id}.{token_hex(_ID_BYTES)}"
        self._folder = limits.folders.make(self._id) if limits.folders else None
        with ExitStack() as stack:
            if self._folder is not None:
                stack.callback(rmtree, self._folder, ignore_errors=True)
            self._process = stack.enter_context(spawn(program, limits, self._id, self._folder))
            stack.callback(self._kill)
            self._end_all = stack.pop_all()
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._errors = (stream.fileno() for stream in streams if stream)
        for pipe in (self._in, self._out, self._errors):
            os.set_blocking(pipe, False)
        self._poller = select.poll()
        for readable in (self._out, self._errors):
            self._poller.register(readable, select.POLLIN)
        self._output_alone = [(self._out, select.POLLIN)]
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)  # so many chunks hold as many lines
        self._last_errors = b""

    def write(self, data: bytes) -> None:
        """Write `data`; an engine that leaves 64 KiB of commands unread hangs."""
        try:
            with suppress(BlockingIOError):
                if os.write(self._in, data) == len(data):
                    return
        except BrokenPipeError:
            raise self._ended() from None
        raise EngineFault("hang", "it does not read its commands")

    def read(self, output: bytearray, deadline: float) -> None:
        """Wait a while for the engine's next output and append what there is.

        Overdue when the monotonic clock reaches `deadline`, Stopped when `is_stopped`.
        """
        if self._is_stopped():
            raise Stopped
        left = max(0.0, deadline - time.monotonic())
        ready = self._poller.poll(1e3 * min(left, _LOOK_SECONDS))
        if ready != self._output_alone and not self._has_output({d for d, _ in ready}):
            if not left:
                raise Overdue
            return
        chunk = os.read(self._out, CHUNK)
        if not chunk:
            raise self._ended()
        self._last.append(chunk)
        output += chunk

    def _has_output(self, ready: set[int]) -> bool:
        """Whether there is output to read, when not the output alone is ready."""
        if self._errors in ready:
            self._hear_errors()
        return self._out in ready

    def _hear_errors(self) -> None:
        """Keep the end of what it has written to stderr."""
        with suppress(BlockingIOError):
            chunk = os.read(self._errors, CHUNK)
            self._last_errors = (self._last_errors + chunk)[-_KEPT_ERRORS:]
            if not chunk:  # it has closed stderr, which would be ready for ever
                with suppress(KeyError):  # that was seen before
                    self._poller.unregister(self._errors)

    @property
    def last_lines(self) -> str:
        """The last lines that it has written, then those to stderr, each of a limited length."""
        errors = (f"stderr: {line}" for line in _last_lines(self.last_errors))
        return "\n".join((*_last_lines(b"".join(self._last)), *errors))

    @property
    def last_errors(self) -> bytes:
        """The end of what it has written to stderr, at most `_KEPT_ERRORS` bytes."""
        self._hear_errors()  # a pipe holds no more than one chunk
        return self._last_errors

    def unread(self) -> bytes:
        """What the engine has already written, without a wait; at most one chunk."""
        try:
            return os.read(self._out, CHUNK)
        except BlockingIOError:
            return b""

    def close(self, last_command: bytes, seconds: float) -> None:
        """Send `last_command`, wait for the end of the output, then kill the group and reap."""
        deadline = time.monotonic() + seconds
        # The end of the output raises a fault, as in a game; here it is expected.
        with self._end_all, suppress(EngineFault, Overdue, Stopped):
            self.write(last_command)
            while time.monotonic() < deadline:
                self.read(bytearray(), deadline)

    def _kill(self) -> None:
        # The group is signalled before its leader is reaped, so the number still belongs to it.
        kill(self._process)
        if not self._limits.own_pids:
            system.kill_all_of(self._id)

    def _ended(self) -> EngineFault:
        """The fault of an engine whose pipes are closed."""
        # Popen.wait sleeps until a time of the clock, which fails under a clock that is shifted.
        end = time.monotonic() + _EXIT_SECONDS
        while (status := self._process.poll()) is None and time.monotonic() < end:
            time.sleep(_EXIT_PAUSE)
        if status is None:
            return EngineFault("exit", "it closed its output but still runs")
        if by := _signal_name(status):
            folders = self._limits.folders
            if by == "SIGKILL" and folders and self._folder and folders.is_overfull(self._folder):
                return EngineFault("crash", "killed because it filled its working folder")
            return EngineFault("crash", f"killed by {by}")
        if status > 0:
            return EngineFault("crash", f"exit status {status}")
        return EngineFault("exit", "it exited with status 0")


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that is not reaped yet, and its group."""
    # For an empty group Linux raises the first of these errors, macOS the second.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_lines(written: bytes) -> list[str]:
    """The last lines of this, safe to show."""
    lines = written.decode("utf-8", "replace").splitlines()
    kept = [line for line in lines if line.strip()][-_LAST_LINES:]
    return [printable(line, _MAX_LINE) for line in kept]


def _signal_name(status: int) -> str:
    # A shell, bwrap and unshare add 128 to the number of the signal that has ended their child.
    number = max(-status, status - _BY_SIGNAL)
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}" if status < 0 else ""
