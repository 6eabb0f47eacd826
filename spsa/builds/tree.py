"""The source of an engine: a tree of files with one hash, pinned for a run, copied to be compiled.

Of a tree names, execute permission, content and links count; modification times do not. Nothing
writes to a checkout. It is read to make the pinned copy, and to compare with it. .gitignore is
disregarded, because a network that a build embeds is often an ignored file.
"""

import fcntl
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from stat import S_IFLNK

from spsa.builds.commands import refuse_unbuildable
from spsa.errors import InvalidInput, TuningError, file_failure
from spsa.files import encoding_of, remove_old, sync_folder

_AHEAD_NS = 2_000_000_000  # the coarsest clock resolution of a file system (FAT)
_RETRY_SECONDS = 0.1

_JUNK = (
    *(".git", ".hg", ".svn", ".jj", ".idea", ".vscode", ".venv", ".tuning"),
    *("__pycache__", "node_modules", ".DS_Store", "Thumbs.db", "*.sw[op]", "*~", ".#*", "#*#"),
    *("*.db", "*.db-wal", "*.db-shm", "*.db-journal"),
)
_OBJECTS = ("*.o", "*.obj", "*.d", "*.gch", "*.pch", "*.gcda", "*.gcno", "*.profraw", "*.profdata")


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a tree: a link to `link`, or a file like the one at `path`.

    A file has the content `text` if that is given, in the encoding of the file at `path`.
    """

    path: Path
    link: str | None = None
    text: str | None = None

    @property
    def facts(self) -> tuple[int, bytes]:
        """Mode and content: of a link S_IFLNK and its target."""
        if self.link is not None:
            return S_IFLNK, self.link.encode()
        content = self.path.read_bytes()
        if self.text is not None:
            content = self.text.encode(encoding_of(content))
        return 0o755 if self.path.stat().st_mode & 0o100 else 0o644, content

    def copy_to(self, target: Path) -> None:
        """Make `target`, which does not exist; its directory does."""
        mode, content = self.facts
        if self.link is not None:
            target.symlink_to(self.link)
        else:
            target.write_bytes(content)
            target.chmod(mode)


Tree = Mapping[str, TreeEntry]
"""Relative path with forward slashes -> its entry."""


def tree_at(root: Path, foreign: Callable[[Path], bool] = lambda _: False) -> dict[str, TreeEntry]:
    """All files and links below a directory that are not `foreign`; links are not followed."""
    found: dict[str, TreeEntry] = {}
    for folder, inner, names in os.walk(root):
        paths = [path for name in (*inner, *names) if not foreign(path := Path(folder, name))]
        inner[:] = [path.name for path in paths if path.is_dir()]  # it does not enter links
        for path in paths:
            link = str(path.readlink()) if path.is_symlink() else None
            if link is not None or path.is_file():
                found[path.relative_to(root).as_posix()] = TreeEntry(path, link)
    return found


def differences(before: Tree, now: Tree) -> tuple[str, ...]:
    """The files that were changed, added or removed."""
    changed = {name for name in before.keys() & now if before[name].facts != now[name].facts}
    return tuple(sorted(changed | (before.keys() ^ now.keys())))


def digest(tree: Tree) -> str:
    """The hash of the archive of a tree."""
    found = hashlib.sha256()
    for part in archived(tree):
        found.update(part)
    return found.hexdigest()


def archived(tree: Tree) -> Iterator[bytes]:
    """The parts of an archive (tar): the same bytes for the same names, modes and contents."""
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
    """Make `folder` of an archive by `archived`.

    Raises TuningError if it is no such archive, or would write elsewhere.
    """
    with whole_folder(folder) as draft:
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as members:
                members.extractall(draft, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise TuningError(f"the archive of the source cannot be unpacked: {error}") from error


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A path to make `folder` at: others see the whole folder or none.

    It takes its name at the end, unless another process was faster.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_old(folder.parent, ".draft-*")  # which killed processes left
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as home:
        yield (draft := Path(home, "tree"))
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    sync_folder(folder.parent)


@contextmanager
def disk_errors_as_tuning_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into a TuningError that names the file, or the folder of one unnamed."""
    try:
        yield
    except OSError as error:
        raise TuningError(file_failure(error, folder)[0]) from error


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with a Cargo.toml; `excluded` are paths in it that are no part of the engine.

    Without `cargo` it needs none, and what an earlier make has left there is no part of it.
    """

    source: Path
    excluded: frozenset[Path] = frozenset()
    cargo: bool = True

    def tree(self) -> dict[str, TreeEntry]:
        """The files of a copy of the engine; empty if the checkout is missing."""
        found = tree_at(self.source, self._is_foreign)
        return {name: self._kept(entry) for name, entry in found.items()}

    def _kept(self, entry: TreeEntry) -> TreeEntry:
        """A link that stays inside is kept; one to a file outside is replaced by its content."""
        end = entry.path.resolve()
        absolute = entry.link is not None and entry.link.startswith("/")
        if entry.link is None or (end.is_relative_to(self.source) and not absolute):
            return entry
        if end.is_file():
            return TreeEntry(entry.path)
        found = f"this link leads out of the source, to {end}, which is no file"
        remedy = "copy what is meant into the source, or name a directory that holds both"
        raise InvalidInput.of(entry.path, "source_path", found, remedy)

    def _is_foreign(self, path: Path) -> bool:
        patterns = _JUNK if self.cargo else _JUNK + _OBJECTS
        junk = any(fnmatch(path.name, pattern) for pattern in patterns)
        leads_nowhere = path.is_symlink() and path.readlink().is_absolute() and not path.exists()
        return junk or path in self.excluded or _is_build_output(path) or leads_nowhere


def _is_build_output(path: Path) -> bool:
    beside_manifest = path.name == "target" and (path.parent / "Cargo.toml").is_file()
    marks = ("CACHEDIR.TAG", "CMakeCache.txt")
    return path.is_dir() and (beside_manifest or any((path / mark).is_file() for mark in marks))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A copy of an engine's source at `path`, named by the hash of its archive.

    It is as the source was when the run began, and is verified at every use.
    """

    path: Path
    sha256: str
    checkout: Checkout

    def tree(self) -> dict[str, TreeEntry]:
        return tree_at(self.path)

    def verify(self) -> None:
        """Make a missing copy again, and compare its hash.

        Raises TuningError if it was modified, or is missing and the checkout has changed.
        """
        if not self.path.exists():
            archive = b"".join(archived(self.checkout.tree()))
            if hashlib.sha256(archive).hexdigest() != self.sha256:
                raise TuningError(
                    f"the run's pinned source {self.path} is gone, and {self.checkout.source} "
                    "has changed since; put it back as it was, or start a new run"
                )
            unpack(archive, self.path)
        elif digest(self.tree()) != self.sha256:
            raise TuningError(
                f"the pinned source {self.path} was altered; delete that directory and resume: "
                "it is made again if the checkout still has its content"
            )

    def drift(self) -> tuple[str, ...]:
        """How the checkout differs from the pinned copy, which the run goes on with."""
        with disk_errors_as_tuning_errors(self.path):
            return differences(self.tree(), self.checkout.tree())


