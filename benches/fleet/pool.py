"""Slots that sleep: the `worker.runner.pool.Pool` of a worker, without engines and threads."""

import heapq
import time
from collections import deque
from collections.abc import Iterator
from itertools import count
from math import inf
from pathlib import Path
from random import Random

import chess

from benches.fleet.scene import Scene, Span
from spsa.protocol import Claim
from spsa.uci.spawning import EngineLimits, EngineSpec
from worker.batches.jobs import JobMaker
from worker.runner.game import Game, Pair
from worker.runner.pool import Event, Job, JobEnded
from worker.runner.position import Ending, Termination

_ENGINE = EngineSpec(name="plus", path="engine", options={})


class NoEngines(JobMaker):
    """Makes jobs whose engines nobody starts."""

    def __init__(self) -> None:
        super().__init__(Path("nowhere"), lambda _: None)

    def specs(self, _claim: Claim) -> tuple[EngineSpec, EngineSpec]:
        return _ENGINE, _ENGINE


class SleepingPool:
    """`size` slots. A slot begins its next job when the last one ends, whoever is told when.

    `spans` are the times in which a slot was in a game.
    """

    limits = EngineLimits()

    def __init__(self, size: int, scene: Scene, chance: Random) -> None:
        self.spans: list[Span] = []
        self._size = size
        self._scene, self._chance = scene, chance
        self._free = size
        self._jobs: deque[tuple[float, Job]] = deque()  # and when they came
        self._events: list[tuple[float, int, Event]] = []
        self._order = count()

    def __len__(self) -> int:
        return self._size

    def check_room(self, _job: Job) -> None:
        """Every job has one thread here."""

    def submit(self, job: Job) -> None:
        now = time.monotonic()
        self._jobs.append((now, job))
        self._begin(now)

    def stop(self, key: str) -> None:
        """Sleep on: nobody is asked to stop here but at the end of everything."""

    def withdraw_queued_jobs(self) -> None:
        """Keep them: as above."""

    def next_event(self, seconds: float = 0.0) -> Event | None:
        """The next event, waited for at most so long."""
        until = time.monotonic() + seconds
        due = self._events[0][0] if self._events else inf
        time.sleep(max(0.0, min(due, until) - time.monotonic()))
        if due > until:
            return None
        at, _, event = heapq.heappop(self._events)
        if isinstance(event, JobEnded):
            self._free += 1
            self._begin(at)
        return event

    def _begin(self, freed: float) -> None:
        """Let slots that fell free at some time begin what there was then, or came later."""
        while self._free and self._jobs:
            self._free -= 1
            came, job = self._jobs.popleft()
            begin = end = max(freed, came)
            for end, event in self._played(job, begin):
                heapq.heappush(self._events, (end, next(self._order), event))
            self.spans.append((begin, end))

    def _played(self, job: Job, now: float) -> Iterator[tuple[float, Event]]:
        for pairing in job.pairings:
            now += self._scene.game(self._chance) + self._scene.game(self._chance)
            yield now, Pair(job.key, pairing, self._game(), self._game(), 0)
        yield now, JobEnded(job.key)

    def _game(self) -> Game:
        ending = Ending(self._chance.randrange(3), Termination.CHECKMATE)
        return Game(ending, (), chess.WHITE)
