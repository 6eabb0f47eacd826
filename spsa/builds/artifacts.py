"""Files by the hash of their bytes: put whole or not at all, verified at each use, evicted.

A store holds what a master has published, with an index of its engines by their build keys, or what
a worker has fetched. Both use this module, so it needs nothing but the standard library.
"""

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from spsa.builds.requirements import required
from spsa.errors import TuningError
from spsa.files import MAX_TEXT, content, private_folder, write_whole

MAX_BYTES = 2**30
"""Bytes of an engine: a source without an end must not fill the disk."""

_PUBLIC, _PRIVATE = 0o755, 0o700
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """A file that hashed to `sha256`; `mark` is its file system metadata before it was read."""

    path: Path
    sha256: str
    mark: tuple[int, int] | None

    @property
    def untouched(self) -> bool:
        """Whether it was not written, replaced or renamed since it was hashed."""
        return _mark(self.path) == self.mark


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


def sha256_of(path: Path) -> str:
    """The hash of a regular file's bytes; TuningError if it is missing, a link or no file."""
    return hashlib.sha256(_read(path)).hexdigest()


def verified_bytes(path: Path, sha256: str) -> bytes:
    """The bytes of a file that hashes to `sha256`; TuningError names both hashes if it does not."""
    data = _read(path)
    _agree(path, hashlib.sha256(data).hexdigest(), sha256)
    return data


def verify(path: Path, sha256: str) -> VerifiedFile:
    """The file if it hashes to `sha256`; TuningError if it does not."""
    mark = _mark(path)
    verified_bytes(path, sha256)
    return VerifiedFile(path, sha256, mark)


def fetch(source: Path | bytes, sha256: str, cache: Path) -> VerifiedFile:
    """An executable copy of `source` in `cache`, a directory that only its owner can enter.

    Its bytes are hashed at every call: a damaged copy is fetched again. Raises TuningError when
    `source` holds other bytes (with both hashes), is missing, or is a symbolic link.
    """
    store = ArtifactStore(private_folder(cache, "the engine cache"), _PRIVATE)
    return store.get(sha256) or store.put(source, sha256)


@dataclass(frozen=True, slots=True)
class ArtifactStore:
    """A folder of executable files that are named by their hashes.

    A file is there complete or not at all, and no byte of it is modified: a new one replaces its
    name. Any number of processes may share the folder. `<build key>.json` says of an engine which
    file it is.
    """

    folder: Path
    mode: int = _PUBLIC

    def get(self, sha256: str) -> VerifiedFile | None:
        """The file with this hash; None if it is missing or damaged."""
        try:
            return verify(self.folder / sha256, sha256)
        except TuningError:
            return None

    def put(self, source: Path | bytes, sha256: str | None = None) -> VerifiedFile:
        """Copy a file into the store; TuningError if it has not the hash that was expected."""
        place = source if isinstance(source, Path) else "the stored binary"
        data = _read(source) if isinstance(source, Path) else source
        found = hashlib.sha256(data).hexdigest()
        _agree(place, found, sha256 or found)
        self._write(found, data, self.mode)
        return verify(self.folder / found, found)

    def find(self, key: str) -> BuiltEngine | None:
        """The engine with this build key, if its bytes are here."""
        engine = self._indexed(self.folder / f"{key}.json")
        here = engine is not None and engine.build_key == key and self.get(engine.sha256)
        return engine if here else None

    def add(
        self, key: str, binary: Path, target: str, level: str | None, bench: int | None
    ) -> BuiltEngine:
        """Publish an engine under `key`, built for a `level` of x86-64 where that is known."""
        file = self.put(binary)
        size, words = file.path.stat().st_size, required(file.path, level)
        engine = BuiltEngine(key, file.sha256, size, file.path, target, bench, words)
        facts = json.dumps(asdict(engine) | {"path": file.sha256})
        self._write(f"{key}.json", facts.encode(), self.mode & 0o666)
        return engine

    def evict(self, hashes: Collection[str]) -> None:
        """Remove the files with these hashes."""
        indexed = ((path, self._indexed(path)) for path in self.folder.glob("*.json"))
        indexes = [path for path, engine in indexed if engine and engine.sha256 in hashes]
        files = (self.folder / sha256 for sha256 in filter(_HASH.fullmatch, hashes))
        for path in (*indexes, *files):
            path.unlink(missing_ok=True)

    def _indexed(self, index: Path) -> BuiltEngine | None:
        try:
            facts = json.loads(content(index, MAX_TEXT))
            path, requires = self.folder / facts["sha256"], tuple(facts["requires"])
            return BuiltEngine(**facts | {"path": path, "requires": requires})
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _write(self, name: str, data: bytes, mode: int) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(self.folder / name, data, mode)
        except OSError as error:
            raise TuningError(f"{self.folder} cannot be written: {error.strerror}") from error


def _agree(source: Path | str, found: str, expected: str) -> None:
    if found != expected:
        raise TuningError(f"{source} hashes to {found}, expected {expected}; it is not used")


def _read(path: Path) -> bytes:
    try:
        return content(path, MAX_BYTES, follow=False)
    except OSError as error:
        raise TuningError(f"{path} cannot be read: {error.strerror}") from error


def _mark(path: Path) -> tuple[int, int] | None:
    """Which file it is and when it last changed: the kernel's time, which no owner can set."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_ctime_ns
