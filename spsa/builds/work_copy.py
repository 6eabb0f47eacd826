"""A private copy of the source in which one builder at a time compiles one engine after another.

It writes only files that differ, so cargo compiles only what depends on them. Laying out the tree
also repairs what a killed builder left behind.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spsa.builds.tree import Entry, Tree, tree_at
from spsa.uci.system import lock

AHEAD_NS = 2_000_000_000
_RETRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class WorkCopy:
    """`tree` is the source with one engine's values; `target-N` is cargo's output."""

    home: Path

    @property
    def tree(self) -> Path:
        return self.home / "tree"

    @contextmanager
    def compiling(self) -> Iterator[Path]:
        """The folder that cargo compiles into; a new, empty one after a build that did not finish.

        What an interrupted compilation leaves there may never link again (seen: permanent undefined
        hidden symbols), and a cargo that outlived its master may still write to it.
        """
        unfinished = self.home / "unfinished"
        generations = sorted(self.home.glob("target-*"), key=_generation)
        last = generations[-1] if generations else self.home / "target-0"
        if unfinished.exists():
            last = self.home / f"target-{_generation(last) + 1}"
            for old in generations:
                shutil.rmtree(old, ignore_errors=True)
        unfinished.touch()
        yield last
        unfinished.unlink()

    @contextmanager
    def locked(self, wait: Callable[[float], None]) -> Iterator[None]:
        """Lock the copy; calls `wait(seconds)` between tries while another builder has it.

        The kernel drops the lock with its process, so a killed builder leaves none behind.
        """
        _remove_links(self.home)
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as file:
            while not lock(file.fileno()):
                wait(_RETRY_SECONDS)
            yield

    def lay_out(self, source: Tree, rewritten: Mapping[str, str]) -> None:
        """Make the tree equal to `source`, with the texts of `rewritten` replacing its files."""
        self.tree.mkdir(parents=True, exist_ok=True)
        present = tree_at(self.tree)
        for name in present.keys() - source.keys():
            present.pop(name).path.unlink()
        _remove_empty(self.tree)
        for name, entry in source.items():
            self._put(name, entry, rewritten.get(name), present.get(name))

    @property
    def _was_compiled(self) -> bool:
        return any(self.home.glob("target-*"))

    def _put(self, name: str, entry: Entry, text: str | None, present: Entry | None) -> None:
        content = None if entry.link is not None else _content(entry, text)
        if present is not None and _equal(present, entry, content):
            return
        draft = self.home / "draft"
        draft.unlink(missing_ok=True)
        if content is None:
            entry.copy_to(draft)
        else:
            draft.write_bytes(content)
            draft.chmod(entry.mode)
            if present is not None or self._was_compiled:
                _touch(draft, present)
        target = self.tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(target)


def _remove_links(home: Path) -> None:
    """Remove links outside of the tree: writing through one would overwrite other files."""
    if home.is_symlink():
        home.unlink()
    for path in home.glob("*"):
        if path.is_symlink():
            path.unlink()


def _generation(target: Path) -> int:
    return int(target.name.rpartition("-")[2])


def _content(entry: Entry, text: str | None) -> bytes:
    return entry.path.read_bytes() if text is None else text.encode()


def _equal(present: Entry, wanted: Entry, content: bytes | None) -> bool:
    if present.link is not None or content is None:
        return present.link == wanted.link
    return present.mode == wanted.mode and present.path.read_bytes() == content


def _touch(draft: Path, present: Entry | None) -> None:
    """Date a file later than every file that was compiled from this path before.

    Cargo recompiles files dated *after* its last compilation. Two seconds are the coarsest clock
    resolution of a file system (FAT), and the wall clock may have been set back.
    """
    last = present.path.lstat().st_mtime_ns if present is not None else 0
    date = max(time.time_ns(), last) + AHEAD_NS
    os.utime(draft, ns=(date, date))


def _remove_empty(directory: Path) -> None:
    for child in directory.iterdir():
        if child.is_dir() and not child.is_symlink():
            _remove_empty(child)
            if not any(child.iterdir()):
                child.rmdir()
