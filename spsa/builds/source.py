"""The source of an engine: the files of its checkout, and the copy that a run is built from.

Nothing writes to the checkout. It is read to make the copy, and to compare with it. .gitignore is
disregarded, because a network that a build embeds is often an ignored file.
"""

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from spsa.builds.commands import refuse_unbuildable
from spsa.builds.tree import (
    Entry,
    archived,
    differences,
    digest,
    disk_errors_as_tuning_errors,
    tree_at,
    unpack,
)
from spsa.errors import InvalidInput, TuningError

_JUNK = (
    *(".git", ".hg", ".svn", ".jj", ".idea", ".vscode", ".venv", ".tuning"),
    *("__pycache__", "node_modules", ".DS_Store", "Thumbs.db", "*.sw[op]", "*~", ".#*", "#*#"),
    *("*.db", "*.db-wal", "*.db-shm", "*.db-journal"),
)
_OBJECTS = ("*.o", "*.obj", "*.d", "*.gch", "*.pch", "*.gcda", "*.gcno", "*.profraw", "*.profdata")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with a Cargo.toml; `excluded` are paths in it that are no part of the engine.

    Without `cargo` it needs none, and what an earlier make has left there is no part of it.
    """

    source: Path
    excluded: frozenset[Path] = frozenset()
    cargo: bool = True

    def tree(self) -> dict[str, Entry]:
        """The files of a copy of the engine; empty if the checkout is missing."""
        found = tree_at(self.source, self._is_foreign) if self.source.is_dir() else {}
        return {name: self._kept(entry) for name, entry in found.items()}

    def _kept(self, entry: Entry) -> Entry:
        """A link that stays inside is kept; one to a file outside is replaced by its content."""
        end = entry.path.resolve()
        absolute = entry.link is not None and entry.link.startswith("/")
        if entry.link is None or (end.is_relative_to(self.source) and not absolute):
            return entry
        if end.is_file():
            return Entry(entry.path)
        found = f"this link leads out of the source, to {end}, which is no file"
        remedy = "copy what is meant into the source, or name a directory that holds both"
        raise InvalidInput.of(entry.path, "source_path", found, remedy)

    def _is_foreign(self, path: Path) -> bool:
        patterns = _JUNK if self.cargo else _JUNK + _OBJECTS
        junk = any(fnmatch(path.name, pattern) for pattern in patterns)
        return junk or path in self.excluded or _is_build_output(path)


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

    def tree(self) -> dict[str, Entry]:
        return tree_at(self.path)

    def verify(self) -> None:
        """Make a missing copy again, and compare its hash.

        Raises TuningError if it was modified, or is missing and the checkout has changed.
        """
        if not self.path.exists():
            archive = archived(self.checkout.tree())
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
        with disk_errors_as_tuning_errors():
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
    with disk_errors_as_tuning_errors():
        if sha256 is None and cargo:
            refuse_unbuildable(checkout.source)
        name = sha256 or digest(checkout.tree())
        pinned = Pinned(work.resolve() / "pinned" / name, name, checkout)
        pinned.verify()
    return pinned
