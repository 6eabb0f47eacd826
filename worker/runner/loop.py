"""The loop that plays the jobs of a tune, a match or a replay, and the signals that end it.

It runs in the main thread. The slots play.
"""

import logging
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import FrameType
from typing import Literal, Self

from spsa.protocol import MAX_KEPT_VOIDS, BatchResult, KeptVoid
from spsa.text import printable
from worker.runner.game import NOTHING_PLAYED, Pair, with_pair, with_void
from worker.runner.pool import Event, Job, JobEnded, PairVoid, Pool

log = logging.getLogger(__name__)

INTERRUPTED = 130  # the exit code after SIGINT; after SIGTERM it is 0

_TURN_SECONDS = 0.1  # between two turns at most; an event brings the next one
_MAX_DETAIL = 500  # characters
_SIDES: Mapping[str, Literal["plus", "minus", ""]] = {"plus": "plus", "minus": "minus"}


@dataclass(slots=True)
class Interrupts:
    """How many times this process was asked to stop, and its exit code."""

    count: int = 0
    exit_code: int = 0

    def of_this_process(self) -> Self:
        """Count SIGINT and SIGTERM from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.note)
        return self

    def wait(self, seconds: float) -> None:
        """Sleep until an interrupt, or for this long."""
        end = time.monotonic() + seconds
        while not self.count and time.monotonic() < end:
            time.sleep(_TURN_SECONDS)

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """The handler of both signals."""
        self.count += 1
        self.exit_code = INTERRUPTED if number == signal.SIGINT else self.exit_code


@dataclass(slots=True)
class ActiveJob:
    """A job until it has ended; it waits until it takes `slots`.

    `since` is of the monotonic clock: when it came, then when it was submitted.
    """

    job: Job
    since: float
    slots: int = 0
    result: BatchResult = NOTHING_PLAYED

    @property
    def on_last_pair(self) -> bool:
        return len(self.job.pairings) - self.result.tally.pairs <= 1

    def add_void(self, void: PairVoid) -> None:
        """Count a void game, and keep what there is to know about the first few."""
        fault, kept = void.fault, self.result.kept_voids
        self.result = with_void(self.result, fault.reason)
        if len(kept) < MAX_KEPT_VOIDS:
            one = KeptVoid(
                pair=void.pairing.number,
                culprit=_SIDES.get(fault.culprit, ""),
                white=_SIDES.get(fault.white, ""),
                detail=printable(str(fault), _MAX_DETAIL),
                position=fault.position,
                output=void.output,
            )
            self.result = replace(self.result, kept_voids=(*kept, one))

    def __str__(self) -> str:
        return self.job.label


class JobLoop(ABC):
    """Has jobs played; what inherits from it says where they come from and where results go.

    `active` are the jobs by their keys, the first one first; `played` sums up all pairs so far.
    After the first interrupt active jobs may go on for `drain` seconds, after the second none may.
    """

    def __init__(self, pool: Pool, interrupts: Interrupts, drain: float = 0.0) -> None:
        self.active: dict[str, ActiveJob] = {}
        self.played = NOTHING_PLAYED
        self._pool = pool
        self._interrupts = interrupts
        self._drain, self._drain_ends_at = drain, inf

    def play(self) -> None:
        """Play until `is_over`. Before an error, games are broken off."""
        try:
            while not self._is_over_after_a_turn():
                event = self._pool.next_event(_TURN_SECONDS)
                while event is not None:
                    self._handle(event)
                    event = self._pool.next_event()
        except BaseException:
            self.stop()
            raise

    @abstractmethod
    def turn(self) -> None:
        """Do what is due now: get jobs, if any are `wanted`, and hand over what was played."""

    @property
    def is_over(self) -> bool:
        """Whether it ends when no job is active."""
        return True

    @abstractmethod
    def note(self, active: ActiveJob, event: Event) -> None:
        """Take on what has happened; a job that has ended is active no more."""

    def prepared(self, active: ActiveJob) -> Job | None:
        """What a slot plays; None while it has to wait, or if this machine cannot play it."""
        return active.job

    def add(self, job: Job) -> None:
        """Submit a job as soon as there is room for it."""
        self.active[job.key] = ActiveJob(job, time.monotonic())
        self._submit()

    def stop(self) -> None:
        """Break off all games."""
        for key in self.active:
            self._pool.stop(key)

    def withdraw(self) -> None:
        """Withdraw all jobs that have not begun; the end of each follows."""
        for active in self._waiting():
            active.slots = active.job.slots
            self._pool.events.put(JobEnded(active.job.key, was_stopped=True))
        self._pool.withdraw_queued_jobs()

    @property
    def wanted(self) -> int:
        """How many jobs to get: one a slot, and a few more while slots play their last pairs.

        So no slot waits for the next job, and no job waits long for a slot. None while jobs wait
        for room, or after an interrupt.
        """
        if self._interrupts.count or self._waiting():
            return 0
        slots, ending = len(self._pool), sum(job.on_last_pair for job in self.active.values())
        busy = sum(active.slots for active in self.active.values())
        return max(0, slots + min(ending, 1 + slots // 4) - busy)

    @property
    def ends_at_once(self) -> bool:
        """Whether games are broken off: at the second interrupt, or after the drain time."""
        return self._interrupts.count > 1 or time.monotonic() >= self._drain_ends_at

    def _is_over_after_a_turn(self) -> bool:
        if self._interrupts.count and self._drain_ends_at == inf:
            self._drain_ends_at = time.monotonic() + self._drain
            log.info("interrupted: no more claims; interrupt again to stop at once")
            self.withdraw()
        if self.ends_at_once:
            self.stop()
        self._submit()
        self.turn()
        return not self.active and self.is_over

    def _handle(self, event: Event) -> None:
        active = self.active[event.key]
        match event:
            case Pair():
                active.result = replace(with_pair(active.result, event), slot=event.slot)
                self.played = with_pair(self.played, event)
            case PairVoid(fault=fault):
                active.add_void(event)
                self.played = with_void(self.played, f"{fault.culprit}: {fault.reason}")
            case _:
                del self.active[event.key]
        self.note(active, event)

    def _waiting(self) -> list[ActiveJob]:
        return [active for active in self.active.values() if not active.slots]

    def _submit(self) -> None:
        """Submit the jobs for which there is room, in their order."""
        for active in self._waiting():
            if not self._has_room(active.job) or (job := self.prepared(active)) is None:
                return
            active.since, active.slots = time.monotonic(), job.slots
            self._pool.submit(job)

    def _has_room(self, job: Job) -> bool:
        busy = [active.slots for active in self.active.values() if active.slots]
        # The pool itself keeps jobs of one slot until one is free, and so no slot waits for this
        # thread between two of them.
        return max(*busy, job.slots, 1) == 1 or sum(busy) + job.slots <= len(self._pool)


class JobList(JobLoop):
    """Has jobs played until there are no more, one fails, or `is_decided` returns True for a pair.

    `failure` says why a job has failed.
    """

    failure: str | None = None

    def __init__(
        self,
        jobs: Iterator[Job],
        pool: Pool,
        interrupts: Interrupts,
        is_decided: Callable[[Pair | PairVoid, BatchResult], bool],
    ) -> None:
        super().__init__(pool, interrupts)
        self._jobs = jobs
        self._is_decided = is_decided

    def turn(self) -> None:
        while self.wanted and (job := next(self._jobs, None)) is not None:
            self.add(job)

    def note(self, active: ActiveJob, event: Event) -> None:
        if isinstance(event, Pair | PairVoid):
            is_over = self._is_decided(event, self.played)
        else:
            is_over = event.failure is not None
            self.failure = self.failure or event.failure
        if is_over:
            self._jobs = iter(())
            self.stop()
