"""The source of an engine: the files of its checkout, and the copy that a run is built from.

Nothing writes to the checkout. It is read to make the copy, and to compare with it. .gitignore is
disregarded, because a network that a build embeds is often an ignored file.
"""

import json
import posixpath
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from spsa.builds.cargo import cargo_home, configuration, refuse_unbuildable
from spsa.builds.tree import (
    Entry,
    Manifest,
    becoming,
    differences,
    digest,
    disk_errors_as_tuning_errors,
    manifest,
    tree_at,
)
from spsa.errors import InvalidInput, SourceChanged

_OUTER = "outer/"
"""One directory around the crate in a copy."""

_JUNK = (
    *(".git", ".hg", ".svn", ".jj", ".idea", ".vscode", ".venv", ".tuning"),
    *("__pycache__", "node_modules", ".DS_Store", "Thumbs.db", "*.sw[op]", "*~", ".#*", "#*#"),
    *("*.db", "*.db-wal", "*.db-shm", "*.db-journal"),
)
_OBJECTS = ("*.o", "*.obj", "*.d", "*.gch", "*.pch", "*.gcda", "*.gcno", "*.profraw", "*.profdata")
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Checkout:
    """A directory with a Cargo.toml; `excluded` are paths in it that are no part of the engine.

    Without `cargo` it needs none, and what an earlier make has left there is no part of it.

    Cargo's configuration files in the directories above belong to it too, because a build in the
    checkout reads them. A copy keeps them in directories around the crate, so that cargo reads them
    in the same order.
    """

    source: Path
    excluded: frozenset[Path] = frozenset()
    cargo: bool = True

    def tree(self) -> dict[str, Entry]:
        """The files of a copy of the engine; empty if the checkout is missing."""
        if not self.source.is_dir():
            return {}
        above = list(self._above()) if self.cargo else []
        outer = {_OUTER * depth + name: Entry(path) for depth, (name, path) in enumerate(above)}
        return outer | dict(self._walk(self.source, _OUTER * len(above)))

    def _above(self) -> Iterator[tuple[str, Path]]:
        """The configuration of each directory above, outermost first; cargo's own home is none."""
        for directory in reversed(self.source.parents):
            found = configuration(directory)
            if found is not None and found[1].parent.resolve() != cargo_home():
                yield found

    def _walk(self, directory: Path, above: str) -> Iterator[tuple[str, Entry]]:
        for path in sorted(directory.iterdir()):
            name = above + path.name
            if self._is_foreign(path):
                continue
            if path.is_symlink():
                yield from _link(name, path)
            elif path.is_dir():
                yield from self._walk(path, name + "/")
            elif path.is_file():
                yield name, Entry(path)

    def _is_foreign(self, path: Path) -> bool:
        patterns = _JUNK if self.cargo else _JUNK + _OBJECTS
        junk = any(fnmatch(path.name, pattern) for pattern in patterns)
        return junk or path in self.excluded or _is_build_output(path)


def _link(name: str, link: Path) -> Iterator[tuple[str, Entry]]:
    """A link that stays inside is kept; one to a file outside is replaced by its content."""
    target = str(link.readlink())
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    if not posixpath.isabs(target) and landing.split("/")[0] != "..":
        yield name, Entry(link, target)
    elif link.is_file():
        yield name, Entry(link)
    elif link.is_dir():
        found = f"this link leads out of the source, to the directory {link.resolve()}"
        remedy = "copy that directory into the source, or name a directory that holds both"
        raise InvalidInput.of(link, "source_path", found, remedy)


def _is_build_output(path: Path) -> bool:
    beside_manifest = path.name == "target" and (path.parent / "Cargo.toml").is_file()
    marks = ("CACHEDIR.TAG", "CMakeCache.txt")
    return path.is_dir() and (beside_manifest or any((path / mark).is_file() for mark in marks))


