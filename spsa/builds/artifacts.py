"""Binaries by the hash of their bytes: published once, fetched into a private cache, verified.

Both the master and the workers use it, so it needs nothing but the standard library. Every hash is
taken from the opened descriptor, never from a path that may have changed meanwhile.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, BytesIO
from pathlib import Path

from spsa.errors import ArtifactMismatch, TuningError
from spsa.files import private_folder
from spsa.uci.system import opened, set_mode, sync_folder

_PROGRAM = 0o755
_PRIVATE_PROGRAM = 0o700
MAX_BYTES = 2**30
"""Bytes of an engine: a source without an end must not fill the disk."""


FILES = "files"
"""The folder beside published engines that has books and side files, named by their hashes."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file: `sha256` in hexadecimal, `size` in bytes."""

    path: Path
    sha256: str
    size: int


def sha256_of(path: Path) -> str:
    """The hash of a regular file's bytes; TuningError if it is missing, a link or no file."""
    with _opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(path: Path, sha256: str) -> None:
    """Return if the file hashes to `sha256`; ArtifactMismatch names both hashes if it does not."""
    _agree(str(path), sha256_of(path), sha256)


def shared_file(binary: Path, sha256: str) -> Path:
    """Where a file of a run is in the folder of engines that has this published binary."""
    return binary.parent.parent / FILES / sha256


def publish(binary: Path, directory: Path, name: str) -> Artifact:
    """Put a copy of `binary` at `directory/name`, whole or not at all, executable by all users.

    An existing file is never modified: the new one replaces its name, and a process that runs the
    old one keeps it. Any number of processes may publish at once.
    """
    target = directory / name
    with _opened(binary) as source, _incoming(target, _PROGRAM) as copy:
        sha256, size = _copy(source, copy)
    return Artifact(target, sha256, size)


@dataclass(frozen=True, slots=True)
class Copy:
    """A verified file: its path, and its file system metadata when it was verified."""

    path: Path
    mark: tuple[int, ...]

    @property
    def untouched(self) -> bool:
        """Whether it was not written, replaced or renamed since it was verified.

        The kernel sets the time of the last change; not even the file's owner can.
        """
        try:
            return _mark(self.path.lstat()) == self.mark
        except OSError:
            return False


def fetch(source: Path | bytes, sha256: str, cache: Path) -> Copy:
    """An executable copy of `source` in `cache`, a directory that only its owner can enter.

    The copy is named by its hash and its bytes are hashed at every call: a damaged copy is
    fetched again. Raises ArtifactMismatch with both hashes when `source` holds other bytes, and
    TuningError when it is missing or a symbolic link. Any number of processes may share a cache.
    """
    cached = private_folder(cache, "the engine cache") / sha256
    if (copy := _verified(cached, sha256)) is not None:
        return copy
    with _bytes_of(source) as stream, _incoming(cached, _PRIVATE_PROGRAM) as draft:
        found, _ = _copy(stream, draft)
        _agree(_described(source), found, sha256)
    if (copy := _verified(cached, sha256)) is None:
        raise ArtifactMismatch(f"{cached} was changed as soon as it was written; it is not used")
    return copy


def _agree(place: str, found: str, expected: str) -> None:
    if found != expected:
        raise ArtifactMismatch(f"{place} hashes to {found}, expected {expected}; it is not used")


def _described(source: Path | bytes) -> str:
    return "the stored binary" if isinstance(source, bytes) else str(source)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """The regular file at `path`; neither a symbolic link nor anything that would block."""
    try:
        descriptor = opened(path, follow=False)
    except OSError as error:
        raise TuningError(f"{path} cannot be read: {_reason(path, error)}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TuningError(f"{path} cannot be read: it is no regular file")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def _reason(path: Path, error: OSError) -> str:
    return "it is a symbolic link" if path.is_symlink() else str(error.strerror)


@contextmanager
def _bytes_of(source: Path | bytes) -> Iterator[BufferedReader | BytesIO]:
    if isinstance(source, bytes):
        yield BytesIO(source)
        return
    with _opened(source) as stream:
        yield stream


@contextmanager
def _incoming(target: Path, mode: int) -> Iterator[BufferedWriter]:
    """A new file that takes the name `target` when the block ends well, and is gone otherwise."""
    draft: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=".incoming-", dir=target.parent)
        draft = Path(name)
        with os.fdopen(descriptor, "wb") as copy:
            yield copy
            copy.flush()
            set_mode(copy.fileno(), draft, mode)
            os.fsync(copy.fileno())
        draft.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise TuningError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)


def _copy(source: BufferedReader | BytesIO, copy: BufferedWriter) -> tuple[str, int]:
    digest = hashlib.sha256()
    size = 0
    while chunk := source.read(1 << 20):
        digest.update(chunk)
        size += copy.write(chunk)
        if size > MAX_BYTES:
            raise TuningError(f"an engine of more than {MAX_BYTES} bytes is not copied")
    return digest.hexdigest(), size


def _verified(cached: Path, sha256: str) -> Copy | None:
    """The copy in the cache if it has these bytes; its metadata is that of the opened file."""
    try:
        with _opened(cached) as stream:
            mark = _mark(os.fstat(stream.fileno()))
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except TuningError:
        return None
    return Copy(cached, mark) if found == sha256 else None


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
