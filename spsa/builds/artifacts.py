"""Files by the hash of their bytes: put whole or not at all, verified at each use, evicted.

A store holds what a master has published, with an index of its engines by their build keys, or what
a worker has fetched. Both use this module, so it needs nothing but the standard library. Every hash
is taken from the opened descriptor, never from a path that may have changed meanwhile.
"""

import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from io import BufferedReader, BytesIO
from pathlib import Path

from spsa.builds.requirements import required
from spsa.errors import TuningError
from spsa.files import MAX_TEXT, content, opened, private_folder, sync_folder

MAX_BYTES = 2**30
"""Bytes of an engine: a source without an end must not fill the disk."""

_PUBLIC, _PRIVATE = 0o755, 0o700
_HASH = re.compile(r"[0-9a-f]{64}")
_DRAFT = ".draft-"
_STALE_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class HashedFile:
    """A file that hashed to `sha256`; `mark` is its file system metadata at that moment."""

    path: Path
    sha256: str
    mark: tuple[int, ...]

    @property
    def untouched(self) -> bool:
        """Whether it was not written, replaced or renamed since it was hashed.

        The kernel sets the time of the last change; not even the file's owner can.
        """
        try:
            return _mark(self.path.lstat()) == self.mark
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class BuiltEngine:
    """A published binary: `size` in bytes, `target` a triple, `bench` a node count or None.

    A machine runs it if it provides the words that it `requires`.
    """

    build_key: str
    sha256: str
    size: int
    path: Path
    target: str
    bench: int | None
    requires: tuple[str, ...] = ()


def verify(path: Path, sha256: str) -> HashedFile:
    """The file if it hashes to `sha256`; TuningError names both hashes if it does not."""
    found = _hashed(path)
    _agree(path, found.sha256, sha256)
    return found


def sha256_of(path: Path) -> str:
    """The hash of a regular file's bytes; TuningError if it is missing, a link or no file."""
    return _hashed(path).sha256


def _hashed(path: Path) -> HashedFile:
    with _opened(path) as stream:
        mark = _mark(os.fstat(stream.fileno()))
        return HashedFile(path, hashlib.file_digest(stream, "sha256").hexdigest(), mark)


def fetch(source: Path | bytes, sha256: str, cache: Path) -> HashedFile:
    """An executable copy of `source` in `cache`, a directory that only its owner can enter.

    Its bytes are hashed at every call: a damaged copy is fetched again. Raises TuningError
    with both hashes when `source` holds other bytes, and TuningError when it is missing or a
    symbolic link.
    """
    store = ArtifactStore(private_folder(cache, "the engine cache"), _PRIVATE)
    if (copy := store.get(sha256)) is not None:
        return copy
    path = store.put(source, sha256)
    if (copy := store.get(sha256)) is None:
        raise TuningError(f"{path} was changed as soon as it was written; it is not used")
    return copy


@dataclass(frozen=True, slots=True)
class ArtifactStore:
    """A folder of executable files that are named by their hashes.

    A file is there complete or not at all, and no byte of it is modified: a new one replaces its
    name. Any number of processes may share the folder. `<build key>.json` says of an engine which
    file it is.
    """

    folder: Path
    mode: int = _PUBLIC

    def get(self, sha256: str) -> HashedFile | None:
        """The file with this hash; None if it is missing or damaged."""
        try:
            return verify(self.folder / sha256, sha256)
        except TuningError:
            return None

    def put(self, source: Path | bytes, sha256: str | None = None) -> Path:
        """Copy a file into the store; TuningError if it has not the hash that was expected."""
        with self._draft() as draft:
            found = _copied(source, draft, self.mode)
            _agree(source, found, sha256 or found)
            return self._named(draft, found)

    def find(self, key: str) -> BuiltEngine | None:
        """The engine with this build key, if its bytes are here."""
        engine = self._indexed(self.folder / f"{key}.json")
        here = engine is not None and engine.build_key == key and self.get(engine.sha256)
        return engine if here else None

    def add(
        self,
        key: str,
        binary: Path,
        target: str,
        level: str | None,
        examine: Callable[[Path], int | None],
    ) -> BuiltEngine:
        """Publish an engine under `key` after `examine` has tested the copy and returned its bench.

        `level` is the level of x86-64 that it was built for, where that is known.
        """
        with self._draft() as draft:
            sha256 = _copied(binary, draft, self.mode)
            path, size = self.folder / sha256, draft.stat().st_size
            words = required(draft, level)
            engine = BuiltEngine(key, sha256, size, path, target, examine(draft), words)
            self._named(draft, sha256)
        facts = json.dumps(asdict(engine) | {"path": path.name}, indent=1, sort_keys=True)
        with self._draft() as draft:
            _copied(facts.encode(), draft, self.mode & 0o666)
            self._named(draft, f"{key}.json")
        return engine

    def evict(self, hashes: Collection[str]) -> None:
        """Remove the files with these hashes, and drafts that killed processes left."""
        for index in self.folder.glob("*.json"):
            engine = self._indexed(index)
            if engine is not None and engine.sha256 in hashes:
                index.unlink(missing_ok=True)
        for sha256 in filter(_HASH.fullmatch, hashes):
            (self.folder / sha256).unlink(missing_ok=True)
        for draft in self.folder.glob(f"{_DRAFT}*"):
            with suppress(FileNotFoundError):
                if time.time() - draft.lstat().st_mtime > _STALE_SECONDS:
                    draft.unlink()

    def _indexed(self, index: Path) -> BuiltEngine | None:
        try:
            facts = json.loads(content(index, MAX_TEXT))
            path, requires = self.folder / facts["sha256"], tuple(facts["requires"])
            return BuiltEngine(**facts | {"path": path, "requires": requires})
        except (OSError, ValueError, LookupError, TypeError):
            return None

    @contextmanager
    def _draft(self) -> Iterator[Path]:
        """A new file, which is gone at the end if it has no other name by then."""
        draft: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=_DRAFT, dir=self.folder)
            os.close(descriptor)
            draft = Path(name)
            yield draft
        except OSError as error:
            raise TuningError(f"{self.folder} cannot be written: {error.strerror}") from error
        finally:
            if draft is not None:
                draft.unlink(missing_ok=True)

    def _named(self, draft: Path, name: str) -> Path:
        path = draft.replace(self.folder / name)
        sync_folder(self.folder)
        return path


def _agree(source: Path | bytes, found: str, expected: str) -> None:
    if found != expected:
        place = "the stored binary" if isinstance(source, bytes) else source
        raise TuningError(f"{place} hashes to {found}, expected {expected}; it is not used")


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """The regular file at `path`; neither a symbolic link nor anything that would block."""
    try:
        descriptor = opened(path, follow=False)
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror
        raise TuningError(f"{path} cannot be read: {reason}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TuningError(f"{path} cannot be read: it is no regular file")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def _copied(source: Path | bytes, draft: Path, mode: int) -> str:
    """Write a copy that survives a power cut; the hash of its bytes."""
    digest, left = hashlib.sha256(), MAX_BYTES
    reading = nullcontext(BytesIO(source)) if isinstance(source, bytes) else _opened(source)
    with reading as stream, draft.open("wb") as copy:
        while chunk := stream.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise TuningError(f"an engine of more than {MAX_BYTES} bytes is not copied")
            digest.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fchmod(copy.fileno(), mode)
        os.fsync(copy.fileno())
    return digest.hexdigest()


def _mark(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
