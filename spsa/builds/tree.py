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

from spsa.errors import TuningError, file_failure
from spsa.files import sync_folder

_AHEAD_NS = 2_000_000_000  # the coarsest clock resolution of a file system (FAT)
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
    def facts(self) -> tuple[int, bytes]:
        """Mode and content: 0 and the target of a link."""
        if self.link is not None:
            return 0, self.link.encode()
        content = self.path.read_bytes() if self.text is None else self.text.encode()
        return 0o755 if self.path.stat().st_mode & 0o100 else 0o644, content

    def copy_to(self, target: Path) -> None:
        """Make `target`, which does not exist; its directory does."""
        mode, content = self.facts
        if self.link is not None:
            target.symlink_to(self.link)
        else:
            target.write_bytes(content)
            target.chmod(mode)


Tree = Mapping[str, Entry]
"""Relative path with forward slashes -> its entry."""


def tree_at(root: Path, foreign: Callable[[Path], bool] = lambda _: False) -> dict[str, Entry]:
    """All files and links below a directory that are not `foreign`; links are not followed."""
    found: dict[str, Entry] = {}
    for folder, inner, names in os.walk(root):
        paths = [path for name in (*inner, *names) if not foreign(path := Path(folder, name))]
        inner[:] = [path.name for path in paths if path.is_dir()]  # it does not enter links
        for path in paths:
            link = str(path.readlink()) if path.is_symlink() else None
            if link is not None or path.is_file():
                found[path.relative_to(root).as_posix()] = Entry(path, link)
    return found


def differences(before: Tree, now: Tree) -> tuple[str, ...]:
    """The files that were changed, added or removed."""
    changed = {name for name in before.keys() & now if before[name].facts != now[name].facts}
    return tuple(sorted(changed | (before.keys() ^ now.keys())))


def archived(tree: Tree) -> bytes:
    """The tree as an archive (tar): the same bytes for the same names, modes and contents."""
    return b"".join(_archive(tree))


def digest(tree: Tree) -> str:
    """The hash of the archive of a tree."""
    found = hashlib.sha256()
    for part in _archive(tree):
        found.update(part)
    return found.hexdigest()


def _archive(tree: Tree) -> Iterator[bytes]:
    for relative, entry in sorted(tree.items()):
        member, (mode, content) = tarfile.TarInfo(relative), entry.facts
        if entry.link is not None:
            member.type, member.linkname, content = tarfile.SYMTYPE, entry.link, b""
        else:
            member.size, member.mode = len(content), mode
        yield member.tobuf(tarfile.PAX_FORMAT)
        yield content
        yield bytes(-len(content) % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def unpack(archive: bytes, folder: Path) -> None:
    """Make `folder` of what `archived` made; others see the whole folder or none.

    Raises TuningError if it is no such archive, or would write elsewhere.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as home:
        draft = Path(home, "tree")
        draft.mkdir()
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
                members.extractall(draft, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise TuningError(f"the archive of the source cannot be unpacked: {error}") from error
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was not faster
                raise
    sync_folder(folder.parent)


@contextmanager
def disk_errors_as_tuning_errors() -> Iterator[None]:
    """Turn an OSError into a TuningError that names the file."""
    try:
        yield
    except OSError as error:
        raise TuningError(file_failure(error)[0]) from error


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
        finished = self.home / "finished"
        name = finished.read_text() if finished.exists() else f"target-{time.time_ns()}"
        finished.unlink(missing_ok=True)
        for old in self.home.glob("target-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        yield self.home / name
        finished.write_text(name)

    @contextmanager
    def locked(self, wait: Callable[[float], None]) -> Iterator[None]:
        """Lock the copy; calls `wait(seconds)` between tries while another builder has it.

        The kernel drops the lock with its process, so a killed builder leaves none behind.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "lock").open("w") as file:
            while True:
                with suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                wait(_RETRY_SECONDS)
            yield

    def lay_out(self, wanted: Tree) -> None:
        """Make the copy equal to this tree, but for empty folders and a Cargo.lock that cargo made.

        Cargo recompiles files dated after its last compilation, so what is written is dated later
        than all that was compiled from its path, though the wall clock was set back.
        """
        self.tree.mkdir(parents=True, exist_ok=True)
        present = tree_at(self.tree)
        was_compiled = any(self.home.glob("target-*"))
        for name in present.keys() - wanted.keys() - {"Cargo.lock"}:
            present[name].path.unlink()
        for name, entry in wanted.items():
            old, target = present.get(name), self.tree / name
            if old is not None and old.facts == entry.facts:
                continue
            last = old.path.lstat().st_mtime_ns if old is not None else 0
            target.unlink(missing_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            entry.copy_to(target)
            if entry.link is None and (last or was_compiled):
                date = max(time.time_ns(), last) + _AHEAD_NS
                os.utime(target, ns=(date, date))
