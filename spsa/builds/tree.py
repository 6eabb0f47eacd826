"""Trees of files: as values with one hash, as archives, and as private copies to be compiled.

Names, execute permission, content and links count; modification times do not.
"""

import fcntl
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spsa.errors import BuildFailed, TuningError
from spsa.files import sync_folder

_AHEAD_NS = 2_000_000_000
_RETRY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree: a link to `link`, or a file like the one at `path`.

    A file has the content `text` if that is given.
    """

    path: Path
    link: str | None = None
    text: str | None = None

    @property
    def mode(self) -> int:
        return 0o755 if self.path.stat().st_mode & 0o100 else 0o644

    @property
    def content(self) -> bytes:
        return self.path.read_bytes() if self.text is None else self.text.encode()

    def equals(self, other: "Entry | None") -> bool:
        if other is None or self.link is not None or other.link is not None:
            return other is not None and self.link == other.link
        return self.mode == other.mode and self.content == other.content

    def copy_to(self, target: Path) -> None:
        """Make `target`, which does not exist; its directory does."""
        if self.link is not None:
            target.symlink_to(self.link)
        else:
            target.write_bytes(self.content)
            target.chmod(self.mode)


Tree = Mapping[str, Entry]
"""Relative path with forward slashes -> its entry."""


def tree_at(root: Path) -> dict[str, Entry]:
    """Everything below a directory; links are not followed."""
    return {path.relative_to(root).as_posix(): entry for path, entry in _entries(root)}


def _entries(directory: Path) -> Iterator[tuple[Path, Entry]]:
    for path in directory.iterdir():
        if path.is_symlink():
            yield path, Entry(path, str(path.readlink()))
        elif path.is_dir():
            yield from _entries(path)
        else:
            yield path, Entry(path)


def differences(before: Tree, now: Tree) -> tuple[str, ...]:
    """The files that were changed, added or removed."""
    names = sorted(before.keys() | now.keys())
    return tuple(n for n in names if n not in before or not before[n].equals(now.get(n)))


def archived(tree: Tree) -> bytes:
    """The tree as an archive (tar): the same bytes for the same names, modes and contents."""
    with io.BytesIO() as written:
        _archive(tree, written)
        return written.getvalue()


class _Hash(io.BytesIO):
    """A file that keeps nothing but the hash of its bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.sha256 = hashlib.sha256()

    def write(self, data: Any, /) -> int:
        self.sha256.update(data)
        return len(data)


def digest(tree: Tree) -> str:
    """The hash of the archive of a tree."""
    written = _Hash()
    _archive(tree, written)
    return written.sha256.hexdigest()


def _archive(tree: Tree, stream: io.BytesIO) -> None:
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for relative, entry in sorted(tree.items()):
            member = tarfile.TarInfo(relative)
            if entry.link is not None:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
                archive.addfile(member)
            else:
                content = entry.content
                member.size, member.mode = len(content), entry.mode
                archive.addfile(member, io.BytesIO(content))


def unpack(archive: bytes, destination: Path, most: int) -> None:
    """Unpack what `archived` made into `destination`, an empty directory.

    Raises TuningError if it is no such archive, leaves the directory, or has more than `most`
    bytes.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
            if sum(member.size for member in members) > most:
                raise TuningError("the archive of the source is too large to be unpacked")
            members.extractall(destination, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise TuningError(f"the archive of the source cannot be unpacked: {error}") from error


@contextmanager
def disk_errors_as_tuning_errors() -> Iterator[None]:
    """Turn an OSError into a TuningError that names the file."""
    try:
        yield
    except OSError as error:
        raise TuningError(f"{error.filename}: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class WorkCopy:
    """A private copy of a source in which one builder at a time compiles one engine after another.

    `tree` is the source with one engine's values; `target-N` is cargo's output. Only files that
    differ are written, so cargo compiles only what depends on them. Laying out the tree also
    repairs what a killed builder left behind.
    """

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
        last = max((_generation(target) for target in self.home.glob("target-*")), default=0)
        if unfinished.exists():
            for old in self.home.glob("target-*"):
                shutil.rmtree(old, ignore_errors=True)
            last += 1
        unfinished.touch()
        yield self.home / f"target-{last}"
        unfinished.unlink()

    @contextmanager
    def locked(self, wait: Callable[[float], None], timeout: float) -> Iterator[None]:
        """Lock the copy; calls `wait(seconds)` between tries while another builder has it.

        The kernel drops the lock with its process, so a killed builder leaves none behind. Raises
        BuildFailed after `timeout` seconds.
        """
        end = time.monotonic() + timeout
        _remove_links(self.home)
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as file:
            while not _lock(file.fileno()):
                if time.monotonic() > end:
                    raise BuildFailed(f"another builder has held {self.home} for {timeout:g} s")
                wait(_RETRY_SECONDS)
            yield

    def lay_out(self, wanted: Tree) -> None:
        """Make the copy equal to this tree."""
        self.tree.mkdir(parents=True, exist_ok=True)
        present = tree_at(self.tree)
        for name in present.keys() - wanted.keys():
            present.pop(name).path.unlink()
        _remove_empty(self.tree)
        was_compiled = any(self.home.glob("target-*"))
        for name, entry in wanted.items():
            if not entry.equals(present.get(name)):
                self._put(name, entry, present.get(name), was_compiled)

    def _put(self, name: str, entry: Entry, present: Entry | None, was_compiled: bool) -> None:
        draft, target = self.home / "draft", self.tree / name
        draft.unlink(missing_ok=True)
        entry.copy_to(draft)
        if entry.link is None and (present is not None or was_compiled):
            _touch(draft, present)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.replace(target)


@contextmanager
def becoming(folder: Path) -> Iterator[WorkCopy]:
    """A work copy whose tree becomes this folder at the end, unless another process was faster.

    Others see the whole folder or none.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as home:
        draft = WorkCopy(Path(home))
        draft.tree.mkdir()
        yield draft
        try:
            draft.tree.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        sync_folder(folder.parent)


def _remove_links(home: Path) -> None:
    """Remove links outside of the tree: writing through one would overwrite other files."""
    if home.is_symlink():
        home.unlink()
    for path in home.glob("*"):
        if path.is_symlink():
            path.unlink()


def _generation(target: Path) -> int:
    return int(target.name.rpartition("-")[2])


def _touch(draft: Path, present: Entry | None) -> None:
    """Date a file later than every file that was compiled from this path before.

    Cargo recompiles files dated *after* its last compilation. Two seconds are the coarsest clock
    resolution of a file system (FAT), and the wall clock may have been set back.
    """
    last = present.path.lstat().st_mtime_ns if present is not None else 0
    date = max(time.time_ns(), last) + _AHEAD_NS
    os.utime(draft, ns=(date, date))


def _remove_empty(directory: Path) -> None:
    for child in directory.iterdir():
        if child.is_dir() and not child.is_symlink():
            _remove_empty(child)
            if not any(child.iterdir()):
                child.rmdir()


def _lock(file: int) -> bool:
    """Try to lock an open file until it is closed."""
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