def pin(
    source: Path,
    work: Path,
    exclude: Collection[Path] = (),
    *,
    cargo: bool = True,
    sha256: str | None = None,
) -> Pinned:
    """Copy the checkout's present content to `work/pinned/<its hash>`, unless it is there.

    `exclude` are paths inside the checkout that are no part of the engine. A missing copy of the
    source `sha256`, that a run began with, is made again. Raises InvalidInput for a crate that
    cargo could not build on its own, and TuningError as `verify` does.
    """
    excluded = frozenset(path.resolve() for path in (*exclude, work))
    checkout = Checkout(source.resolve(), excluded, cargo)
    with disk_errors_as_tuning_errors(work):
        if sha256 is None and cargo:
            refuse_unbuildable(checkout.source)
        name = sha256 or digest(checkout.tree())
        pinned = Pinned(work.resolve() / "pinned" / name, name, checkout)
        pinned.verify()
    return pinned


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
        hidden symbols), and a cargo that outlived its master may still write to it. The tree is new
        then, too.
        """
        finished = self.home / "finished"
        if finished.exists():
            name = finished.read_text()
            finished.unlink()
        else:
            name = f"target-{time.time_ns()}"
            shutil.rmtree(self.tree, ignore_errors=True)
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

    def lay_out(self, wanted: Tree, *, keep_made: bool = False) -> None:
        """Make the copy equal to this tree, but for empty folders and a Cargo.lock that cargo made.

        With `keep_made` all that a build made stays: a build script that writes into the source is
        not run again for other values.

        Cargo recompiles files dated after its last compilation, so what is written is dated later
        than all that was compiled from its path, though the wall clock was set back.
        """
        present, laid_out = tree_at(self.tree), self.home / "laid-out"
        was_compiled = any(self.home.glob("target-*"))
        known = set(present)
        if keep_made and laid_out.exists():
            known &= set(laid_out.read_text().split("\0"))
        for name in known - wanted.keys() - {"Cargo.lock"}:
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
        laid_out.write_text("\0".join(wanted))
