"""Randomised waits that grow while nothing comes of them."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffTimes:
    """Seconds: the n-th wait is about first * growth^n, at most `cap`, give or take `jitter`."""

    first: float
    growth: float
    cap: float
    jitter: float


POLL = BackoffTimes(first=0.25, growth=1.5, cap=2.0, jitter=0.2)
"""Between two questions for work that were answered with none."""

FAILURE = BackoffTimes(first=1.0, growth=2.0, cap=60.0, jitter=0.2)
"""After a batch that could not be played."""

RECONNECT = BackoffTimes(first=0.5, growth=2.0, cap=20.0, jitter=0.5)
"""Between two tries to reach a database; 30 s at most."""


class Backoff:
    """The waits of one thing that is tried again and again."""

    def __init__(self, pace: BackoffTimes, rng: random.Random) -> None:
        self._pace = pace
        self._rng = rng
        self._tries = 0

    def next(self) -> float:
        pace = self._pace
        wait = min(pace.cap, pace.first * pace.growth**self._tries)
        if wait < pace.cap:
            self._tries += 1
        return wait * self._rng.uniform(1 - pace.jitter, 1 + pace.jitter)

    def reset(self) -> None:
        self._tries = 0
