"""A working folder for each engine, with a limited size, removed when the engine has ended.

Only this folder is limited: an engine may write wherever its user may.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from spsa.errors import EngineFault

MAX_BYTES = 2**30
MAX_FILES = 10_000
_BLOCK = 512


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
