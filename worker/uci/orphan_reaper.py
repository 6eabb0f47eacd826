"""Kills processes that engines leave behind outside their process groups.

Every process that an engine starts inherits its environment, with an id that no other engine has.
The orphan reaper is a small process of its own. The worker tells it the id of every engine that has
ended, and it kills all processes that still have this id. When the worker ends, however that
happens, its pipe closes. The reaper then kills all processes with ids of this worker, and all in
the network namespace of its engines.

It searches for ids and not for children: a worker that adopts orphans could not tell them from
other children of its process. Linux only; other systems have no orphan reaper.
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

from worker.uci.isolation import Isolation, hide_memory
from worker.uci.working_folders import WorkingFolders, remove

ENGINE_ID = "SPSA_ENGINE"
"""The variable of an engine's environment that holds its id."""

_CHUNK = 65_536
_KILL_SECONDS = 5.0  # how long killed processes, and what they still started, may take to end
_KILL_PAUSE = 0.005
_FOLDER_SECONDS = 1.0  # between two checks of the working folders
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class OrphanReaper:
    """The worker's end of the pipe to the reaper; every thread may use it."""

    def __init__(self, pipe: int, worker: str) -> None:
        self._pipe = pipe
        self._worker = worker
        self._numbers = count(1)

    def new_id(self) -> str:
        """A new id, for one engine and all that it starts."""
        return f"{self._worker}.{next(self._numbers)}"

    def engine_ended(self, engine_id: str) -> None:
        """Have all processes with this id killed soon; waits for nothing.

        If the reaper itself was killed, or is thousands of engines behind, nothing more happens:
        the engine's process group is dead in any case.
        """
        with suppress(OSError):
            os.write(self._pipe, f"{engine_id}\n".encode())


@contextmanager
def orphan_reaper(
    isolation: Isolation | None, folders: WorkingFolders | None = None
) -> Iterator[OrphanReaper | None]:
    """An orphan reaper for the engines of this process; None where the system has no /proc.

    It also kills engines whose working folders are too full, and removes all folders when the
    worker has ended. Enter it before the process has threads. Leaving it waits until all processes
    of all engines have ended.
    """
    if sys.platform != "linux":
        yield None
        return
    worker = os.urandom(8).hex()
    source, pipe = os.pipe()
    child = os.fork()
    if child == 0:
        _run(source, worker, isolation, folders)
    os.close(source)
    os.set_blocking(pipe, False)
    try:
        yield OrphanReaper(pipe, worker)
    finally:
        os.close(pipe)
        os.waitpid(child, 0)


def _run(
    source: int, worker: str, isolation: Isolation | None, folders: WorkingFolders | None
) -> None:
    """The code of the reaper's process."""
    with suppress(BaseException):
        network = None if isolation is None else os.fstat(isolation.namespaces[-1])
        _detach(source)
        for ids in _ended_engines(source, folders):
            if ids:
                _kill_all(_has_id(ids))
        _kill_all(_has_id({f"{worker}."}, whole=False))
        if network is not None:
            _kill_all(_is_inside(network))
        if folders is not None:
            remove(folders.root)
    os._exit(0)


def _detach(source: int) -> None:
    """Leave the worker's terminal, close its files, and hide its secrets."""
    os.setsid()
    hide_memory()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    os.closerange(0, source)
    os.closerange(source + 1, os.sysconf("SC_OPEN_MAX"))


def _ended_engines(source: int, folders: WorkingFolders | None) -> Iterator[set[str]]:
    """The ids of engines that have ended or must end, until the worker has ended."""
    rest = b""
    while True:
        if folders is not None:
            yield folders.overfull()
            if not select.select([source], [], [], _FOLDER_SECONDS)[0]:
                continue
        if not (chunk := os.read(source, _CHUNK)):
            return
        *lines, rest = (rest + chunk).split(b"\n")
        yield {line.decode() for line in lines}


def _processes() -> list[str]:
    with os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdigit()]


def _has_id(ids: set[str], *, whole: bool = True) -> Callable[[str], bool]:
    """Whether a process has one of these ids, or one that begins with it."""
    end = "\0" if whole else ""
    wanted = [f"\0{ENGINE_ID}={engine_id}{end}".encode() for engine_id in ids]

    def has_id(pid: str) -> bool:
        environment = _environment(pid)
        return any(variable in environment for variable in wanted)

    return has_id


def _environment(pid: str) -> bytes:
    """Its variables, each between two zeros; empty for a dead process or one of another user."""
    try:
        return b"\0" + Path("/proc", pid, "environ").read_bytes() + b"\0"
    except OSError:
        return b""


def _is_inside(network: os.stat_result) -> Callable[[str], bool]:
    """Whether a process is in this network namespace."""

    def is_inside(pid: str) -> bool:
        try:
            return os.path.samestat(Path("/proc", pid, "ns/net").stat(), network)
        except OSError:
            return False

    return is_inside


def _kill_all(wanted: Callable[[str], bool]) -> None:
    """Kill these processes, and repeat until there are none: some may start others meanwhile."""
    deadline = time.monotonic() + _KILL_SECONDS
    while found := [pid for pid in _processes() if wanted(pid)]:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(_KILL_PAUSE)
