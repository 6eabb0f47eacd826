"""This box's private copies of engines: only bytes that hash to the row's SHA-256 are ever run.

With a trusted key, moreover, only what its owner signed: nothing of a claim that is not is looked
at, fetched or started.
"""

from collections.abc import Callable
from pathlib import Path

from spsa.builds.artifacts import Copy, fetch
from spsa.db.signed_orders import order_of
from spsa.db.store import Claim, Engine
from spsa.errors import ArtifactMismatch, TuningError
from spsa.security.keys import TrustKey
from worker.batches.job import Binaries
from worker.runner.cache_folder import cache_folder

_KEPT = 128
"""Engines of the latest iterations that stay in a cache; every iteration brings two."""


class EngineCache:
    """Resolves what a claim names to executable files of our own.

    The shared path is tried first, and the database only where that path leads to nothing usable.
    """

    def __init__(
        self,
        folder: Path,
        stored: Callable[[str], bytes | None],
        trust_key: TrustKey | None = None,
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._trust_key = trust_key
        self._known: dict[str, Copy] = {}

    def binaries(self, claim: Claim) -> Binaries:
        """Both engines of a claim.

        Raises:
            NotSigned: the owner of the trusted key did not sign what the claim says.
            ArtifactMismatch: this box can get no file with such a hash.
        """
        if self._trust_key is not None:
            self._trust_key.check(order_of(claim), claim.signature)
        return Binaries(plus=self.path(claim.plus), minus=self.path(claim.minus))

    def path(self, engine: Engine) -> Path:
        """A verified copy; ArtifactMismatch when this box can get no file with that hash.

        A copy that anybody has touched since it was verified is verified again.
        """
        known = self._known.get(engine.sha256)
        if known is None or not known.untouched:
            known = self._known[engine.sha256] = self._fetched(engine)
            self._forget_old()
        return known.path

    def _fetched(self, engine: Engine) -> Copy:
        try:
            return fetch(Path(engine.path), engine.sha256, self._folder)
        except TuningError as error:
            fault = str(error)
        data = self._stored(engine.sha256)
        if data is None:
            raise ArtifactMismatch(f"{fault}; the database does not hold {engine.sha256} either")
        try:
            return fetch(data, engine.sha256, self._folder)
        except TuningError as error:
            raise ArtifactMismatch(f"{error} ({fault})") from error

    def _forget_old(self) -> None:
        # Another worker that has one of these running keeps its file until it ends.
        copies = (path for path in self._folder.iterdir() if len(path.name) == 64)
        for path in sorted(copies, key=_newest_first)[_KEPT:]:
            path.unlink(missing_ok=True)


def _newest_first(path: Path) -> float:
    """What to sort by; a file that another worker has just removed comes last."""
    try:
        return -path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def default_folder() -> Path:
    """The user's cache folder for engines."""
    return cache_folder() / "engines"
