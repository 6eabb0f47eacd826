"""A worker: it claims batches, has them played, renews their leases and reports them.

The main thread is the only one that talks to the database or the server.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import replace

from spsa.errors import DatabaseUnreachable, NotPermitted, SchemaMismatch, TuningError
from spsa.protocol import BatchFailure, BatchReport, Claim, Failure, HeldClaim, Measured
from spsa.text import FAILURE_LENGTH, plural, printable
from worker.batches.database_client import FAILURE, POLL, Backoff, DatabaseClient
from worker.batches.jobs import JobMaker, OutsideScale, Speeds, label_of, scale_of
from worker.runner.game import counts, nps
from worker.runner.loop import ActiveJob, Interrupts, JobLoop
from worker.runner.pool import Event, Job, JobEnded, PairVoid, Pool
from worker.settings import Settings
from worker.update import Updates

log = logging.getLogger(__name__)

NOTHING_TO_DO = 3


class Worker(JobLoop):
    """One process that plays the runs of a database; times are of the monotonic clock.

    `done` counts the batches that it has played. `show` is called in each turn, for a view.
    """

    def __init__(
        self,
        client: DatabaseClient,
        pool: Pool,
        jobs: JobMaker,
        settings: Settings,
        interrupts: Interrupts,
        show: Callable[["Worker"], None] = lambda _: None,
        updates: Updates | None = None,
        *,
        poll: Backoff = POLL,
        after_failure: Backoff = FAILURE,
    ) -> None:
        super().__init__(pool, interrupts, settings.drain)
        self._client = client
        self._jobs = jobs
        self._settings = settings
        self._show = show
        self._updates = updates or Updates()
        self._claims: dict[str, Claim] = {}
        self._speeds: Speeds = {}
        self._polls, self._failures = replace(poll), replace(after_failure)
        self._measured = Measured()
        self.done = self._claimed = 0
        self._last_failure: TuningError | None = None
        self._no_work_left = False
        self._claim_at = self._idle_since = time.monotonic()

    def run(self) -> int:
        """Play until an interrupt, or until there is no reason to stay; the exit code."""
        self.play()
        if self._client.unreported:
            raise DatabaseUnreachable(
                f"{plural(self._client.unreported, 'batch', 'es')} could not be reported; "
                "they are played again when their leases expire"
            )
        if self._interrupts.count:
            return self._interrupts.exit_code
        error = self._client.last_error or (None if self.done else self._last_failure)
        if error is not None:
            raise error
        return 0 if self._claimed else NOTHING_TO_DO

    def keep_leases(self) -> None:
        """Renew leases while a file is fetched, which may take longer than they last.

        DatabaseUnreachable after an interrupt: the file is no longer worth its time.
        """
        if self._interrupts.count:
            raise DatabaseUnreachable("interrupted while a file was fetched")
        self._client.attempt(self._renew_leases)

    def turn(self) -> None:
        """Renew, report and claim, unless nothing could be reached a moment ago."""
        self._client.attempt(self._contact_database, at_once=self.ends_at_once)
        self._show(self)

    @property
    def is_over(self) -> bool:
        """Whether a worker without a batch ends."""
        if self._client.unreported:
            return self.ends_at_once or (self._is_idle and self._settings.then is not None)
        fails = self._settings.once and not self._claimed and self._client.last_error is not None
        return self._is_leaving or self._no_work_left or self._is_idle or fails

    @property
    def has_ended(self) -> bool:
        """Whether it has ended by itself, after it had begun."""
        return not self._interrupts.count and (self._client.is_registered or self._is_idle)

    @property
    def _is_idle(self) -> bool:
        return time.monotonic() - self._idle_since >= self._settings.idle_limit

    @property
    def state(self) -> str:
        """What it does, for a view."""
        if self._is_leaving:
            return "ending its batches"
        return "playing" if self.active else "waiting for work"

    @property
    def playing(self) -> list[ActiveJob | None]:
        """What each slot plays, for a view."""
        return [self.active.get(key) for key in self._pool.playing]

    @property
    def _is_leaving(self) -> bool:
        """Whether it claims no more batches."""
        most = self._settings.max_batches
        return bool(self._interrupts.count) or (most is not None and self._claimed >= most)

    def _contact_database(self) -> None:
        updates = self._updates
        if time.monotonic() >= updates.due_at:
            updates.check()
        if self.active or self._client.unreported or not updates.is_wanted:
            self._exchange()
        if updates.is_needed:  # nothing that is played now can be reported any more
            self.withdraw()
            self.stop()
            if not self.active and self._client.unreported:
                self._client.drop_reports()
        if updates.is_wanted and not (self.active or self._is_leaving):
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
        for key in self._client.renew(self._claims, self._measured):
            log.info(
                "%s: its games are no longer needed: the match is decided, its iteration was given "
                "up, or the lease ran out",
                label_of(self._claims[key]),
            )
            self._pool.stop(key)

    def _claim_batches(self) -> None:
        while self._wants_batches and time.monotonic() >= self._claim_at:
            if (claim := self._client.claim()) is None:
                self._claim_at = time.monotonic() + self._polls.next()
                if self._settings.once and not self.active:
                    plays_nothing = self._last_failure is not None and not self.done
                    self._no_work_left = plays_nothing or not self._client.work_left()
                return
            self._polls.reset()
            self._start(claim)
            self._claimed += 1

    @property
    def _wants_batches(self) -> bool:
        leaves = self._is_leaving or self._updates.is_wanted
        return not leaves and self.wanted > 0

    def _start(self, claim: Claim) -> None:
        self._claims[claim.claim_id] = claim  # its lease is renewed while its files are fetched
        try:
            job = self._jobs.job(claim)
            self._pool.check_room(job)
        except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
            del self._claims[claim.claim_id]
            self._client.enqueue(HeldClaim.of(claim))
            raise
        except TuningError as error:
            self._cannot_play(claim, error)
            return
        log.info("%s: claimed, %s", job.label, plural(claim.pairs, "pair"))
        self.add(job)

    def prepared(self, active: ActiveJob) -> Job | None:
        """The job with its times scaled, where its run wants that."""
        job, claim = active.job, self._claims[active.job.key]
        is_quiet = not any(other.slots for other in self.active.values())
        try:
            scale = scale_of(claim, job, self._pool, self._speeds, is_quiet=is_quiet)
        except TuningError as error:
            del self.active[job.key]
            self._cannot_play(claim, error)
            return None
        if scale is None:
            return None
        active.result = replace(active.result, scale=scale)
        return job.scaled(scale)

    def _cannot_play(self, claim: Claim, error: TuningError) -> None:
        """This costs one batch, which other machines may play. This worker plays what it can."""
        self._last_failure = error
        del self._claims[claim.claim_id]
        log.error("%s: this machine cannot play it: %s", label_of(claim), error)
        if isinstance(error, OutsideScale):  # no fault of the machine: it hands the batch back
            self._client.leave_out(claim.run_name)
            self._client.enqueue(HeldClaim.of(claim))
        else:
            self._fail(claim, Failure(reason=printable(str(error), FAILURE_LENGTH)))

    def _fail(self, claim: Claim, failure: Failure) -> None:
        """Wait longer after each failure, so that a machine that plays nothing does little harm."""
        self._client.enqueue(BatchFailure(held=HeldClaim.of(claim), failure=failure))
        self._claim_at = time.monotonic() + self._failures.next()

    def note(self, active: ActiveJob, event: Event) -> None:
        """Report a job that has ended; one that was stopped is handed back."""
        if isinstance(event, PairVoid):
            log.warning("%s pair %d void: %s", active, event.pairing.number + 1, event.fault)
        elif isinstance(event, JobEnded):
            self._idle_since = self._claim_at = time.monotonic()
            self._report(active, event, self._claims.pop(event.key))

    def _report(self, active: ActiveJob, ended: JobEnded, claim: Claim) -> None:
        if ended.was_stopped:
            self._client.enqueue(HeldClaim.of(claim))
            log.info("%s: handed back", active)
        elif ended.failure is not None:
            self._last_failure = TuningError(f"{active}: {ended.failure}")
            log.error("%s: failed, %s", active, ended.failure)
            engine = {"plus": claim.plus, "minus": claim.minus}.get(ended.culprit)
            failure = Failure(
                reason=printable(ended.failure, FAILURE_LENGTH),
                void_games=sum(active.result.voids.values()),
                sha256=engine.sha256 if engine else None,
                kept_voids=active.result.kept_voids,
            )
            self._fail(claim, failure)
        else:
            result = replace(active.result, seconds=time.monotonic() - active.since)
            self._client.enqueue(BatchReport(held=HeldClaim.of(claim), result=result))
            self._note_played(active, claim)

    def _note_played(self, active: ActiveJob, claim: Claim) -> None:
        result, speed = active.result, nps(active.result)
        self.done += 1
        self._failures.reset()
        is_scaled = claim.game_settings.scale is not None
        scale = result.scale if is_scaled else self._measured.scale
        self._measured = Measured(nps=speed, scale=scale)
        log.info("%s: %s", active, counts(result.tally))
        if speed is not None:
            log.info("slot %s: %.0f nodes a second", result.slot, speed)
