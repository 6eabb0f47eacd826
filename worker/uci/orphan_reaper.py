"""Ends what engines leave behind beside their process groups, even when their worker is killed.

Whatever an engine starts inherits its environment, and in it a mark that nothing else bears. A
small process, the warden, is told of every engine that is gone and kills who still has its mark.
The end of its pipe tells it that the worker is gone, in whatever way; then it kills all that bear
a mark of that worker or are in its engines' network namespace, which nobody leaves by accident.

It looks for marks rather than for children: a worker that adopted orphans could not tell them from
children of others in its process, and would reap those. Linux only; elsewhere there is none.
"""

import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from worker.uci.isolation import Isolation, keep_to_oneself
from worker.uci.working_folders import WorkingFolders, remove

VARIABLE = "SPSA_ENGINE"
"""The variable of an engine's environment that has its mark."""

_CHUNK = 65_536
_PATIENCE = 5.0  # seconds for what was killed to be gone, and for its children's children
_PAUSE = 0.005
_LOOK_SECONDS = 1.0  # between two looks at what engines have written
_UNHEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class OrphanReaper:
    """The worker's end of the pipe; any thread may use it."""

    def __init__(self, orders: int, worker: str) -> None:
        self._orders = orders
        self._worker = worker
        self._numbers = count(1)

    def mark(self) -> str:
        """A new mark, for one engine and all that it will start."""
        return f"{self._worker}.{next(self._numbers)}"

    def gone(self, mark: str) -> None:
        """Have all that bear `mark` killed soon; waits for nothing.

        Where the warden itself was killed, or is behind by thousands of engines, the kernel's and
        the group's end of them has to do.
        """
        with suppress(OSError):
            os.write(self._orders, f"{mark}\n".encode())


@contextmanager
def orphan_reaper(
    isolation: Isolation | None, folders: WorkingFolders | None = None
) -> Iterator[OrphanReaper | None]:
    """A warden for the engines of this process; None where there is no /proc to find them in.

    It kills an engine that has filled its working folder, too, and removes all of them when the
    worker is gone.
    To be entered before the process has threads. Leaving waits until nothing of them is left.
    """
    if sys.platform != "linux":
        yield None
        return
    worker = os.urandom(8).hex()
    heard, orders = os.pipe()
    child = os.fork()
    if child == 0:
        _live(heard, worker, isolation, folders)
    os.close(heard)
    os.set_blocking(orders, False)
    try:
        yield OrphanReaper(orders, worker)
    finally:
        os.close(orders)
        os.waitpid(child, 0)


def _live(
    heard: int, worker: str, isolation: Isolation | None, folders: WorkingFolders | None
) -> None:
    """The whole life of the warden."""
    with suppress(BaseException):
        network = None if isolation is None else os.fstat(isolation.namespaces[-1])
        _withdraw(heard)
        for marks in _orders(heard, folders):
            if marks:
                _end_all(_bearing(marks))
        _end_all(_bearing({f"{worker}."}, whole=False))
        if network is not None:
            _end_all(_inside(network))
        if folders is not None:
            remove(folders.root)
    os._exit(0)


def _withdraw(heard: int) -> None:
    """Leave the worker's terminal, its files and its objects alone, and keep its secrets."""
    os.setsid()
    keep_to_oneself()
    for number in _UNHEARD:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    os.closerange(0, heard)
    os.closerange(heard + 1, os.sysconf("SC_OPEN_MAX"))


def _orders(heard: int, folders: WorkingFolders | None) -> Iterator[set[str]]:
    """The marks of engines that are gone, or have to go, until the worker is gone."""
    rest = b""
    while True:
        if folders is not None:
            yield folders.overfull()
            if not select.select([heard], [], [], _LOOK_SECONDS)[0]:
                continue
        if not (chunk := os.read(heard, _CHUNK)):
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield {line.decode() for line in lines}


def _processes() -> list[str]:
    with os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdigit()]


def _bearing(marks: set[str], *, whole: bool = True) -> Callable[[str], bool]:
    """Whether a process has one of these marks, or one that begins so."""
    end = "\0" if whole else ""
    wanted = [f"\0{VARIABLE}={mark}{end}".encode() for mark in marks]

    def bears(pid: str) -> bool:
        environment = _environment(pid)
        return any(mark in environment for mark in wanted)

    return bears


def _environment(pid: str) -> bytes:
    """Every variable of it between two zeros; nothing of those that are dead or somebody else's."""
    try:
        return b"\0" + Path("/proc", pid, "environ").read_bytes() + b"\0"
    except OSError:
        return b""


def _inside(network: os.stat_result) -> Callable[[str], bool]:
    """Whether a process is in this network namespace."""

    def is_inside(pid: str) -> bool:
        try:
            return os.path.samestat(Path("/proc", pid, "ns/net").stat(), network)
        except OSError:
            return False

    return is_inside


def _end_all(wanted: Callable[[str], bool]) -> None:
    """Kill, and look again, until there is nobody; some may be starting others meanwhile."""
    deadline = time.monotonic() + _PATIENCE
    while found := [pid for pid in _processes() if wanted(pid)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(_PAUSE)
