"""Starts an engine with limits, in a folder of its own, and so that it cannot outlive its worker.

An engine's working folder has a limited size and is removed when the engine has ended. Only this
folder is limited: an engine may write wherever its user may.
"""

import errno
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Self

from spsa.core.uci_options import whole_option
from spsa.errors import EngineFault
from spsa.uci import system

GIB = 2**30
MAX_BYTES = GIB
MAX_FILES = 10_000
_BLOCK = 512
_BUSY_TRIES = 40
_BUSY_PAUSE = 0.025
_PASSED_ON = ("PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TMPDIR")
"""The variables of the worker's environment that an engine gets."""


@dataclass(frozen=True, slots=True)
class WorkingFolders:
    """The folders of one worker, in `root`; each may hold `most_bytes` and `MAX_FILES` files."""

    root: Path
    most_bytes: int = MAX_BYTES

    def make(self, engine_id: str) -> Path:
        """An empty folder with this name; EngineFault where none can be made."""
        folder = self.root / engine_id
        try:
            folder.mkdir()
        except OSError as error:
            raise EngineFault(
                "cannot start", f"{folder} cannot be made: {error.strerror}"
            ) from None
        return folder

    def overfull(self) -> set[str]:
        """The ids of engines whose folders hold more than they may."""
        with suppress(OSError):
            return {folder.name for folder in self.root.iterdir() if self.is_overfull(folder)}
        return set()

    def is_overfull(self, folder: Path) -> bool:
        total = files = 0
        for place, folders, names in os.walk(folder):
            files += len(folders) + len(names)
            for name in names[:MAX_FILES]:
                with suppress(OSError):  # it has just been removed
                    total += Path(place, name).lstat().st_blocks * _BLOCK
            if total > self.most_bytes or files > MAX_FILES:
                return True
        return False


@contextmanager
def working_folders(most_bytes: int = MAX_BYTES) -> Iterator[WorkingFolders]:
    """Folders for the engines of this process."""
    # TemporaryDirectory follows links of an engine when it is removed (CVE-2023-6597)
    folders = WorkingFolders(Path(mkdtemp(prefix="spsa-engines-")), most_bytes)
    try:
        yield folders
    finally:
        rmtree(folders.root, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """An executable file, its arguments, and the options that it gets before its games."""

    name: str
    path: str
    options: Mapping[str, str]
    arguments: tuple[str, ...] = ()

    @property
    def program(self) -> tuple[str, ...]:
        return self.path, *self.arguments

    @property
    def threads(self) -> int:
        """How many cores it uses: its option `Threads`, 1 where that is not set."""
        return max(1, whole_option(self.options, "Threads"))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """The limits of one engine: bytes of memory and of each file it writes, and seconds.

    Memory is what a process can write to (RLIMIT_DATA), without mapped files such as tablebases. It
    is that of an engine with one thread; one with more takes more slots and gets their shares.
    Without `isolation` an engine has the worker's network, and without `folders` the worker's
    working folder. `worker_id` is that of the orphan reaper, if there is one.
    `start` is how long it may take for `uciok`, `ready` for `readyok`, `quit` for its exit, `depth`
    for a move with a depth limit. It hangs when it exceeds the time of a move by `grace`, or, with
    a node limit, when it searches fewer than `slowest` nodes a second.
    """

    memory: int | None = None
    file_size: int = GIB
    isolation: system.Isolation | None = None
    worker_id: str = ""
    folders: WorkingFolders | None = None
    start: float = 30.0
    ready: float = 30.0
    grace: float = 1.5
    quit: float = 1.0
    depth: float = 300.0
    slowest: float = 100.0

    def __str__(self) -> str:
        """As in the worker's row: `no network, own PIDs, rlimits`."""
        kinds = self.isolation.kinds if self.isolation else ()
        given = {"net": "no network", "pid": "own PIDs"}
        return ", ".join([*(name for kind, name in given.items() if kind in kinds), "rlimits"])

    @property
    def own_pids(self) -> bool:
        """Whether each engine has a PID namespace, with which all ends that it has started."""
        return self.isolation is not None and "pid" in self.isolation.kinds

    def of_threads(self, threads: int) -> Self:
        """The limits of an engine that takes as many slots as it has threads."""
        return self if self.memory is None else replace(self, memory=self.memory * threads)


def spawn(
    program: Sequence[str], limits: EngineLimits, engine_id: str = "", folder: Path | None = None
) -> "subprocess.Popen[bytes]":
    """The running program, with pipes for stdin, stdout and stderr.

    It and all that it starts are found by `engine_id`. `folder` is its working folder and holds its
    temporary files.
    EngineFault("cannot start") where it is missing, no program, or still being written.
    """
    added = {system.ENGINE_ID: engine_id} | ({"TMPDIR": str(folder)} if folder else {})
    inherited = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    grouped = system.has_autogroups()
    pipe, path = subprocess.PIPE, program[0]
    for _ in range(_BUSY_TRIES):
        try:
            command = limits.isolation.command(program) if limits.isolation else program
            return subprocess.Popen(
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=folder,
                env=inherited | added,
                preexec_fn=partial(_prepare, os.getpid(), limits),
                process_group=0 if grouped else None,
                start_new_session=not grouped,
            )
        except OSError as error:
            # Another thread may just fork a child that still has this fresh binary open.
            if error.errno != errno.ETXTBSY:
                raise EngineFault("cannot start", f"{path}: {error.strerror}") from None
        except subprocess.SubprocessError as error:
            raise EngineFault("cannot start", f"{path}: {error}") from None
        time.sleep(_BUSY_PAUSE)
    raise EngineFault("cannot start", f"{path}: it is still open for writing")


def _prepare(worker: int, limits: EngineLimits) -> None:
    """Called in the child that becomes an engine: it takes on its limits."""
    system.bind_engine(worker, isolated=limits.isolation is not None)
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: limits.file_size}
    if limits.memory is not None:
        wanted[resource.RLIMIT_DATA] = limits.memory
    for what, limit in wanted.items():
        ceiling = resource.getrlimit(what)[1]
        lowered = limit if ceiling == resource.RLIM_INFINITY else min(limit, ceiling)
        resource.setrlimit(what, (lowered, lowered))