@dataclass(frozen=True, slots=True)
class Pinned:
    """A copy of an engine's source at `path`, named by the hash of its content.

    It is as the source was when the run began, and is verified at every use.
    """

    path: Path
    sha256: str
    checkout: Checkout

    @property
    def prefix(self) -> str:
        """Where the crate begins: not at the top if there was configuration above the checkout."""
        prefix = ""
        if not self.checkout.cargo:
            return prefix
        while (self.path / prefix).is_dir() and not (self.path / prefix / "Cargo.toml").is_file():
            prefix += _OUTER
        return prefix

    @property
    def crate(self) -> Path:
        return self.path / self.prefix

    def tree(self) -> dict[str, Entry]:
        return tree_at(self.path)

    def verify(self) -> None:
        """Raise SourceChanged with the file names if the pinned copy was modified."""
        if self.path.is_symlink():
            raise SourceChanged(f"the pinned source {self.path} is a symbolic link: delete it")
        now = manifest(self.tree())
        if digest(now) != self.sha256:
            changed = differences(_recorded(self.path), now)
            raise SourceChanged(
                f"the pinned source {self.path} was altered: {_listed(changed)}; delete that "
                "directory and resume: it is made again if the checkout still has its content"
            )

    def restore(self) -> None:
        """Make a deleted copy again, if the checkout still has its content.

        Raises SourceChanged with what differs.
        """
        if not self.path.exists():
            entries = manifest(self.checkout.tree())
            if digest(entries) != self.sha256:
                raise SourceChanged(self._is_gone(entries))
            self.store(entries)

    def drift(self) -> tuple[str, ...]:
        """How the checkout differs from the pinned copy, which the run goes on with."""
        with disk_errors_as_tuning_errors():
            return differences(_recorded(self.path), manifest(self.checkout.tree()))

    def store(self, entries: Manifest) -> None:
        """Copy the checkout, and write down what the copy holds."""
        with becoming(self.path) as draft:
            draft.lay_out(self.checkout.tree())
            copied = manifest(tree_at(draft.tree))
            if copied != entries:
                changed = _listed(differences(entries, copied))
                source = self.checkout.source
                raise SourceChanged(
                    f"{source} was changed while it was copied: {changed}; start again"
                )
            record = draft.home / "manifest"
            text = json.dumps(dict(sorted(entries.items())), indent=1)
            record.write_text(text, encoding="utf-8")
            record.replace(_record(self.path))

    def _is_gone(self, entries: Manifest) -> str:
        recorded = _recorded(self.path)
        changed = _listed(differences(recorded, entries)) if recorded else "its list of files too"
        return (
            f"the run's pinned source {self.path} is gone, and {self.checkout.source} has changed "
            f"since ({changed}); put it back as it was, or start a new run"
        )


def pin(
    source: Path,
    work: Path,
    exclude: Collection[Path] = (),
    *,
    cargo: bool = True,
    sha256: str | None = None,
) -> Pinned:
    """Copy the checkout's present content to `work/pinned/<its hash>`, unless it is there.

    Args:
        exclude: paths inside the checkout that are no part of the engine: params.toml, the folder
            of published engines, what a declared command makes.
        cargo: whether cargo builds it.
        sha256: the source that a run began with. A missing copy of it is made again.

    Raises:
        InvalidInput: `source` is no crate that cargo could build on its own.
        SourceChanged: the copy was altered, or is missing and the checkout has changed.
    """
    excluded = frozenset(path.resolve() for path in (*exclude, work))
    checkout, folder = Checkout(source.resolve(), excluded, cargo), work.resolve() / "pinned"
    with disk_errors_as_tuning_errors():
        if sha256 is None and cargo:
            refuse_unbuildable(checkout.source)
        entries = {} if sha256 else manifest(checkout.tree())
        name = sha256 or digest(entries)
        pinned = Pinned(folder / name, name, checkout)
        if entries and not pinned.path.is_dir():
            pinned.store(entries)
        pinned.restore()
        pinned.verify()
    return pinned


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _recorded(path: Path) -> dict[str, str]:
    """The manifest written when the copy was made; empty if it is missing too."""
    try:
        entries = json.loads(_record(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(name): str(fingerprint) for name, fingerprint in entries.items()}


def _listed(changed: tuple[str, ...]) -> str:
    more = len(changed) - _SHOWN
    return ", ".join(changed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
