"""A batch between its claim and its report."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

from spsa.core.game_settings import Book, EngineFile, TablebaseRule
from spsa.openings import builtin_book
from spsa.openings.book import OpeningBook, load
from spsa.openings.positions import drawn_time
from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, Claim, Failure, KeptVoid
from spsa.text import FAILURE_LENGTH, printable
from spsa.uci.engine import EngineSpec, UciTimeouts
from worker.batches.engine_cache import Binaries, EngineCache
from worker.runner.adjudication import Tables, open_tables
from worker.runner.count import GameTotals
from worker.runner.game import Conditions, Pairing
from worker.runner.pool import Ended, Job, JobDone, JobFailed, PairVoid

_MAX_DETAIL = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReport:
    """The end of a claim that the database or the server does not know yet.

    It has a result, or a failure, or neither when the batch is handed back.
    """

    claim: Claim
    result: BatchResult | None = None
    failure: Failure | None = None


@dataclass(slots=True)
class ActiveBatch:
    """A claimed batch until its report; `started` is of the monotonic clock.

    Its games take so many `slots`, none while it waits, and their times are multiplied by `scale`.
    """

    claim: Claim
    started: float
    count: GameTotals = field(default_factory=GameTotals)
    slot: int | None = None
    slots: int = 0
    scale: float = 1.0
    culprit: str = ""  # "plus" or "minus": the engine that made the last pair void
    kept_voids: list[KeptVoid] = field(default_factory=list)

    @property
    def on_last_pair(self) -> bool:
        return self.claim.pairs - self.count.tally.pairs <= 1

    def report(self, end: Ended) -> PendingReport:
        """The report of how the batch ended."""
        if isinstance(end, JobDone):
            seconds = time.monotonic() - self.started
            return PendingReport(claim=self.claim, result=self._result(seconds))
        if isinstance(end, JobFailed):
            engine = {"plus": self.claim.plus, "minus": self.claim.minus}.get(self.culprit)
            failure = Failure(
                reason=printable(end.reason, FAILURE_LENGTH),
                void_games=self.count.voids.total(),
                sha256=engine.sha256 if engine else None,
                kept_voids=tuple(self.kept_voids),
            )
            return PendingReport(claim=self.claim, failure=failure)
        return PendingReport(claim=self.claim)

    def _result(self, seconds: float) -> BatchResult:
        result = result_of(self.count, seconds, self.slot)
        return replace(result, scale=self.scale, kept_voids=tuple(self.kept_voids))

    def add_void(self, void: PairVoid) -> None:
        """Count a void game, and keep what there is to know about the first few."""
        self.culprit = void.culprit
        self.count.add_void(void.reason)
        if len(self.kept_voids) < MAX_KEPT_VOIDS:
            kept = KeptVoid(
                pair=void.pairing.number,
                culprit=_side(void.culprit),
                white=_side(void.white),
                detail=printable(void.detail, _MAX_DETAIL),
                position=void.position,
                output=void.output,
            )
            self.kept_voids.append(kept)

    def __str__(self) -> str:
        claim = self.claim
        return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What a worker does at one moment.

    `slots` has the batch that each slot plays, or None. The counts are of all its batches so far.
    """

    state: str
    slots: Sequence[ActiveBatch | None]
    played: GameTotals
    batches: int
    failed: int
    unreported: int


def _side(player: str) -> Literal["plus", "minus", ""]:
    return "plus" if player == "plus" else "minus" if player == "minus" else ""


class View(Protocol):
    """Shows what a worker does; `due_at`, of the monotonic clock, is when it wants to again."""

    @property
    def due_at(self) -> float: ...

    def show(self, activity: Activity) -> None: ...


def result_of(count: GameTotals, seconds: float, slot: int | None) -> BatchResult:
    """The result of a batch that took `seconds` in a slot."""
    return BatchResult(
        tally=count.tally,
        voids=dict(count.voids),
        plus_nodes=count.plus_nodes,
        minus_nodes=count.minus_nodes,
        moves=count.moves,
        plus_time_losses=count.plus_time_losses,
        minus_time_losses=count.minus_time_losses,
        seconds=seconds,
        think_seconds=count.think_seconds,
        slot=slot,
    )


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
        binaries = self._engines.binaries(claim)
        files = {
            option: str(self._engines.file(file, claim))
            for option, file in claim.game_settings.engine_files.items()
        }
        wanted = claim.game_settings.book
        if wanted not in self._books:
            self._books[wanted] = load(wanted, self._book(wanted, claim))
        tables = self._tables_of(claim)
        return job_of(claim, binaries, self._books[wanted], self._timeouts, files, tables)

    def _tables_of(self, claim: Claim) -> Tables | None:
        rule = claim.game_settings.adjudication.syzygy
        if rule is None:
            return None
        if rule not in self._tables:
            self._tables[rule] = open_tables(rule, self._syzygy)
        return self._tables[rule]

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
    game_settings = claim.game_settings
    common = {**game_settings.engine_options, **files}
    arguments = game_settings.engine_arguments
    return Job(
        key=claim.claim_id,
        plus=EngineSpec(
            name="plus",
            path=str(binaries.plus),
            options={**common, **claim.plus.options},
            arguments=arguments,
        ),
        minus=EngineSpec(
            name="minus",
            path=str(binaries.minus),
            options={**common, **claim.minus.options},
            arguments=arguments,
        ),
        pairings=tuple(_pairing(claim, index, book) for index in range(claim.pairs)),
        conditions=Conditions(
            time_control=game_settings.time_control,
            adjudication=game_settings.adjudication,
            timeouts=timeouts,
            tables=tables,
        ),
    )


def _pairing(claim: Claim, index: int, book: OpeningBook) -> Pairing:
    number = claim.first_pair + index
    return Pairing(
        number=number,
        opening=book.opening(claim.run_seed, number),
        time=drawn_time(claim.game_settings.time_control, claim.seed, index),
    )
