"""Starts an engine with limits, in a folder of its own, and so that it cannot outlive its worker.

An engine's working folder has a limited size and is removed when the engine has ended. Only this
folder is limited: an engine may write wherever its user may.
"""

import errno
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Self

from spsa.errors import EngineFault
from spsa.uci import system
from spsa.uci.system import ENGINE_ID, Isolation, OrphanReaper

GIB = 2**30
MAX_BYTES = GIB
MAX_FILES = 10_000
_BLOCK = 512
_BUSY_TRIES = 20
_BUSY_PAUSE = 0.025


@dataclass(frozen=True, slots=True)
class WorkingFolders:
    """The folders of one worker, in `root`; each may hold `most_bytes` and `MAX_FILES` files."""

    root: Path
    most_bytes: int = MAX_BYTES

    def make(self, engine_id: str) -> Path:
        """An empty folder for the engine with this id; EngineFault where none can be made."""
        folder = self.root / f"{engine_id or 'engine'}-{os.urandom(4).hex()}"
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise EngineFault(
                "cannot start", f"{folder} cannot be made: {error.strerror}"
            ) from None
        return folder

    def overfull(self) -> set[str]:
        """The ids of engines whose folders hold more than they may."""
        try:
            folders = [Path(entry.path) for entry in os.scandir(self.root)]
        except OSError:
            return set()
        return {each.name.rpartition("-")[0] for each in folders if self.is_overfull(each)}

    def is_overfull(self, folder: Path) -> bool:
        """Whether it holds too much; a folder that cannot be read counts as too full."""
        total = files = 0
        unseen = [str(folder)]
        try:
            while unseen and total <= self.most_bytes and files <= MAX_FILES:
                for entry in os.scandir(unseen.pop()):
                    files += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
        except FileNotFoundError:  # it has just been removed
            return False
        except OSError:
            return True
        return total > self.most_bytes or files > MAX_FILES


@contextmanager
def working_folders(
    *, wanted: bool = True, most_bytes: int = MAX_BYTES
) -> Iterator[WorkingFolders | None]:
    """Folders for the engines of this process; None leaves them in its working folder."""
    if not wanted:
        yield None
        return
    folders = WorkingFolders(Path(mkdtemp(prefix="spsa-engines-")), most_bytes)
    try:
        yield folders
    finally:
        remove(folders.root)


def remove(folder: Path) -> None:
    """Remove it and its contents, as far as possible, without following links."""
    rmtree(folder, ignore_errors=True)


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
        """As in the worker's row: `no network, own PIDs, rlimits`, then what the system lacks."""
        parts = {
            "no network": self.isolation is not None and self.isolation.namespaces,
            "own PIDs": self.has_own_pids,
            "rlimits": "rlimits" not in system.MISSING,
        }
        given = ", ".join(name for name, is_there in parts.items() if is_there)
        missing = f"missing: {', '.join(system.MISSING)}" if system.MISSING else ""
        return "; ".join(filter(None, (given, missing)))

    @property
    def has_own_pids(self) -> bool:
        """Whether each engine has a PID namespace of its own."""
        return self.isolation is not None and bool(self.isolation.wrapper)

    def of_slot(self, number: int) -> Self:
        """The limits of slot `number`, which gets one core, shared with others if there are few."""
        cores = self.cores
        return replace(self, cores=(cores[number % len(cores)],)) if cores else self

    def of_threads(self, threads: int) -> Self:
        """The limits of an engine that takes as many slots as it has threads."""
        return self if self.memory is None else replace(self, memory=self.memory * threads)

    def rlimits(self) -> list[tuple[int, int]]:
        """Resources and their limits for setrlimit; empty where the system has none."""
        return system.rlimits(self.memory, self.file_size)


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
    options = system.engine_options(limits.isolation, limits.rlimits(), limits.cores)
    words = [path, *arguments]
    for _ in range(_BUSY_TRIES):
        try:
            command = limits.isolation.command(words) if limits.isolation else words
            return _popen(command, engine_id, folder, options)
        except OSError as error:
            # Another thread may just fork a child that still has this fresh binary open.
            if error.errno != errno.ETXTBSY:
                raise EngineFault("cannot start", f"{path}: {error.strerror}") from None
        except subprocess.SubprocessError as error:
            raise EngineFault("cannot start", f"{path}: {error}") from None
        time.sleep(_BUSY_PAUSE)
    raise EngineFault("cannot start", f"{path}: it is still open for writing")


def _popen(
    command: list[str], engine_id: str, folder: Path | None, options: dict[str, Any]
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
        **options,
    )


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in system.PASSED_ON if name in environment}
