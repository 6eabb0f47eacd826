"""What an engine asks of its operating system, with a plain fallback for what Linux alone has.

What Linux alone has is in `spsa.uci.linux`. Linux is tested; macOS was not tried.
"""

import fcntl
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path

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


_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")


def missing(isolation: Isolation | None) -> Iterator[str]:
    """What the sandbox lacks with this isolation, and what that means."""
    kinds = isolation.kinds if isolation else ()
    tools = "namespaces that bwrap or unshare can make"
    if "net" not in kinds:
        yield f"no network {tools}: engines can use the network"
    if "pid" not in kinds:
        yield f"no PID {tools}: engines can signal other processes of their user"
    if sys.platform != "linux":
        yield (
            "no orphan reaper: a killed worker does not end its engines, and nothing limits their "
            "working folders"
        )


def preparation(
    isolation: Isolation | None, memory: int | None, file_size: int, cores: tuple[int, ...]
) -> Callable[[], None]:
    """What the child that becomes an engine does before exec: it takes on its limits."""
    worker, is_isolated, as_usual = os.getpid(), isolation is not None, _is_scheduled_as_usual()
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, file_size)]
    if memory is not None:
        limits.append((resource.RLIMIT_DATA, memory))
    limits = [(what, _lowered(what, limit)) for what, limit in limits]

    def prepare() -> None:
        bind_engine(worker, isolated=is_isolated)
        for what, limit in limits:
            resource.setrlimit(what, (limit, limit))
        if cores:
            os.sched_setaffinity(0, cores)
        if as_usual:  # unlike the thread that starts it
            _schedule(os.SCHED_OTHER)

    return prepare


def _lowered(what: int, limit: int) -> int:
    ceiling = resource.getrlimit(what)[1]
    return limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)


def has_autogroups() -> bool:
    """Whether Linux schedules every session as a group.

    Then an engine gets a process group of its own and no session: every move would switch between
    the groups of engine and worker, and on busy cores a game lasts half as long again.
    """
    with suppress(OSError):
        return _AUTOGROUPS.read_text().strip() == "1"
    return False


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that nobody has reaped yet, and its group."""
    # For an empty group Linux raises the first of these errors, macOS the second.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


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
    """Try to lock an open file until it is closed."""
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def logical_cores() -> set[int]:
    """The logical cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))
