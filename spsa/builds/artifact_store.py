"""The folder of published engines: `<build key>/<binary>` beside a manifest with its hash.

A key appears complete or not at all, also with several publishers, and is never modified.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from spsa.builds import artifacts
from spsa.builds.requirements import required
from spsa.errors import TuningError
from spsa.uci.system import sync_folder

_MANIFEST = "manifest.json"
_KEY = re.compile(r"[0-9a-f]{64}")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_STAGING = ".staging-"
_STALE_SECONDS = 86_400.0


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


@dataclass(frozen=True, slots=True)
class ArtifactStore:
    """Published engines by their build keys."""

    directory: Path

    def find(self, key: str) -> BuiltEngine | None:
        """The engine with this key, if it is there and its bytes match the manifest."""
        place = self.directory / key
        try:
            engine = _read(place)
            artifacts.verify(engine.path, engine.sha256)
        except (OSError, ValueError, KeyError, TypeError, TuningError):
            return None
        return engine if engine.build_key == key else None

    def put(
        self,
        key: str,
        binary: Path,
        target: str,
        examine: Callable[[Path], int | None],
        level: str | None = None,
    ) -> BuiltEngine:
        """Publish `binary` under `key` after `examine` has tested the copy and returned its bench.

        `level` is the level of x86-64 that it was built for, where that is known. If another
        process publishes the key first, its engine is returned.
        """
        with self._staging() as draft:
            artifact = artifacts.publish(binary, draft, file_name(binary))
            bench = examine(artifact.path)
            place = self.directory / key
            path = place / artifact.path.name
            requires = required(artifact.path, level)
            engine = BuiltEngine(key, artifact.sha256, artifact.size, path, target, bench, requires)
            _write(draft, engine)
            return self._rename(draft, engine)

    def discard(self, keys: Collection[str]) -> None:
        """Remove the engines with these keys, and drafts that killed processes left."""
        for key in keys:
            if _KEY.fullmatch(key) and (self.directory / key).is_dir():
                self._discard(self.directory / key)
        for draft in self.directory.glob(f"{_STAGING}*"):
            if time.time() - draft.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(draft, ignore_errors=True)

    def _rename(self, draft: Path, engine: BuiltEngine) -> BuiltEngine:
        place = self.directory / engine.build_key
        for _ in range(2):
            try:
                draft.rename(place)
            except OSError:
                if other := self.find(engine.build_key):
                    return other
                self._discard(place)
            else:
                sync_folder(self.directory)
                return engine
        raise TuningError(f"{place} cannot be made: something else than an engine has this name")

    def _discard(self, place: Path) -> None:
        """Rename first, so that the key disappears at once; then remove the files."""
        with self._staging() as removed:
            place.rename(removed / place.name)

    @contextmanager
    def _staging(self) -> Iterator[Path]:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self.directory))
        except OSError as error:
            raise TuningError(f"no engine can be put into {self.directory}: {error}") from error
        draft.chmod(0o755)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def file_name(binary: Path) -> str:
    """The binary's name in characters that are safe in shells and databases."""
    return _UNSAFE.sub("-", binary.name).lstrip(".-_")[:128] or "engine"


def _write(draft: Path, engine: BuiltEngine) -> None:
    fields = asdict(engine) | {"path": engine.path.name}
    with (draft / _MANIFEST).open("w", encoding="utf-8") as manifest:
        json.dump(fields, manifest, indent=1, sort_keys=True)
        manifest.flush()
        os.fsync(manifest.fileno())
    sync_folder(draft)


def _read(place: Path) -> BuiltEngine:
    if place.is_symlink():
        raise ValueError(f"{place} is a symbolic link")
    fields = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
    path, requires = place / Path(fields["path"]).name, tuple(fields["requires"])
    return BuiltEngine(**(fields | {"path": path, "requires": requires}))
