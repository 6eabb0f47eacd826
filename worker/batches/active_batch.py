"""A batch between its claim and its report, and the job that it becomes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from spsa.core.game_settings import Book, EngineFile, TablebaseRule
from spsa.openings import builtin_book
from spsa.openings.book import OpeningBook, drawn_time, load
from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, Claim, Engine, Failure, KeptVoid
from spsa.text import FAILURE_LENGTH, printable
from spsa.uci.engine import EngineSpec, UciTimeouts
from worker.batches.engine_cache import Binaries, EngineCache
from worker.runner.adjudication import Tables, open_tables
from worker.runner.game import NOTHING_PLAYED, Conditions, Pairing, with_void
from worker.runner.pool import Ended, Job, JobDone, JobFailed, PairVoid

_MAX_DETAIL = 500  # characters


@dataclass(slots=True)
class ActiveBatch:
    """A claimed batch until its report; `started` is of the monotonic clock.

    `job` waits for room in the slots until it takes so many `slots`. `culprit` ("plus" or "minus")
    is the engine that made the last pair void.
    """

    claim: Claim
    started: float
    job: Job | None = None
    slots: int = 0
    result: BatchResult = NOTHING_PLAYED
    culprit: str = ""

    @property
    def on_last_pair(self) -> bool:
        return self.claim.pairs - self.result.tally.pairs <= 1

    def end(self, end: Ended) -> BatchResult | Failure | None:
        """What is reported of how the batch ended; None to hand it back."""
        if isinstance(end, JobDone):
            return replace(self.result, seconds=time.monotonic() - self.started)
        if isinstance(end, JobFailed):
            engine = {"plus": self.claim.plus, "minus": self.claim.minus}.get(self.culprit)
            return Failure(
                reason=printable(end.reason, FAILURE_LENGTH),
                void_games=sum(self.result.voids.values()),
                sha256=engine.sha256 if engine else None,
                kept_voids=self.result.kept_voids,
            )
        return None

    def add_void(self, void: PairVoid) -> None:
        """Count a void game, and keep what there is to know about the first few."""
        fault, kept = void.fault, self.result.kept_voids
        self.culprit = fault.culprit
        self.result = with_void(self.result, fault.reason)
        if len(kept) < MAX_KEPT_VOIDS:
            one = KeptVoid(
                pair=void.pairing.number,
                culprit=_side(fault.culprit),
                white=_side(fault.white),
                detail=printable(str(fault), _MAX_DETAIL),
                position=fault.position,
                output=void.output,
            )
            self.result = replace(self.result, kept_voids=(*kept, one))

    def __str__(self) -> str:
        claim = self.claim
        return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"


def _side(player: str) -> Literal["plus", "minus", ""]:
    return "plus" if player == "plus" else "minus" if player == "minus" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a worker does at one moment.

    `slots` has the batch that each slot plays, or None. `played` sums up all its batches so far.
    """

    state: str
    slots: Sequence[ActiveBatch | None]
    played: BatchResult
    batches: int
    failed: int
    unreported: int


class View(Protocol):
    """Shows what a worker does; `due_at`, of the monotonic clock, is when it wants to again."""

    @property
    def due_at(self) -> float: ...

    def show(self, activity: Activity) -> None: ...


class JobMaker:
    """Makes the jobs of one worker; each book is read once, and tables are opened once.

    `syzygy` are the folders of this machine's tables.
    """

    def __init__(
        self, engines: EngineCache, timeouts: UciTimeouts, syzygy: Sequence[Path] = ()
    ) -> None:
        self._engines = engines
        self._timeouts = timeouts
        self._syzygy = syzygy
        self._books: dict[Book, OpeningBook] = {}
        self._tables: dict[TablebaseRule, Tables] = {}

    def job(self, claim: Claim) -> Job:
        """TuningError where this machine lacks an engine, the book or tables of the batch."""
        settings, binaries = claim.game_settings, self._engines.binaries(claim)
        files = {
            option: str(self._engines.file(file, claim))
            for option, file in settings.engine_files.items()
        }
        if settings.book not in self._books:
            self._books[settings.book] = load(settings.book, self._book(settings.book, claim))
        rule = settings.adjudication.syzygy
        if rule is not None and rule not in self._tables:
            self._tables[rule] = open_tables(rule, self._syzygy)
        tables = None if rule is None else self._tables[rule]
        return job_of(claim, binaries, self._books[settings.book], self._timeouts, files, tables)

    def _book(self, book: Book, claim: Claim) -> Path | None:
        """A verified copy of the book; None for a built-in one, or one that may be any file."""
        if builtin_book(book.name) is not None or not book.sha256:
            return None
        return self._engines.file(EngineFile(path=book.name, sha256=book.sha256), claim)


def job_of(
    claim: Claim,
    binaries: Binaries,
    book: OpeningBook,
    timeouts: UciTimeouts,
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
        plus=spec("plus", binaries.plus, claim.plus),
        minus=spec("minus", binaries.minus, claim.minus),
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
            timeouts=timeouts,
            tables=tables,
        ),
    )
