"""The batches of a worker between claim and report, and what a view shows of them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from spsa.errors import TuningError
from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, Claim, Failure, KeptVoid
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.scaling import MachineSpeed
from worker.machine import room_objection
from worker.runner.game import NOTHING_PLAYED, with_void
from worker.runner.pool import Ended, Job, JobDone, JobFailed, JobStopped, PairVoid, Pool

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


class View(Protocol):
    """Shows what a worker does; `due_at`, of the monotonic clock, is when it wants to again."""

    @property
    def due_at(self) -> float: ...

    def show(self, activity: Activity) -> None: ...


class ActiveBatches(dict[str, ActiveBatch]):
    """The batches that a worker holds, by their claims' ids, the first claimed first.

    A batch waits until the slots have room for its job. One whose run scales times waits until this
    machine's speed is known. That is measured when no slot plays, because then as many engines
    search as in games.
    """

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool
        self._speed = MachineSpeed(pool)

    def add(self, claim: Claim) -> ActiveBatch:
        """A batch without a job; its lease is renewed while its files are fetched."""
        batch = self[claim.claim_id] = ActiveBatch(claim, time.monotonic())
        return batch

    def let_wait(self, batch: ActiveBatch, job: Job) -> None:
        """TuningError where its engines have more threads than this machine can give."""
        objection = room_objection(job.slots, len(self._pool), self._pool.limits)
        if objection is not None:
            raise TuningError(objection)
        batch.job = job

    def withdraw(self) -> None:
        """Withdraw all whose games have not begun; JobStopped follows for each."""
        for batch in self._waiting():
            self._pool.events.put(JobStopped(batch.claim.claim_id))
            batch.job = None
        self._pool.withdraw_queued_jobs()

    def stop(self) -> None:
        """Break off all games."""
        for key in self:
            self._pool.stop(key)

    def wanted(self) -> int:
        """How many batches to claim: one a slot, and a few more while slots play their last pairs.

        So no slot waits for the database, and no claimed batch waits long for a slot. None while
        claimed batches wait for room.
        """
        if self._waiting():
            return 0
        slots, ending = len(self._pool), sum(batch.on_last_pair for batch in self.values())
        busy = sum(batch.slots for batch in self.values())
        return max(0, slots + min(ending, 1 + slots // 4) - busy)

    def submit(self) -> Iterator[tuple[ActiveBatch, TuningError]]:
        """Submit those for which there is room; yields those that this machine cannot play."""
        for batch in self._waiting():
            job = batch.job
            if job is None or not self._has_room(batch, job):
                return
            try:
                scale = self._speed.scale(batch.claim, job)
            except TuningError as error:
                yield batch, error
            else:
                batch.started, batch.slots, batch.job = time.monotonic(), job.slots, None
                batch.result = replace(batch.result, scale=scale)
                self._pool.submit(job.scaled(scale))

    def _waiting(self) -> list[ActiveBatch]:
        return [batch for batch in self.values() if batch.job is not None]

    def _has_room(self, batch: ActiveBatch, job: Job) -> bool:
        busy = [one.slots for one in self.values() if one.slots]
        if self._speed.is_due(batch.claim):
            return not busy
        # The pool itself keeps jobs of one slot until one is free, and so no slot waits for this
        # thread between two of them.
        return max(*busy, job.slots, 1) == 1 or sum(busy) + job.slots <= len(self._pool)
