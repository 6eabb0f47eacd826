"""A tree of files as a value, with one hash of it and copies of it.

Names, execute permission, content and links count; modification times do not.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spsa.errors import TuningError

Manifest = Mapping[str, str]
"""Relative path -> "file:<sha256>", "program:<sha256>" or "link:<where to>"."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree: a link to `link`, or the content of the file at `path`."""

    path: Path
    link: str | None = None

    @property
    def mode(self) -> int:
        return 0o755 if self.path.stat().st_mode & 0o100 else 0o644

    def fingerprint(self) -> str:
        if self.link is not None:
            return f"link:{self.link}"
        with self.path.open("rb") as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        return f"{'program' if self.mode == 0o755 else 'file'}:{content}"

    def copy_to(self, target: Path) -> None:
        """Make `target`, which does not exist; its directory does."""
        if self.link is not None:
            target.symlink_to(self.link)
        else:
            target.write_bytes(self.path.read_bytes())
            target.chmod(self.mode)


Tree = Mapping[str, Entry]
"""Relative path with forward slashes -> its entry."""


def tree_at(root: Path) -> dict[str, Entry]:
    """Everything below a directory; links are not followed."""
    return {path.relative_to(root).as_posix(): entry for path, entry in _entries(root)}


def manifest(tree: Tree) -> dict[str, str]:
    """The fingerprint of every entry, to store and compare."""
    return {relative: entry.fingerprint() for relative, entry in tree.items()}


def digest(entries: Manifest) -> str:
    """One hash over all names, modes and contents."""
    canonical = json.dumps(sorted(entries.items()), separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def differences(before: Manifest, now: Manifest) -> tuple[str, ...]:
    """The files that were changed, added or removed, each labelled so."""
    return tuple(
        f"{relative} ({_change(before.get(relative), now.get(relative))})"
        for relative in sorted(before.keys() | now.keys())
        if before.get(relative) != now.get(relative)
    )


def copy(tree: Tree, destination: Path) -> None:
    """Copy the tree into `destination`, an empty directory."""
    for relative, entry in tree.items():
        target = destination / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        entry.copy_to(target)


@contextmanager
def disk_errors_as_tuning_errors() -> Iterator[None]:
    """Turn an OSError into a TuningError that names the file."""
    try:
        yield
    except OSError as error:
        raise TuningError(f"{error.filename}: {error.strerror}") from error


def _entries(directory: Path) -> Iterator[tuple[Path, Entry]]:
    for path in directory.iterdir():
        if path.is_symlink():
            yield path, Entry(path, str(path.readlink()))
        elif path.is_dir():
            yield from _entries(path)
        else:
            yield path, Entry(path)


def _change(before: str | None, now: str | None) -> str:
    if before is None:
        return "added"
    return "removed" if now is None else "changed"
