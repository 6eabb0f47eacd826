"""N pairs in the air: a thread a slot, jobs in, events out.

A slot's thread lives as long as the pool and starts its own engines, because the kernel ends an
engine together with the thread that started it. The threads know no database.
"""

import gc
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from types import TracebackType
from typing import Self

from worker.runner.engine_pair import EnginePair
from worker.runner.game import Conditions, Pair, Pairing, VoidGame, play_pair
from worker.uci.engine import EngineSpec, UciTimeouts
from worker.uci.process import Alarm, Stopped
from worker.uci.spawning import EngineLimits

log = logging.getLogger(__name__)

FOR_GOOD = frozenset({"refused option"})
"""Reasons of void games that no other try with the same binary would do away with."""

_SWITCH_SECONDS = 0.0002  # how long one thread may keep the others waiting
_GC_THRESHOLDS = (20_000, 20, 50)  # games leave next to no garbage behind


def tune_interpreter() -> None:
    """Let a slot hear its engine at once, whatever the other threads do.

    Call it when everything that stays is loaded: none of that is searched for garbage.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    gc.enable()
    sys.setswitchinterval(_SWITCH_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Pairs to be played one after the other in one slot; `key` is the caller's name for it.

    A pair that comes out void is played again, `max_void` times before the job fails; none is where
    that would change nothing.
    """

    key: str
    plus: EngineSpec
    minus: EngineSpec
    pairings: tuple[Pairing, ...]
    conditions: Conditions
    max_void: int = 3


@dataclass(frozen=True, slots=True)
class PairPlayed:
    """`slot` is the number, from 0, of the slot that played it."""

    key: str
    pair: Pair
    slot: int


@dataclass(frozen=True, slots=True)
class PairVoid:
    """A pair thrown away; `detail` names the engine and what it did."""

    key: str
    pairing: Pairing
    culprit: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class JobDone:
    key: str


@dataclass(frozen=True, slots=True)
class JobFailed:
    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobStopped:
    key: str


Event = PairPlayed | PairVoid | JobDone | JobFailed | JobStopped
Ended = JobDone | JobFailed | JobStopped


class Slot:
    """One thread that plays one job at a time."""

    def __init__(self, number: int, pool: "Pool") -> None:
        self._number = number
        self._pool = pool
        self._alarm = Alarm()
        self._lock = Lock()
        self._playing: str | None = None
        self._thread = Thread(target=self._run, name=f"slot {number}", daemon=True)
        self._thread.start()

    def stop(self, key: str) -> None:
        """Break off job `key` if it is this slot's."""
        with self._lock:
            if self._playing == key:
                self._alarm.ring()

    def join(self) -> None:
        self._thread.join()
        self._alarm.close()

    def _run(self) -> None:
        confinement = self._pool.confinement.of_slot(self._number)
        with EnginePair(self._alarm, self._pool.timeouts, confinement) as bench:
            while (job := self._pool.jobs.get()) is not None:
                self._begin(job.key)
                self._pool.events.put(self._end(self._play(job, bench)))

    def _begin(self, key: str) -> None:
        with self._lock:
            self._alarm.silence()
            self._playing = key
            if key in self._pool.unwanted:
                self._alarm.ring()

    def _end(self, event: Ended) -> Ended:
        with self._lock:
            self._playing = None
        return event

    def _play(self, job: Job, bench: EnginePair) -> Ended:
        try:
            for pairing in job.pairings:
                if (reason := self._play_to_the_end(job, pairing, bench)) is not None:
                    return JobFailed(job.key, reason)
            return JobDone(job.key)
        except Stopped:
            bench.clear(at_once=True)
            return JobStopped(job.key)
        except Exception as error:
            # A defect of this program costs one job and is reported, and the other slots play on.
            log.exception("a slot met a defect")
            bench.clear(at_once=True)
            return JobFailed(job.key, f"defect in the worker: {error!r}")

    def _play_to_the_end(self, job: Job, pairing: Pairing, bench: EnginePair) -> str | None:
        """Play one pair until it counts; the reason when it never does."""
        void = None
        for _ in range(job.max_void + 1):
            if self._alarm.rung:
                raise Stopped
            try:
                pair = self._pair(job, pairing, bench)
                self._pool.events.put(PairPlayed(job.key, pair, self._number))
                return None
            except VoidGame as error:
                void = error
                bench.clear(at_once=True)
                self._pool.events.put(_void(job, pairing, error))
                if error.reason in FOR_GOOD:
                    return f"pair {pairing.number} void, and would be again: {void}"
        return f"pair {pairing.number} void {job.max_void + 1} times, the last time: {void}"

    def _pair(self, job: Job, pairing: Pairing, bench: EnginePair) -> Pair:
        def expect_the_next() -> None:
            newest = self._pool.newest or job
            bench.expect(newest.plus, newest.minus)

        plus, minus = bench.seat(job.plus, job.minus)
        return play_pair(plus, minus, pairing, job.conditions, expect_the_next)


class Pool:
    """`size` slots that share one line of jobs; events come out in the order things happened.

    Each slot has its engines confined, and on one core of its own where the confinement has cores.
    """

    def __init__(
        self, size: int, timeouts: UciTimeouts, confinement: EngineLimits | None = None
    ) -> None:
        self.timeouts = timeouts
        self.confinement = confinement or EngineLimits()
        self.newest: Job | None = None
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.events: SimpleQueue[Event | None] = SimpleQueue()
        self.unwanted: set[str] = set()
        self._slots = [Slot(number, self) for number in range(size)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._slots)

    def submit(self, job: Job) -> None:
        self.newest = job
        self.jobs.put(job)

    def stop(self, key: str) -> None:
        """Break a job off, or keep it from starting; JobStopped follows, unless it ended first."""
        self.unwanted.add(key)
        for slot in self._slots:
            slot.stop(key)

    def recall(self) -> None:
        """Take back the jobs that no slot has begun; JobStopped follows for each."""
        for job in _drained(self.jobs):
            self.events.put(JobStopped(job.key))

    def next_event(self, seconds: float) -> Event | None:
        """The next event, waited for at most so long; None also when `wake` was called."""
        try:
            event = self.events.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        if isinstance(event, Ended):
            self.unwanted.discard(event.key)
        return event

    def wake(self) -> None:
        """End a wait for the next event; a signal handler may call it."""
        self.events.put(None)

    def close(self) -> None:
        """Let every slot finish the job it has, then end its engines and its thread."""
        self.recall()
        for _ in self._slots:
            self.jobs.put(None)
        for slot in self._slots:
            slot.join()
        self._slots.clear()


def _drained(jobs: "SimpleQueue[Job | None]") -> Iterator[Job]:
    while True:
        try:
            job = jobs.get_nowait()
        except Empty:
            return
        if job is not None:
            yield job


def _void(job: Job, pairing: Pairing, error: VoidGame) -> PairVoid:
    return PairVoid(job.key, pairing, error.culprit, error.reason, str(error))
