"""Starts a program so that it cannot outlive its worker, and has no more than it is given."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, TypedDict

from spsa.errors import EngineFault
from worker.uci.isolation import Isolation
from worker.uci.orphan_reaper import VARIABLE, OrphanReaper
from worker.uci.working_folders import WorkingFolders

PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""The variables an engine gets; whatever else the worker's environment holds stays there."""

GIB = 2**30
_PR_SET_PDEATHSIG = 1
_BUSY_TRIES = 20
_BUSY_PAUSE = 0.025
_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """What one engine may have: bytes of memory and of each file it writes, and logical cores.

    No memory is no limit, no cores are all of them, no isolation is the worker's own network;
    without a warden nobody looks for what has left an engine's group, and without folders engines
    work where the worker does.
    Memory is what a process can write to itself (RLIMIT_DATA), so that files that are only mapped,
    as tablebases, do not count.
    """

    memory: int | None = None
    file_size: int = GIB
    cores: tuple[int, ...] = ()
    isolation: Isolation | None = None
    orphan_reaper: OrphanReaper | None = None
    folders: WorkingFolders | None = None

    def __str__(self) -> str:
        """As a worker's row has it: `no network, rlimits`."""
        return "rlimits" if self.isolation is None else "no network, rlimits"

    def of_slot(self, number: int) -> Self:
        """The same on one core: that of slot `number`, who share them in turn if they are few."""
        cores = self.cores
        return replace(self, cores=(cores[number % len(cores)],)) if cores else self

    def limits(self) -> list[tuple[int, int]]:
        """Resources and their limits, as setrlimit takes them; a crash leaves no core file."""
        wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, self.file_size)]
        if self.memory is not None:
            wanted.append((resource.RLIMIT_DATA, self.memory))
        return [(what, _lowered(what, limit)) for what, limit in wanted]


def _lowered(what: int, limit: int) -> int:
    ceiling = resource.getrlimit(what)[1]
    return limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)


def spawn(
    path: str, confinement: EngineLimits, mark: str = "", folder: Path | None = None
) -> "subprocess.Popen[bytes]":
    """The running program, its standard streams piped, its errors unheard.

    `mark` is what a warden knows it by, and all that it starts; `folder` is where it works and puts
    its temporary files.
    EngineFault("cannot start") where it is missing, no program, or still being written.
    """
    prepare = partial(_prepare, os.getpid(), confinement, confinement.limits())
    for _ in range(_BUSY_TRIES):
        try:
            return _popen(path, mark, folder, prepare)
        except OSError as error:
            # A child that another thread is forking may hold a fresh binary open for writing.
            if error.errno != errno.ETXTBSY:
                raise EngineFault("cannot start", f"{path}: {error.strerror}") from None
        except subprocess.SubprocessError as error:
            raise EngineFault("cannot start", f"{path}: {error}") from None
        time.sleep(_BUSY_PAUSE)
    raise EngineFault("cannot start", f"{path}: it is still open for writing")


def _popen(
    path: str, mark: str, folder: Path | None, prepare: Callable[[], None]
) -> "subprocess.Popen[bytes]":
    given = {VARIABLE: mark} if mark else {}
    if folder is not None:
        given["TMPDIR"] = str(folder)
    return subprocess.Popen(
        [path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        cwd=folder,
        env=clean_environment(os.environ) | given,
        preexec_fn=prepare,
        **_apart(),
    )


class SpawnOptions(TypedDict, total=False):
    """How a program is kept out of the reach of what is typed at the worker's terminal."""

    start_new_session: bool
    process_group: int


def _apart() -> SpawnOptions:
    """A session of its own, or a process group of its own where a session would cost games.

    Where Linux makes every session a group for its scheduler, a move has to cross from the
    engine's group to the worker's and back; on busy cores a game then lasts half as long again.
    """
    try:
        grouped = _AUTOGROUPS.read_text().strip() == "1"
    except OSError:
        grouped = False
    return {"process_group": 0} if grouped else {"start_new_session": True}


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in PASSED_ON if name in environment}


def _prepare(worker: int, confinement: EngineLimits, limits: list[tuple[int, int]]) -> None:
    """In the child before exec: ask for SIGKILL on the parent's death, which may just have been."""
    # first of all: the kernel may forget that wish when a process changes its credentials
    if confinement.isolation is not None:
        confinement.isolation.enter()
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != worker:
            os._exit(127)
    for what, limit in limits:
        resource.setrlimit(what, (limit, limit))
    if confinement.cores:
        os.sched_setaffinity(0, confinement.cores)
