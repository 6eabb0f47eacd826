"""From a claim to a job: verified copies of its files, its openings and times.

A file runs only if it hashes to the SHA-256 of its row.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from spsa.builds.artifacts import HashedFile, fetch
from spsa.builds.requirements import lacking
from spsa.core.game_settings import Book, EngineFile, TablebaseRule
from spsa.errors import TuningError
from spsa.openings import builtin_book
from spsa.openings.book import OpeningBook, drawn_time, load
from spsa.protocol import Claim, Engine, words_of
from spsa.uci.engine import EngineSpec
from worker.runner.adjudication import Tables, open_tables
from worker.runner.game import Conditions, Pairing
from worker.runner.pool import Job

_KEPT = 128
"""Engines that stay in the cache, the latest ones; every iteration brings two."""


class JobMaker:
    """Makes the jobs of one worker, with verified copies of their files in `folder`.

    It tries the path of the row first, and the database or the server (`stored`) when that path has
    no usable file. Of binaries for several levels or kinds of machines it takes the first one that
    a machine with the words `provides` runs. Each book is read once, and tables, which are in the
    folders `syzygy` of this machine, are opened once.
    """

    def __init__(
        self,
        folder: Path,
        stored: Callable[[str], bytes | None],
        provides: Collection[str] = (),
        syzygy: Sequence[Path] = (),
    ) -> None:
        self._folder = folder
        self._stored = stored
        self._provides = provides
        self._syzygy = syzygy
        self._copies: dict[str, HashedFile] = {}
        self._books: dict[Book, OpeningBook] = {}
        self._tables: dict[TablebaseRule, Tables] = {}

    def job(self, claim: Claim) -> Job:
        """TuningError where this machine lacks an engine, the book or tables of the batch."""
        settings, binaries = claim.game_settings, self.binaries(claim)
        files = {
            option: str(self._file(file, claim)) for option, file in settings.engine_files.items()
        }
        book, rule = settings.book, settings.adjudication.syzygy
        if book not in self._books:
            # a built-in book has no file, and one without a hash may be any file
            stored = builtin_book(book.name) is None and book.sha256
            named = EngineFile(path=book.name, sha256=book.sha256 or "")
            self._books[book] = load(book, self._file(named, claim) if stored else None)
        if rule is not None and rule not in self._tables:
            self._tables[rule] = open_tables(rule, self._syzygy)
        tables = None if rule is None else self._tables[rule]
        return job_of(claim, binaries, self._books[book], files, tables)

    def binaries(self, claim: Claim) -> tuple[Path, Path]:
        """Plus and minus of a claim.

        Raises:
            ArtifactMismatch: this machine finds no file with such a hash.
        """
        suited = (
            sides
            for words, sides in claim.variants.items()
            if not lacking(words_of(words), self._provides)
        )
        plus, minus = next(suited, (claim.plus, claim.minus))
        return self.path(plus), self.path(minus)

    def _file(self, file: EngineFile, claim: Claim) -> Path:
        """A verified copy of a book or a side file, which may be beside the claim's binaries."""
        return self.path(file, Path(claim.plus.path).with_name(file.sha256))

    def path(self, engine: Engine | EngineFile, *others: Path) -> Path:
        """A verified copy of a file, which may be at its own path, at another, or stored.

        TuningError when this machine finds no file with that hash. A copy that has changed on
        disk since it was verified is verified again.
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
            raise TuningError(f"{faults[0]}; {sha256} is not stored either")
        try:
            return fetch(data, sha256, self._folder)
        except TuningError as error:
            raise TuningError(f"{error} ({faults[0]})") from error

    def _remove_oldest(self) -> None:
        # Another worker that runs one of these keeps the file open until its engine ends.
        with suppress(FileNotFoundError):  # another worker has just removed one, too
            copies = [path for path in self._folder.iterdir() if len(path.name) == 64]
            for path in sorted(copies, key=lambda path: -path.stat().st_mtime)[_KEPT:]:
                path.unlink()


def job_of(
    claim: Claim,
    binaries: tuple[Path, Path],
    book: OpeningBook,
    files: Mapping[str, str] = MappingProxyType({}),
    tables: Tables | None = None,
) -> Job:
    """What a slot plays; it follows from the claim alone, on every machine.

    `files` are the options that name a file, with the paths of this machine; `tables` are those
    by which games end.
    """
    settings = claim.game_settings

    def spec(name: str, path: Path, engine: Engine) -> EngineSpec:
        options = {**settings.engine_options, **files, **engine.options}
        return EngineSpec(
            name=name, path=str(path), options=options, arguments=settings.engine_arguments
        )

    return Job(
        key=claim.claim_id,
        plus=spec("plus", binaries[0], claim.plus),
        minus=spec("minus", binaries[1], claim.minus),
        pairings=tuple(
            Pairing(
                number=claim.first_pair + index,
                opening=book.opening(claim.run_seed, claim.first_pair + index),
                time=drawn_time(settings.time_control, claim.seed, index),
            )
            for index in range(claim.pairs)
        ),
        conditions=Conditions(
            time_control=settings.time_control,
            adjudication=settings.adjudication,
            tables=tables,
        ),
    )
