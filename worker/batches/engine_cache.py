"""This machine's copies of engines: a file runs only if it hashes to the SHA-256 of its row."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from spsa.builds.artifacts import HashedFile, fetch
from spsa.builds.requirements import lacking
from spsa.core.game_settings import EngineFile
from spsa.errors import ArtifactMismatch, TuningError
from spsa.protocol import Claim, Engine, words_of

_KEPT = 128
"""Engines that stay in the cache, the latest ones; every iteration brings two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Verified executables on this machine."""

    plus: Path
    minus: Path


class EngineCache:
    """Finds the engines of a claim and keeps verified copies in `folder`.

    It tries the path of the row first, and the database or the server (`stored`) when that path has
    no usable file. Of binaries for several levels or kinds of machines it takes the first one that
    a machine with the words `provides` runs. Books and side files are found in the same way.
    """

    def __init__(
        self,
        folder: Path,
        stored: Callable[[str], bytes | None],
        provides: Collection[str] = (),
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._provides = provides
        self._copies: dict[str, HashedFile] = {}

    def binaries(self, claim: Claim) -> Binaries:
        """Both engines of a claim.

        Raises:
            ArtifactMismatch: this machine finds no file with such a hash.
        """
        suited = (
            sides
            for words, sides in claim.variants.items()
            if not lacking(words_of(words), self._provides)
        )
        plus, minus = next(suited, (claim.plus, claim.minus))
        return Binaries(plus=self.path(plus), minus=self.path(minus))

    def file(self, file: EngineFile, claim: Claim) -> Path:
        """A verified copy of the book or of a side file of a claim; raises as `binaries`.

        It may be at its own path, beside the binaries, or stored.
        """
        return self.path(file, Path(claim.plus.path).with_name(file.sha256))

    def path(self, engine: Engine | EngineFile, *others: Path) -> Path:
        """A verified copy of a file, which may be at its own path, at another, or stored.

        ArtifactMismatch when this machine finds no file with that hash.

        A copy that has changed on disk since it was verified is verified again.
        """
        copy = self._copies.get(engine.sha256)
        if copy is None or not copy.untouched:
            copy = self._fetched(engine.sha256, (Path(engine.path), *others))
            self._copies[engine.sha256] = copy
            self._remove_oldest()
        return copy.path

    def _fetched(self, sha256: str, places: Sequence[Path]) -> HashedFile:
        faults = []
        for place in places:
            try:
                return fetch(place, sha256, self._folder)
            except TuningError as error:
                faults.append(str(error))
        data = self._stored(sha256)
        if data is None:
            raise ArtifactMismatch(f"{faults[0]}; {sha256} is not stored either")
        try:
            return fetch(data, sha256, self._folder)
        except TuningError as error:
            raise ArtifactMismatch(f"{error} ({faults[0]})") from error

    def _remove_oldest(self) -> None:
        # Another worker that runs one of these keeps the file open until its engine ends.
        copies = (path for path in self._folder.iterdir() if len(path.name) == 64)
        for path in sorted(copies, key=_newest_first)[_KEPT:]:
            path.unlink(missing_ok=True)


def _newest_first(path: Path) -> float:
    """A sort key; a file that another worker has just removed comes last."""
    try:
        return -path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
