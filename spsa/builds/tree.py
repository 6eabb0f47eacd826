"""A tree of files as a value, with one hash of it and copies of it.

Names, execute permission, content and links count; modification times do not.
"""

import hashlib
import io
import json
import lzma
import tarfile
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


def archived(tree: Tree) -> bytes:
    """The tree as a compressed archive (tar, xz): the same bytes for the same tree."""
    with io.BytesIO() as written:
        with tarfile.open(fileobj=written, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
            for relative, entry in sorted(tree.items()):
                _add(archive, relative, entry)
        return written.getvalue()


def _add(archive: tarfile.TarFile, relative: str, entry: Entry) -> None:
    member = tarfile.TarInfo(relative)
    if entry.link is not None:
        member.type, member.linkname = tarfile.SYMTYPE, entry.link
        archive.addfile(member)
        return
    content = entry.path.read_bytes()
    member.size, member.mode = len(content), entry.mode
    archive.addfile(member, io.BytesIO(content))


def unpack(archive: bytes, destination: Path, most: int) -> None:
    """Unpack what `archived` made into `destination`, an empty directory.

    Raises TuningError if it is no such archive, leaves the directory, or has more than `most`
    bytes.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:xz") as members:
            for member in members:
                most -= member.size
                if most < 0:
                    raise TuningError("the archive of the source is too large to be unpacked")
                members.extract(member, destination, filter="data")
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise TuningError(f"the archive of the source cannot be unpacked: {error}") from error


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
