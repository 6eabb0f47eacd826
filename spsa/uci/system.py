"""What is special to an operating system, with a plain fallback where a system lacks it.

Every choice is by what the system has. What only Linux has is in `spsa.uci.linux`. `MISSING` says
which protections the fallback does without. Linux is tested; macOS and Windows were not tried.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from socket import socket, socketpair
from threading import Thread
from typing import Any

try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None  # type: ignore[assignment]

if sys.platform == "linux":
    from spsa.uci import linux

    ENGINE_ID = linux.ENGINE_ID
    Isolation = linux.Isolation
    isolation, bind_engine, hide_memory = linux.isolation, linux.bind_engine, linux.hide_memory
    orphan_reaper, kill_all_of = linux.orphan_reaper, linux.kill_all_of
else:
    ENGINE_ID = "SPSA_ENGINE"
    Isolation = object  # annotations name it, and there is none

    def isolation() -> None:
        return None

    def orphan_reaper(_folders: object = None) -> nullcontext[str]:
        return nullcontext("")

    def kill_all_of(_engine_id: str) -> None:
        pass

    def hide_memory() -> None:
        pass

    def bind_engine(_worker: int, *, isolated: bool) -> None:
        pass


CHUNK = 65_536
"""The most bytes that one look at a pipe returns."""

READABLE: int = getattr(select, "POLLIN", 1)
PASSED_ON: tuple[str, ...] = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""The variables of the worker's environment that an engine gets."""
if os.name == "nt":
    PASSED_ON += ("SYSTEMROOT", "TEMP")  # no program starts without the first

_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
_LOSSES = {
    "namespaces": (
        sys.platform == "linux",
        "engines can use the network and signal other processes",
    ),
    "orphan reaper": (
        sys.platform == "linux",
        "a killed worker does not end its engines, and nothing limits their working folders",
    ),
    "process groups": (hasattr(os, "killpg"), "what an engine has started may outlive it"),
    "rlimits": (
        resource is not None and hasattr(os, "fork"),
        "engines run without limits of memory and of the size of files",
    ),
    "user ids": (hasattr(os, "getuid"), "nothing checks who else can write the engine cache"),
}
MISSING = {name: loss for name, (is_there, loss) in _LOSSES.items() if not is_there}
"""The protections that this system lacks, and what that means."""

_BY_TOOLS = {
    "net": ("network namespaces", "engines can use the network"),
    "pid": ("PID namespaces", "engines can signal other processes of their user"),
}


def missing(isolation: Isolation | None) -> dict[str, str]:
    """What is MISSING, and what the wanted `isolation` lacks."""
    if "namespaces" in MISSING:
        return MISSING
    kinds = isolation.kinds if isolation else ()
    lacking = (words for kind, words in _BY_TOOLS.items() if kind not in kinds)
    return MISSING | {f"{name} that bwrap or unshare can make": loss for name, loss in lacking}


Waiting = Callable[[float], list[tuple[int, int]]]
"""A function that waits milliseconds until some pipes are readable, and returns those."""


class PolledPipes:
    """The kernel waits for several pipes at once."""

    read = staticmethod(os.read)

    def open(self, *readers: int) -> None:
        for reader in readers:
            os.set_blocking(reader, False)

    def close(self, *readers: int) -> None:
        pass

    def waiting(self, *readers: int | None) -> Waiting:
        poll = select.poll()
        for reader in readers:
            if reader is not None:
                poll.register(reader, READABLE)
        return poll.poll

    def wake(self, _reader: int, writer: int) -> None:
        with suppress(BlockingIOError):  # a full pipe is readable already
            os.write(writer, b"!")

    def exit_descriptor(self, pid: int) -> int | None:
        """A descriptor that is readable when the process has ended; None where there is none."""
        try:
            return os.pidfd_open(pid)
        except (AttributeError, OSError):
            return None


