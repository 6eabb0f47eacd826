"""This box's private copies of engines: only bytes that hash to the row's SHA-256 are ever run."""

from collections.abc import Callable
from pathlib import Path

from spsa.artifacts import fetch
from spsa.errors import ArtifactMismatch, TuningError
from spsa.store import Engine
from worker.cache import cache_folder

_KEPT = 128
"""Engines of the latest iterations that stay in a cache; every iteration brings two."""


class EngineCache:
    """Resolves what a claim names to an executable file of our own.

    The shared path is tried first, and the database only where that path leads to nothing usable.
    """

    def __init__(self, folder: Path, stored: Callable[[str], bytes | None]) -> None:
        self._folder = folder
        self._stored = stored
        self._known: dict[str, Path] = {}

    def path(self, engine: Engine) -> Path:
        """A verified copy; ArtifactMismatch when this box can get no file with that hash."""
        known = self._known.get(engine.sha256)
        if known is None or not known.exists():
            known = self._known[engine.sha256] = self._fetched(engine)
            self._forget_old()
        known.touch()
        return known

    def _fetched(self, engine: Engine) -> Path:
        try:
            return fetch(Path(engine.path), engine.sha256, self._folder)
        except TuningError as error:
            fault = str(error)
        data = self._stored(engine.sha256)
        if data is None:
            raise ArtifactMismatch(f"{fault}; the database does not hold {engine.sha256} either")
        return fetch(data, engine.sha256, self._folder)

    def _forget_old(self) -> None:
        # Another worker that has one of these running keeps its file until it ends.
        copies = [path for path in self._folder.iterdir() if len(path.name) == 64]
        copies.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in copies[_KEPT:]:
            path.unlink(missing_ok=True)


def default_folder() -> Path:
    """The user's cache folder for engines."""
    return cache_folder() / "engines"
