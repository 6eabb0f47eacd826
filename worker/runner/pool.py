"""A pool of slots: one thread each, jobs in, events out.

A slot's thread lives as long as the pool and starts its own engines, because the kernel kills an
engine when the thread that started it ends. The threads know no database.
"""

import gc
import logging
import sys
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from math import ceil
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Self

from chess.syzygy import Tablebase

from spsa.core.game_settings import GameSettings
from spsa.errors import InvalidInput
from spsa.uci import system
from spsa.uci.process import Stopped
from spsa.uci.spawning import EngineLimits, EngineSpec
from worker.runner.engine_pair import EnginePair
from worker.runner.game import GameVoid, Pair, Pairing, play_pair

log = logging.getLogger(__name__)

_SWITCH_SECONDS = 0.0002  # how long one thread may keep the others waiting
_GC_THRESHOLDS = (20_000, 20, 50)  # games leave next to no garbage behind


def tune_interpreter() -> None:
    """Let a slot hear its engine at once, whatever the other threads do.

    Call it when everything that stays is loaded: none of that is searched for garbage.
    """
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    sys.setswitchinterval(_SWITCH_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Pairs that one slot plays one after the other; `label` is what a log calls them.

    `key` is unique. A void pair is played again, at most `max_void` times; then the job fails. It
    fails at once when the reason is permanent.
    """

    key: str
    plus: EngineSpec
    minus: EngineSpec
    pairings: tuple[Pairing, ...]
    settings: GameSettings
    tables: Tablebase | None = None
    label: str = ""
    max_void: int = 3

    @property
    def slots(self) -> int:
        """How many slots it takes: one for each thread of an engine, as one engine thinks."""
        return max(self.plus.threads, self.minus.threads)

    def attempt(self, pairing: Pairing, voids: int) -> Pairing:
        """One of its pairings as it is played after so many void attempts.

        If it was void twice by the same nodes or depth, it always would be: then it gets a tenth
        more each time.
        """
        if voids < 2 or not self.settings.time_control.reproducible:
            return pairing
        return replace(pairing, time=float(ceil(pairing.time * (9 + voids) / 10)))

    def scaled(self, factor: float) -> "Job":
        """The job with its times multiplied."""
        return replace(
            self,
            pairings=tuple(replace(one, time=factor * one.time) for one in self.pairings),
            settings=self.settings.under(self.settings.time_control.scaled(factor)),
        )


@dataclass(frozen=True, slots=True)
class PairVoid:
    """A pair that does not count; `output` is what the engine at fault has written last."""

    key: str
    pairing: Pairing
    fault: GameVoid
    output: str = ""


@dataclass(frozen=True, slots=True)
class JobEnded:
    """All pairs of a job were played, unless it has a `failure` or was broken off.

    `culprit` is the engine that has failed; empty for a defect of this program.
    """

    key: str
    failure: str | None = None
    culprit: str = ""
    was_stopped: bool = False


Event = Pair | PairVoid | JobEnded


class Slot:
    """One thread that plays one job at a time; `playing` is the key of the latest."""

    def __init__(self, number: int, pool: "Pool") -> None:
        self._number = number
        self._pool = pool
        self.playing = ""
        self.thread = Thread(target=self._run, name=f"slot {number}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        system.let_engines_run_on()
        with closing(EnginePair(self._pool.limits, self._is_stopped)) as engines:
            while (job := self._pool.jobs.get()) is not None:
                self.playing = job.key
                self._pool.events.put(self._play(job, engines))

    def _is_stopped(self) -> bool:
        return self.playing in self._pool.unwanted

    def _play(self, job: Job, engines: EnginePair) -> JobEnded:
        try:
            for pairing in job.pairings:
                if (ended := self._play_until_valid(job, pairing, engines)) is not None:
                    return ended
            return JobEnded(job.key)
        except Stopped:
            engines.close()
            return JobEnded(job.key, was_stopped=True)
        except Exception as error:
            # A defect of this program costs one job and is reported; the other slots play on.
            verbose = log.isEnabledFor(logging.DEBUG)
            log.error("a slot met a defect of this program", exc_info=verbose)
            engines.close()
            return JobEnded(job.key, f"defect in the worker: {error!r}")

    def _play_until_valid(self, job: Job, pairing: Pairing, engines: EnginePair) -> JobEnded | None:
        """Play one pair until it counts; the end of the job when it does not."""
        failure = culprit = ""
        for voids in range(job.max_void + 1):
            attempt = job.attempt(pairing, voids)
            try:
                self._pool.events.put(self._pair(job, attempt, engines))
                return None
            except GameVoid as error:
                culprit = error.culprit
                output = engines.last_lines(culprit)
                engines.close()
                self._pool.events.put(PairVoid(job.key, attempt, error, output))
                failure = f"a pair was void {job.max_void + 1} times, the last time: {error}"
                if error.reason == "refused option":  # as in every other attempt
                    failure = f"a pair is void and would be void again: {error}"
                    break
        return JobEnded(job.key, failure, culprit)

    def _pair(self, job: Job, pairing: Pairing, engines: EnginePair) -> Pair:
        def start_next() -> None:
            newest = self._pool.newest
            engines.start_next(newest.plus, newest.minus)

        plus, minus = engines.engines(job.plus, job.minus)
        games = play_pair(plus, minus, pairing, job.settings, job.tables, start_next)
        return Pair(job.key, pairing, *games, self._number)


class Pool:
    """`size` slots that share one queue of jobs; events come in the order in which they happened.

    The limits hold for each engine; `newest` is the job that was submitted last.
    """

    newest: Job

    def __init__(self, size: int, limits: EngineLimits) -> None:
        self.limits = limits
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.unwanted: set[str] = set()
        self._slots = [Slot(number, self) for number in range(size)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let every slot finish its job, then end its engines and its thread."""
        self.withdraw_queued_jobs()
        for _slot in self._slots:
            self.jobs.put(None)
        for slot in self._slots:
            slot.thread.join()

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def playing(self) -> list[str]:
        """The job that each slot plays or has played last, by its key."""
        return [slot.playing for slot in self._slots]

    def check_room(self, job: Job) -> None:
        """InvalidInput where its engines have more threads than there are slots."""
        if job.slots > len(self):
            found = f"Threads = {job.slots} needs as many slots, and there are {len(self)}"
            raise InvalidInput.of("-c", "concurrency", found, "raise -c")

    def submit(self, job: Job) -> None:
        self.newest = job
        self.jobs.put(job)

    def stop(self, key: str) -> None:
        """Break off a job, or keep it from starting; its end follows unless it has ended."""
        self.unwanted.add(key)

    def withdraw_queued_jobs(self) -> None:
        """Withdraw the jobs that no slot has begun; the end of each follows."""
        with suppress(Empty):
            while True:
                if (job := self.jobs.get_nowait()) is not None:
                    self.events.put(JobEnded(job.key, was_stopped=True))

    def next_event(self, seconds: float = 0.0) -> Event | None:
        """The next event; None when none comes in this time."""
        try:
            event = self.events.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        if isinstance(event, JobEnded):
            self.unwanted.discard(event.key)
        return event
