"""Finds the files of a checkout that belong to its engine; writes nothing.

It disregards .gitignore, because a network that a build embeds is often an ignored file.
"""

import os
import posixpath
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from spsa.builds.tree import Entry
from spsa.errors import Fault, InvalidInput

CONFIGURATIONS = (".cargo/config", ".cargo/config.toml")
"""The configuration files that cargo looks for; if both exist it reads the first."""

OUTER = "outer/"
"""One directory around the crate in a copy."""

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
        above = self._above() if self.cargo else []
        outer = {OUTER * depth + name: Entry(path) for depth, (name, path) in enumerate(above)}
        prefix = OUTER * len(above)
        inner = {prefix + name: entry for name, entry in self._walk(self.source, "")}
        return outer | inner

    def _above(self) -> list[tuple[str, Path]]:
        """The configuration of each directory above, outermost first; cargo's own home is none."""
        found = (configuration(directory) for directory in reversed(self.source.parents))
        return [each for each in found if each and each[1].parent.resolve() != cargo_home()]

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


def checkout(source: Path, excluded: Collection[Path] = (), *, cargo: bool = True) -> Checkout:
    """The checkout at `source`; InvalidInput if cargo could not build a copy of it alone."""
    root = source.resolve()
    if not cargo:
        return Checkout(root, resolved(excluded), cargo=False)
    if not (root / "Cargo.toml").is_file():
        raise InvalidInput([_no_crate(source)])
    for directory in root.parents:
        if _has_member(directory, root):
            raise InvalidInput([_part_of_workspace(source, directory)])
    return Checkout(root, resolved(excluded))


def resolved(paths: Collection[Path]) -> frozenset[Path]:
    return frozenset(path.resolve() for path in paths)


def configuration(directory: Path) -> tuple[str, Path] | None:
    """Cargo's configuration file in a directory: its path from there, and its path."""
    found = ((name, directory / name) for name in CONFIGURATIONS)
    return next((each for each in found if each[1].is_file()), None)


def cargo_home() -> Path:
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").resolve()


def _link(name: str, link: Path) -> Iterator[tuple[str, Entry]]:
    """A link that stays inside is kept; one to a file outside is replaced by its content."""
    target = str(link.readlink())
    if _stays_inside(name, target):
        yield name, Entry(link, target)
    elif link.is_file():
        yield name, Entry(link)
    elif link.is_dir():
        raise InvalidInput([_outside(link)])


def _stays_inside(name: str, target: str) -> bool:
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return not posixpath.isabs(target) and landing.split("/")[0] != ".."


def _is_build_output(path: Path) -> bool:
    beside_manifest = path.name == "target" and (path.parent / "Cargo.toml").is_file()
    marks = ("CACHEDIR.TAG", "CMakeCache.txt")
    return path.is_dir() and (beside_manifest or any((path / mark).is_file() for mark in marks))


def _has_member(directory: Path, crate: Path) -> bool:
    """Whether the Cargo.toml of a directory above names the crate as one of its workspace."""
    workspace = _workspace(directory)
    relative = crate.relative_to(directory).as_posix()
    own = _workspace(crate) is not None
    named = workspace is not None and _matches(relative, workspace.get("members", ()))
    return named and not own and not _matches(relative, (workspace or {}).get("exclude", ()))


def _workspace(directory: Path) -> Mapping[str, Collection[str]] | None:
    try:
        text = (directory / "Cargo.toml").read_text(encoding="utf-8")
        return tomllib.loads(text).get("workspace")
    except (OSError, ValueError):
        return None


def _matches(relative: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(relative, posixpath.normpath(pattern)) for pattern in patterns)


def _no_crate(source: Path) -> Fault:
    return Fault(
        file=str(source),
        line=None,
        name="source_path",
        found="there is no Cargo.toml here",
        remedy="name the directory that holds the engine's Cargo.toml",
    )


def _part_of_workspace(source: Path, root: Path) -> Fault:
    return Fault(
        file=str(source),
        line=None,
        name="source_path",
        found=f"this crate is a member of the workspace {root}, whose profiles it would lose",
        remedy=f'set source_path to "{root}" and name the engine with `package`',
    )


def _outside(link: Path) -> Fault:
    return Fault(
        file=str(link),
        line=None,
        name="source_path",
        found=f"this link leads out of the source, to the directory {link.resolve()}",
        remedy="copy that directory into the source, or name a directory that holds both",
    )
