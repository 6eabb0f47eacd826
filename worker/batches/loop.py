"""The loop of a worker: it claims batches, has them played, renews their leases and reports them.

It runs in the main thread, the only one that talks to the database or the server. The slots play.
"""

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from spsa.errors import DatabaseUnreachable, NotPermitted, SchemaMismatch, TuningError
from spsa.protocol import Claim, Failure, Measured
from spsa.text import FAILURE_LENGTH, plural, printable
from worker.batches.active_batch import ActiveBatch, ActiveBatches, Activity, View
from worker.batches.database_client import FAILURE, POLL, Backoff, DatabaseClient
from worker.batches.jobs import JobMaker
from worker.batches.scaling import OutsideScale
from worker.runner.game import NOTHING_PLAYED, counts, nps, with_pair, with_void
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Ended, Event, PairPlayed, PairVoid, Pool
from worker.settings import Settings
from worker.update import Updates

log = logging.getLogger(__name__)

NOTHING_TO_DO = 3


class Worker:
    """One process that plays the runs of a database; times are of the monotonic clock."""

    def __init__(
        self,
        client: DatabaseClient,
        pool: Pool,
        jobs: JobMaker,
        settings: Settings,
        interrupts: Interrupts,
        view: View | None = None,
        updates: Updates | None = None,
        *,
        poll: Backoff = POLL,
        after_failure: Backoff = FAILURE,
    ) -> None:
        self._client = client
        self._pool = pool
        self._jobs = jobs
        self._settings = settings
        self._interrupts = interrupts
        self._view = view
        self._updates = updates or Updates()
        self._active = ActiveBatches(pool)
        self._polls, self._failures = replace(poll), replace(after_failure)
        self._played = NOTHING_PLAYED
        self._measured = Measured()
        self._claimed = self._done = 0
        self._last_failure: TuningError | None = None
        self._no_work_left = False
        self._drain_ends_at = inf
        self._claim_at = self._idle_since = time.monotonic()

    def run(self) -> int:
        """Play until an interrupt, or until there is no reason to stay; the exit code.

        Batches are stopped before an error, so that nobody has to wait for the games.
        """
        self._interrupts.on_each(self._pool.wake)
        try:
            while not self._is_finished_after_a_turn():
                self._handle_events()
        except BaseException:
            self._active.stop()
            raise
        return self._exit_code()

    def keep_leases(self) -> None:
        """Renew leases while a file is fetched, which may take longer than they last.

        DatabaseUnreachable after an interrupt: the file is no longer worth its time.
        """
        if self._interrupts.count:
            raise DatabaseUnreachable("interrupted while a file was fetched")
        if not self._client.backing_off:
            with self._client.retrying():
                self._renew_leases()

    def _is_finished_after_a_turn(self) -> bool:
        self._handle_interrupts()
        self._submit_waiting()
        self._contact_database()
        if self._view is not None and time.monotonic() >= self._view.due_at:
            self._view.show(self._activity())
        if self._active:
            return False
        return self._ends_at_once if self._client.unreported else self._is_over

    def _handle_interrupts(self) -> None:
        if self._interrupts.count and self._drain_ends_at == inf:
            self._drain_ends_at = time.monotonic() + self._settings.drain
            self._active.withdraw()
            log.info("interrupted: no more claims; interrupt again to stop at once")
        if self._ends_at_once:
            self._active.stop()

    @property
    def _is_leaving(self) -> bool:
        """Whether it claims no more batches."""
        most = self._settings.max_batches
        return self._interrupts.count > 0 or (most is not None and self._claimed >= most)

    @property
    def _ends_at_once(self) -> bool:
        """Whether active batches are stopped: at the second interrupt, or after the drain time."""
        return self._interrupts.count > 1 or time.monotonic() >= self._drain_ends_at

    @property
    def _is_over(self) -> bool:
        """Whether a worker that holds nothing ends."""
        is_once, error = self._settings.once and not self._claimed, self._client.last_error
        idle = time.monotonic() - self._idle_since >= (self._settings.idle_timeout or inf)
        return self._is_leaving or self._no_work_left or idle or (is_once and error is not None)

    def _contact_database(self) -> None:
        """Renew, report and claim, unless nothing could be reached a moment ago."""
        if self._client.backing_off and not self._ends_at_once:
            return
        updates = self._updates
        with self._client.retrying():
            if time.monotonic() >= updates.due_at:
                updates.check()
            if self._active or self._client.unreported or not updates.is_wanted:
                self._exchange()
            if updates.is_needed:  # nothing that is played now can be reported any more
                self._active.withdraw()
                self._active.stop()
                if not self._active:
                    self._client.drop_reports()
            holds = self._active or self._client.unreported
            if updates.is_wanted and not (holds or self._is_leaving):
                updates.install()

    def _exchange(self) -> None:
        if self._updates.is_needed:
            return
        try:
            self._renew_leases()
            self._client.deliver()
            self._claim_batches()
            self._client.deliver()
        except SchemaMismatch:
            self._updates.check()
            if not self._updates.is_needed:  # another version would be refused, too
                raise

    def _renew_leases(self) -> None:
        for key in self._client.renew(self._active, self._measured):
            log.warning("%s: its lease is lost, its games are dropped", self._active[key])
            self._pool.stop(key)

    def _claim_batches(self) -> None:
        while self._wants_batches and time.monotonic() >= self._claim_at:
            claim = self._client.claim()
            if claim is None:
                self._wait_for_work()
                return
            self._polls.reset()
            self._start(claim)
            self._claimed += 1

    @property
    def _wants_batches(self) -> bool:
        leaves = self._is_leaving or self._updates.is_wanted
        return not leaves and self._active.wanted() > 0

    def _wait_for_work(self) -> None:
        self._claim_at = time.monotonic() + self._polls.next()
        if self._settings.once and not self._active:
            plays_nothing = self._last_failure is not None and not self._done
            self._no_work_left = plays_nothing or not self._client.work_left()

    def _start(self, claim: Claim) -> None:
        batch = self._active.add(claim)
        try:
            self._active.let_wait(batch, self._jobs.job(claim))
        except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
            del self._active[claim.claim_id]
            self._client.enqueue(claim, None)
            raise
        except TuningError as error:
            self._cannot_play(batch, error)
            return
        log.info("%s: claimed, %d pairs", batch, claim.pairs)
        self._submit_waiting()

    def _submit_waiting(self) -> None:
        for batch, error in self._active.submit():
            self._cannot_play(batch, error)

    def _cannot_play(self, batch: ActiveBatch, error: TuningError) -> None:
        """This costs one batch, which other machines may play. This worker plays what it can."""
        claim, self._last_failure = batch.claim, error
        del self._active[claim.claim_id]
        log.error("%s: this machine cannot play it: %s", batch, error)
        if isinstance(error, OutsideScale):  # no fault of the machine: it hands the batch back
            self._client.leave_out(claim.run_name)
            self._client.enqueue(claim, None)
        else:
            self._fail(claim, Failure(reason=printable(str(error), FAILURE_LENGTH)))

    def _fail(self, claim: Claim, failure: Failure) -> None:
        """Wait longer after each failure, so that a machine that plays nothing does little harm."""
        self._client.enqueue(claim, failure)
        self._claim_at = time.monotonic() + self._failures.next()

    def _handle_events(self) -> None:
        """Wait for an event or a deadline, then handle all events that have come."""
        event = self._pool.next_event(min(self._deadlines()) - time.monotonic())
        while event is not None:
            self._handle(event)
            event = self._pool.next_event(0)

    def _deadlines(self) -> Iterator[float]:
        """When the loop has to go on, though no event comes."""
        yield self._client.due_at
        if not self._ends_at_once:
            yield self._drain_ends_at
        if not self._active:
            yield self._idle_since + (self._settings.idle_timeout or inf)
        if self._view is not None:
            yield self._view.due_at
        if not self._client.backing_off:
            yield self._updates.due_at
            if self._wants_batches:
                yield self._claim_at

    def _handle(self, event: Event) -> None:
        batch = self._active[event.key]
        match event:
            case PairPlayed(pair=pair, slot=slot):
                batch.result = replace(with_pair(batch.result, pair), slot=slot)
                self._played = with_pair(self._played, pair)
            case PairVoid(fault=fault):
                batch.add_void(event)
                self._played = with_void(self._played, fault.reason)
                log.warning("%s pair %d void: %s", batch, event.pairing.number, fault)
            case _:
                del self._active[event.key]
                self._end(event, batch)

    def _end(self, event: Ended, batch: ActiveBatch) -> None:
        self._idle_since = self._claim_at = time.monotonic()
        end = batch.end(event)
        if isinstance(end, Failure):
            self._last_failure = TuningError(f"{batch}: {end.reason}")
            log.error("%s: failed, %s", batch, end.reason)
            self._fail(batch.claim, end)
            return
        self._client.enqueue(batch.claim, end)
        if end is None:
            log.info("%s: handed back", batch)
        else:
            self._note_played(batch)

    def _note_played(self, batch: ActiveBatch) -> None:
        result, speed = batch.result, nps(batch.result)
        self._done += 1
        self._failures.reset()
        is_scaled = batch.claim.game_settings.scale is not None
        scale = result.scale if is_scaled else self._measured.scale
        self._measured = Measured(nps=speed, scale=scale)
        log.info("%s: %s", batch, counts(result.tally))
        if speed is not None:
            log.info("slot %s: %.0f nodes a second", result.slot, speed)

    def _activity(self) -> Activity:
        playing = "playing" if self._active else "waiting for work"
        return Activity(
            state="ending its batches" if self._is_leaving else playing,
            slots=[self._active.get(key or "") for key in self._pool.playing],
            played=self._played,
            batches=self._done,
        )

    def _exit_code(self) -> int:
        if self._client.unreported:
            raise DatabaseUnreachable(
                f"{plural(self._client.unreported, 'batch', 'es')} could not be reported; "
                "they are played again when their leases expire"
            )
        if self._interrupts.count:
            return self._interrupts.exit_code
        if self._client.last_error is not None:
            raise self._client.last_error
        if self._last_failure is not None and not self._done:
            raise self._last_failure
        return 0 if self._claimed else NOTHING_TO_DO
