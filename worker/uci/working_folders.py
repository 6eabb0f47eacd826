"""A working folder for each engine: what it writes there is limited, and gone when the engine is.

Only what lies in that folder is looked at: an engine may write wherever its user may.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spsa.errors import EngineFault

MOST_BYTES = 2**30
MOST_FILES = 10_000
_BLOCK = 512


@dataclass(frozen=True, slots=True)
class WorkingFolders:
    """Those of one worker, in `root`; each may hold so many bytes, and `MOST_FILES` files."""

    root: Path
    most_bytes: int = MOST_BYTES

    def make(self, mark: str) -> Path:
        """An empty folder for the engine with this mark; EngineFault where there is no room."""
        folder = self.root / f"{mark or 'engine'}-{os.urandom(4).hex()}"
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise EngineFault(
                "cannot start", f"{folder} cannot be made: {error.strerror}"
            ) from None
        return folder

    def overfull(self) -> set[str]:
        """The marks of engines that have written more than they may."""
        try:
            folders = [Path(entry.path) for entry in os.scandir(self.root)]
        except OSError:
            return set()
        return {each.name.rpartition("-")[0] for each in folders if self.is_overfull(each)}

    def is_overfull(self, folder: Path) -> bool:
        """Whether it holds too much; what cannot be looked into counts as that."""
        total = files = 0
        unseen = [str(folder)]
        try:
            while unseen and total <= self.most_bytes and files <= MOST_FILES:
                for entry in os.scandir(unseen.pop()):
                    files += 1
                    total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        unseen.append(entry.path)
        except FileNotFoundError:  # it has just been removed
            return False
        except OSError:
            return True
        return total > self.most_bytes or files > MOST_FILES


@contextmanager
def working_folders(
    *, wanted: bool = True, most_bytes: int = MOST_BYTES
) -> Iterator[WorkingFolders | None]:
    """Folders for the engines of this process; without them engines work where it works."""
    if not wanted:
        yield None
        return
    # Imported late: it takes longer to load than --help takes to print.
    from tempfile import mkdtemp

    folders = WorkingFolders(Path(mkdtemp(prefix="spsa-engines-")), most_bytes)
    try:
        yield folders
    finally:
        remove(folders.root)


def remove(folder: Path) -> None:
    """Remove it with all that is in it; links are not followed, what resists stays."""
    # Imported late: it takes longer to load than --help takes to print.
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)
