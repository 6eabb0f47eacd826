"""Starts an engine with limits, and so that it cannot outlive its worker."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self, TypedDict

from spsa.errors import EngineFault
from worker.uci.isolation import Isolation
from worker.uci.orphan_reaper import ENGINE_ID, OrphanReaper
from worker.uci.working_folders import WorkingFolders

PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""The variables of the worker's environment that an engine gets."""

GIB = 2**30
_PR_SET_PDEATHSIG = 1
_BUSY_TRIES = 20
_BUSY_PAUSE = 0.025
_AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """The limits of one engine: bytes of memory and of each file it writes, and logical cores.

    The memory is that of an engine with one thread; one with more threads takes more slots and gets
    their shares. Without `memory` it is not limited, and without `cores` it may use all of them.
    Without `isolation` it has the worker's network, and without `folders` the worker's working
    folder. Without `orphan_reaper` processes that left its process group live on.
    Memory is what a process can write to (RLIMIT_DATA), so mapped files such as tablebases do not
    count.
    """

    memory: int | None = None
    file_size: int = GIB
    cores: tuple[int, ...] = ()
    isolation: Isolation | None = None
    orphan_reaper: OrphanReaper | None = None
    folders: WorkingFolders | None = None

    def __str__(self) -> str:
        """As in the worker's row: `no network, rlimits`."""
        return "rlimits" if self.isolation is None else "no network, rlimits"

    def of_slot(self, number: int) -> Self:
        """The limits of slot `number`, which gets one core, shared with others if there are few."""
        cores = self.cores
        return replace(self, cores=(cores[number % len(cores)],)) if cores else self

    def of_threads(self, threads: int) -> Self:
        """The limits of an engine that takes as many slots as it has threads."""
        return self if self.memory is None else replace(self, memory=self.memory * threads)

    def rlimits(self) -> list[tuple[int, int]]:
        """Resources and their limits for setrlimit; core files are off."""
        wanted = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, self.file_size)]
        if self.memory is not None:
            wanted.append((resource.RLIMIT_DATA, self.memory))
        return [(what, _lowered(what, limit)) for what, limit in wanted]


def _lowered(what: int, limit: int) -> int:
    ceiling = resource.getrlimit(what)[1]
    return limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)


def spawn(
    path: str,
    limits: EngineLimits,
    engine_id: str = "",
    folder: Path | None = None,
    arguments: Sequence[str] = (),
) -> "subprocess.Popen[bytes]":
    """The running program, with pipes for stdin, stdout and stderr.

    The orphan reaper finds it and all that it starts by `engine_id`. `folder` is its working folder
    and holds its temporary files.
    EngineFault("cannot start") where it is missing, no program, or still being written.
    """
    prepare = partial(_prepare, os.getpid(), limits, limits.rlimits())
    for _ in range(_BUSY_TRIES):
        try:
            return _popen([path, *arguments], engine_id, folder, prepare)
        except OSError as error:
            # Another thread may just fork a child that still has this fresh binary open.
            if error.errno != errno.ETXTBSY:
                raise EngineFault("cannot start", f"{path}: {error.strerror}") from None
        except subprocess.SubprocessError as error:
            raise EngineFault("cannot start", f"{path}: {error}") from None
        time.sleep(_BUSY_PAUSE)
    raise EngineFault("cannot start", f"{path}: it is still open for writing")


def _popen(
    command: list[str], engine_id: str, folder: Path | None, prepare: Callable[[], None]
) -> "subprocess.Popen[bytes]":
    added = {ENGINE_ID: engine_id} if engine_id else {}
    if folder is not None:
        added["TMPDIR"] = str(folder)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        cwd=folder,
        env=clean_environment(os.environ) | added,
        preexec_fn=prepare,
        **_group_options(),
    )


class SpawnOptions(TypedDict, total=False):
    """Options that keep the terminal's signals from an engine."""

    start_new_session: bool
    process_group: int


def _group_options() -> SpawnOptions:
    """A session of its own for the engine, or with autogroups a process group of its own.

    With autogroups Linux schedules every session as a group. Every move then switches between the
    groups of engine and worker, and on busy cores a game lasts half as long again.
    """
    try:
        grouped = _AUTOGROUPS.read_text().strip() == "1"
    except OSError:
        grouped = False
    return {"process_group": 0} if grouped else {"start_new_session": True}


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in PASSED_ON if name in environment}


def _prepare(worker: int, limits: EngineLimits, rlimits: list[tuple[int, int]]) -> None:
    """In the child before exec: enter the sandbox, and ask for SIGKILL when the worker dies."""
    # Isolation first: the kernel may clear that signal when a process changes its credentials.
    if limits.isolation is not None:
        limits.isolation.enter()
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != worker:  # it died before the call
            os._exit(127)
    for what, limit in rlimits:
        resource.setrlimit(what, (limit, limit))
    if limits.cores:
        os.sched_setaffinity(0, limits.cores)