class PumpedPipes:
    """A thread copies each pipe into a socket, where the system can wait for sockets alone."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[socket, socket]] = {}  # of each reader: to read, to write

    def open(self, *readers: int) -> None:
        for reader in readers:
            ours, theirs = self._ends[reader] = socketpair()
            ours.setblocking(False)
            # The thread's own descriptor stays open until its read returns.
            Thread(target=_pump, args=(os.dup(reader), theirs), daemon=True).start()

    def close(self, *readers: int) -> None:
        for reader in readers:
            self._ends.pop(reader)[0].close()

    def read(self, reader: int, most: int) -> bytes:
        """The next bytes; BlockingIOError where there are none yet."""
        return self._ends[reader][0].recv(most)

    def waiting(self, *readers: int | None) -> Waiting:
        by_socket = {self._ends[reader][0]: reader for reader in readers if reader is not None}

        def wait(milliseconds: float) -> list[tuple[int, int]]:
            ready, _, _ = select.select(by_socket, [], [], milliseconds / 1000)
            return [(by_socket[each], READABLE) for each in ready]

        return wait

    def wake(self, reader: int, _writer: int) -> None:
        self._ends[reader][1].send(b"!")

    def exit_descriptor(self, _pid: int) -> None:
        return None


def _pump(reader: int, target: socket) -> None:
    with target, suppress(OSError):  # its other end has been closed
        while chunk := os.read(reader, CHUNK):
            target.sendall(chunk)
    os.close(reader)


pipes: PolledPipes | PumpedPipes = PolledPipes() if hasattr(select, "poll") else PumpedPipes()


def unblock(writer: int) -> None:
    """Let no write to a pipe wait, where the system can."""
    with suppress(AttributeError, OSError):
        os.set_blocking(writer, False)


def engine_options(
    isolation: Isolation | None, memory: int | None, file_size: int, cores: tuple[int, ...]
) -> dict[str, Any]:
    """The options of Popen for an engine: its limits, and a group apart from the terminal's."""
    if not hasattr(os, "fork"):
        return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
    worker, limits = os.getpid(), _rlimits(memory, file_size)
    as_usual = _is_scheduled_as_usual()

    def prepare() -> None:
        """In the child before exec."""
        bind_engine(worker, isolated=isolation is not None)
        for what, limit in limits:
            resource.setrlimit(what, (limit, limit))
        if cores:
            os.sched_setaffinity(0, cores)
        if as_usual:  # unlike the thread that starts it
            _schedule(os.SCHED_OTHER)

    return {"preexec_fn": prepare, **_group_options()}


def _rlimits(memory: int | None, file_size: int) -> list[tuple[int, int]]:
    """Resources and their limits for setrlimit; core files are off. Empty where there are none."""
    if resource is None:
        return []
    wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, file_size)]
    if memory is not None:
        wanted.append((resource.RLIMIT_DATA, memory))
    return [(what, _lowered(what, limit)) for what, limit in wanted]


def _lowered(what: int, limit: int) -> int:
    ceiling = resource.getrlimit(what)[1]
    return limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)


def _group_options() -> dict[str, Any]:
    """A session of its own for the engine, or with autogroups a process group of its own.

    With autogroups Linux schedules every session as a group. Every move then switches between the
    groups of engine and worker, and on busy cores a game lasts half as long again.
    """
    try:
        grouped = _AUTOGROUPS.read_text().strip() == "1"
    except OSError:
        grouped = False
    return {"process_group": 0} if grouped else {"start_new_session": True}


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that nobody has reaped yet, and its group where there are groups."""
    # For an empty group Linux raises the first of these errors, macOS the second.
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def let_engines_run_on() -> None:
    """Let this thread wait for a core instead of taking one from an engine that thinks.

    Otherwise each line that an engine writes about its search interrupts it on a busy machine. A
    worker that its owner has started with a scheduling policy of its own keeps that.
    """
    if _is_scheduled_as_usual():
        _schedule(os.SCHED_BATCH)


def _is_scheduled_as_usual() -> bool:
    """Whether the first thread has the usual policy, and another thread can have another."""
    batch = hasattr(os, "SCHED_BATCH")
    return batch and os.sched_getscheduler(os.getpid()) == os.SCHED_OTHER


def _schedule(policy: int) -> None:
    with suppress(OSError):  # a container may forbid it
        os.sched_setscheduler(0, policy, os.sched_param(0))


def lock(file: int) -> bool:
    """Try to lock an open file until it is closed; True also where no file can be locked."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def logical_cores() -> set[int]:
    """The logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def installed_memory() -> int | None:
    """Bytes of memory of the machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
