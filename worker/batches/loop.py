"""The loop of a worker: it claims batches, has them played, renews their leases and reports them.

It runs in the main thread, the only one that talks to the database or the server. The slots play.
"""

import logging
import time
from dataclasses import replace

from spsa.errors import BatchFailed, DatabaseUnreachable, NotPermitted, SchemaMismatch, TuningError
from spsa.protocol import BatchResult, Claim, Failure, Measured
from spsa.text import FAILURE_LENGTH, plural, printable
from worker.batches.active_batch import ActiveBatch, ActiveBatches, Activity, Leaving, View
from worker.batches.database_client import FAILURE, POLL, Backoff, DatabaseClient
from worker.batches.jobs import EngineCache, JobMaker
from worker.batches.scaling import KEPT_SECONDS, MachineSpeed, OutsideScale
from worker.runner.game import NOTHING_PLAYED, counts, nps, with_pair, with_void
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Ended, Event, PairPlayed, PairVoid, Pool
from worker.settings import Settings
from worker.update import Updates

log = logging.getLogger(__name__)

NOTHING_TO_DO = 3


class Worker:
    """One process that plays the runs of a database."""

    def __init__(
        self,
        client: DatabaseClient,
        pool: Pool,
        engines: EngineCache,
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
        self._jobs = JobMaker(engines, settings.syzygy)
        self._once = settings.once
        self._interrupts = interrupts
        self._view = view
        self._updates = updates or Updates()
        self._leaving = Leaving(settings, interrupts)
        self._played: BatchResult = NOTHING_PLAYED
        self._done = self._failed = 0
        self._speed = MachineSpeed(pool, lambda: interrupts.count > 1)
        self._active = ActiveBatches(pool, self._speed)
        self._last_failure: TuningError | None = None
        self._measured = Measured()
        self._polls = replace(poll)
        self._failures = replace(after_failure)
        self._is_idle = False
        self._claim_at = time.monotonic()

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

    def _is_finished_after_a_turn(self) -> bool:
        self._handle_interrupts()
        self._submit_waiting()
        self._contact_database()
        if self._view is not None and time.monotonic() >= self._view.due_at:
            self._view.show(self._activity())
        if self._active:
            return False
        return self._leaving.is_at_once if self._client.unreported else self._leaving.is_over

    def keep_leases(self) -> None:
        """Renew leases while a file is fetched, which may take longer than they last.

        DatabaseUnreachable after an interrupt: the file is no longer worth its time.
        """
        if self._leaving.is_interrupted():
            raise DatabaseUnreachable("interrupted while a file was fetched")
        if not self._client.backing_off:
            with self._client.retrying():
                self._renew_leases()

    def _handle_interrupts(self) -> None:
        if self._leaving.begins():
            self._active.withdraw()
            log.info("interrupted: no more claims; interrupt again to stop at once")
        if self._leaving.is_at_once:
            self._active.stop()

    def _contact_database(self) -> None:
        """Renew, report and claim, unless nothing could be reached a moment ago."""
        if self._client.backing_off and not self._leaving.is_at_once:
            return
        with self._client.retrying():
            if not self._updates.is_needed:
                self._exchange()
            elif self._active:  # nothing that is played now can be reported any more
                self._active.withdraw()
                self._active.stop()
            self._update()

    def _exchange(self) -> None:
        try:
            if time.monotonic() >= self._updates.due_at:
                self._updates.check()
            self._renew_leases()
            self._client.deliver()
            self._claim_batches()
            self._client.deliver()
        except SchemaMismatch:
            self._updates.check()
            self._pool.wake()
            if not self._updates.is_needed:  # another version would be refused, too
                raise

    def _renew_leases(self) -> None:
        for key in self._client.renew(self._active, self._measured):
            log.warning("%s: its lease is lost, its games are dropped", self._active[key])
            self._pool.stop(key)

    def _update(self) -> None:
        """Become another version of this worker, if one is wanted and this one holds nothing."""
        if self._active or not self._updates.is_wanted:
            return
        if self._updates.is_needed:
            self._client.drop_reports()
        if not (self._client.unreported or self._leaving.has_begun):
            self._updates.install(self._leaving.is_interrupted)

    def _activity(self) -> Activity:
        return Activity(
            state=self._state(),
            slots=[self._active.get(key or "") for key in self._pool.playing],
            played=self._played,
            batches=self._done,
            failed=self._failed,
            unreported=self._client.unreported,
        )

    def _state(self) -> str:
        if self._is_ending:
            return "ending its batches"
        if self._client.last_error is not None:
            return "cannot reach the database or the server"
        return "playing" if self._active else "waiting for work"

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
        return 0 if self._leaving.claimed else NOTHING_TO_DO

    def _handle_events(self) -> None:
        """Wait for an event or a deadline, then handle all events that have come."""
        seconds = min(self._deadlines()) - time.monotonic()
        event = self._pool.next_event(max(0.0, seconds))
        while event is not None:
            self._handle(event)
            event = self._pool.next_event(0)

    @property
    def _is_ending(self) -> bool:
        return self._leaving.has_begun or self._updates.is_wanted

    @property
    def _wants_batches(self) -> bool:
        return not self._is_ending and self._active.wanted() > 0

    def _claim_batches(self) -> None:
        while self._wants_batches and time.monotonic() >= self._claim_at:
            claim = self._client.claim()
            if claim is None:
                self._wait_for_work()
                return
            self._is_idle = False
            self._polls.reset()
            self._start(claim)
            self._leaving.claimed += 1

    def _wait_for_work(self) -> None:
        if not (self._is_idle or self._active):
            log.info("no batch to play, waiting for work")
        self._is_idle = not self._active
        self._claim_at = time.monotonic() + self._polls.next()
        if self._once and self._is_idle:
            plays_nothing = self._last_failure is not None and not self._done
            self._leaving.no_work_left = plays_nothing or not self._client.work_left()

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
        claim = batch.claim
        del self._active[claim.claim_id]
        log.error("%s: this machine cannot play it: %s", batch, error)
        if isinstance(error, OutsideScale):  # no fault of the machine: it hands the batch back
            self._client.leave_out(claim.run_name, str(error), KEPT_SECONDS)
            self._client.enqueue(claim, None)
            self._last_failure = error
            return
        self._fail(claim, Failure(reason=printable(str(error), FAILURE_LENGTH)), error)

    def _fail(self, claim: Claim, failure: Failure, error: TuningError) -> None:
        """Wait longer after each failure, so that a machine that plays nothing does little harm."""
        self._client.enqueue(claim, failure)
        self._last_failure = error
        self._claim_at = time.monotonic() + self._failures.next()

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
        self._leaving.idle_since = self._claim_at = time.monotonic()
        end = batch.end(event)
        if isinstance(end, Failure):
            self._failed += 1
            log.error("%s: failed, %s", batch, end.reason)
            self._fail(batch.claim, end, BatchFailed(f"{batch}: {end.reason}"))
            return
        self._client.enqueue(batch.claim, end)
        if end is not None:
            self._note_played(batch)
        else:
            log.info("%s: handed back", batch)

    def _note_played(self, batch: ActiveBatch) -> None:
        result = batch.result
        self._done += 1
        self._failures.reset()
        speed, is_scaled = nps(result), batch.claim.game_settings.scale is not None
        self._speed.played(batch.claim, speed)
        self._measured = Measured(
            nps=speed, scale=result.scale if is_scaled else self._measured.scale
        )
        log.info("%s: %s", batch, counts(result.tally))
        if speed is not None:
            log.info("slot %s: %.0f nodes a second", result.slot, speed)

    def _deadlines(self) -> list[float]:
        """When the loop has to go on, though no event comes."""
        deadlines = [self._client.due_at, *self._leaving.deadlines(playing=bool(self._active))]
        if not self._client.backing_off:
            deadlines.append(self._updates.due_at)
        if self._view is not None:
            deadlines.append(self._view.due_at)
        if self._wants_batches and not self._client.backing_off:
            deadlines.append(self._claim_at)
        return deadlines
