"""Claim, play, renew, report: the life of a worker.

The main thread is here, and it alone talks to the database, through its client; the slots play.
"""

import logging
import time
from dataclasses import dataclass
from random import Random

from spsa.core.game_settings import Book
from spsa.db.store import Claim
from spsa.errors import (
    BatchFailed,
    DatabaseUnreachable,
    NotPermitted,
    SchemaMismatch,
    TuningError,
)
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.active_batch import ActiveBatch
from worker.batches.backoff import FAILURE, POLL, Backoff, BackoffTimes
from worker.batches.database_client import DatabaseClient, PendingReport
from worker.batches.engine_cache import EngineCache
from worker.batches.job import job_of
from worker.runner.interrupts import Interrupts
from worker.runner.openings import OpeningBook, load
from worker.runner.pool import Ended, Event, JobDone, JobFailed, PairPlayed, PairVoid, Pool

log = logging.getLogger(__name__)

NOTHING_TO_DO = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker comes and goes. Times in seconds; None is never or without limit.

    `drain` is how long batches in play may go on after the first interrupt. `once` ends the worker
    when no run has work left, `idle_timeout` when it has had none for so long.
    """

    drain: float = 60.0
    once: bool = False
    idle_timeout: float | None = None
    max_batches: int | None = None
    poll: BackoffTimes = POLL
    after_failure: BackoffTimes = FAILURE


class Worker:
    """One process that plays for whoever is in the database."""

    def __init__(
        self,
        client: DatabaseClient,
        pool: Pool,
        engines: EngineCache,
        options: WorkerOptions,
        interrupts: Interrupts,
    ) -> None:
        self._client = client
        self._pool = pool
        self._engines = engines
        self._options = options
        self._interrupts = interrupts
        self._active: dict[str, ActiveBatch] = {}
        self._books: dict[Book, OpeningBook] = {}
        self._claimed = 0
        self._nps: float | None = None
        self._played = False
        self._trouble: TuningError | None = None  # the last batch that could not be played
        self._failures = Backoff(options.after_failure, Random())
        self._no_work = False
        self._idle = False
        self._stop_at: float | None = None
        self._polls = Backoff(options.poll, Random())
        self._idle_since = self._ask_at = time.monotonic()

    def run(self) -> int:
        """Play until told to stop, or until there is nothing to stay for; the exit code."""
        self._interrupts.on_each(self._pool.wake)
        while True:
            self._obey()
            self._speak()
            if self._finished():
                return self._verdict()
            self._listen()

    def _verdict(self) -> int:
        if self._client.unreported:
            raise DatabaseUnreachable(
                f"{self._client.unreported} batches could not be reported; others will play them"
            )
        if self._interrupts.count:
            return self._interrupts.exit_code
        if self._client.trouble is not None:
            raise self._client.trouble
        if self._trouble is not None and not self._played:
            raise self._trouble
        return 0 if self._claimed else NOTHING_TO_DO

    def _finished(self) -> bool:
        if self._active:
            return False
        if self._client.unreported:
            return self._breaking_off
        return self._leaving or self._nothing_to_stay_for

    @property
    def _leaving(self) -> bool:
        """Whether no more batches are to be claimed."""
        enough = (
            self._options.max_batches is not None and self._claimed >= self._options.max_batches
        )
        return bool(self._interrupts.count) or enough

    @property
    def _breaking_off(self) -> bool:
        """Whether nothing is to be waited for any longer: asked twice, or drained long enough."""
        late = self._stop_at is not None and time.monotonic() >= self._stop_at
        return late or self._interrupts.count > 1

    @property
    def _nothing_to_stay_for(self) -> bool:
        timeouts = self._options.idle_timeout
        idle = time.monotonic() - self._idle_since
        return self._no_work or (timeouts is not None and idle >= timeouts)

    def _obey(self) -> None:
        if self._interrupts.count and self._stop_at is None:
            self._stop_at = time.monotonic() + self._options.drain
            self._pool.recall()
            log.info("no more claims; interrupt again to stop at once")
        if self._breaking_off:
            for key in self._active:
                self._pool.stop(key)

    def _speak(self) -> None:
        if self._client.silent and not self._breaking_off:
            return
        with self._client.retrying():
            self._drop(self._client.renew(self._active, self._nps))
            self._report_and_claim()

    def _drop(self, lost: frozenset[str]) -> None:
        for key in lost:
            log.warning("%s: lease lost, its games are dropped", self._active[key])
            self._pool.stop(key)

    def _report_and_claim(self) -> None:
        self._client.deliver()
        while self._wanted_now:
            claim = self._client.claim()
            if claim is None:
                self._come_back_later()
                return
            self._idle = False
            self._polls.reset()
            self._begin(claim)
            self._claimed += 1
        self._client.deliver()

    def _come_back_later(self) -> None:
        """Nothing more is free."""
        if not (self._idle or self._active):
            log.info("nothing to play now, waiting for work")
        self._idle = not self._active
        self._ask_at = time.monotonic() + self._polls.next()
        if self._options.once and not self._active:
            useless = self._trouble is not None and not self._played
            self._no_work = useless or not self._client.work_left()

    @property
    def _wanted_now(self) -> int:
        return self._wanted if time.monotonic() >= self._ask_at else 0

    @property
    def _wanted(self) -> int:
        """One batch a slot, and some more while slots are on their last pairs.

        So no slot waits for the database, and no more wait here than are soon begun.
        """
        if self._leaving:
            return 0
        slots = len(self._pool)
        ending = sum(batch.on_last_pair for batch in self._active.values())
        wanted = slots + min(ending, 1 + slots // 4) - len(self._active)
        if self._options.max_batches is not None:
            wanted = min(wanted, self._options.max_batches - self._claimed)
        return max(0, wanted)

    def _begin(self, claim: Claim) -> None:
        batch = ActiveBatch(claim, time.monotonic())
        try:
            binaries = self._engines.binaries(claim)
            job = job_of(claim, binaries, self._book(claim.terms.book), self._pool.timeouts)
        except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
            self._client.enqueue(PendingReport(claim=claim))
            raise
        except TuningError as error:
            # It costs this batch; others may play it. This worker goes on with what it can play.
            log.error("%s: cannot be played here, %s", batch, error)
            self._failed(
                PendingReport(claim=claim, failure=printable(str(error), FAILURE_LENGTH)), error
            )
            return
        self._active[claim.claim_id] = batch
        self._pool.submit(job)
        log.info("%s: claimed, %d pairs", batch, claim.pairs)

    def _failed(self, report: PendingReport, error: TuningError) -> None:
        """Wait longer after each failure, so that a machine that plays nothing does little harm."""
        self._client.enqueue(report)
        self._trouble = error
        self._ask_at = time.monotonic() + self._failures.next()

    def _book(self, terms: Book) -> OpeningBook:
        if terms not in self._books:
            self._books[terms] = load(terms)
        return self._books[terms]

    def _listen(self) -> None:
        """Wait for the next event, and hear what else has happened, to speak of all at once."""
        event = self._pool.next_event(self._time_to_next_duty())
        while event is not None:
            self._hear(event)
            event = self._pool.next_event(0)

    def _hear(self, event: Event) -> None:
        batch = self._active[event.key]
        match event:
            case PairPlayed(pair=pair, slot=slot):
                batch.count.add(pair)
                batch.slot = slot
            case PairVoid(detail=detail, culprit=culprit):
                batch.culprit = culprit
                batch.count.add_void(event.reason)
                log.warning("%s pair %d void: %s", batch, event.pairing.number, detail)
            case _:
                self._end(event, self._active.pop(event.key))

    def _end(self, event: Ended, batch: ActiveBatch) -> None:
        self._idle_since = self._ask_at = time.monotonic()
        if isinstance(event, JobFailed):
            log.error("%s: failed, %s", batch, event.reason)
            self._failed(batch.report(event), BatchFailed(f"{batch}: {event.reason}"))
            return
        self._client.enqueue(batch.report(event))
        if isinstance(event, JobDone):
            self._played = True
            self._failures.reset()
            self._nps = batch.count.nps()
            log.info("%s: %s", batch, batch.count)
            if self._nps is not None:
                log.info("slot %s: %.0f nodes a second", batch.slot, self._nps)
        else:
            log.info("%s: handed back", batch)

    def _time_to_next_duty(self) -> float:
        return max(0.0, min(self._duties()) - time.monotonic())

    def _duties(self) -> list[float]:
        """When something is next to be done, though no game ends."""
        duties = [self._client.next_duty]
        if self._wanted and not self._client.silent:
            duties.append(self._ask_at)
        if self._stop_at is not None and not self._breaking_off:
            duties.append(self._stop_at)
        if self._options.idle_timeout is not None and not self._active:
            duties.append(self._idle_since + self._options.idle_timeout)
        return duties
