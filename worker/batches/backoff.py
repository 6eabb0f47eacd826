"""Random waits that grow with each failed attempt."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffTimes:
    """Seconds: the n-th wait is min(first * growth^n, cap), times 1 - jitter to 1 + jitter."""

    first: float
    growth: float
    cap: float
    jitter: float


POLL = BackoffTimes(first=0.25, growth=1.5, cap=2.0, jitter=0.2)
"""Between two claims while the database has no free batch."""

FAILURE = BackoffTimes(first=1.0, growth=2.0, cap=60.0, jitter=0.2)
"""After a batch that could not be played."""

RECONNECT = BackoffTimes(first=0.5, growth=2.0, cap=20.0, jitter=0.5)
"""Between two attempts to reach the database; 30 s at most."""


class Backoff:
    """The waits between the attempts at one thing."""

    def __init__(self, times: BackoffTimes, rng: random.Random) -> None:
        self._times = times
        self._rng = rng
        self._attempts = 0

    def next(self) -> float:
        times = self._times
        wait = min(times.cap, times.first * times.growth**self._attempts)
        if wait < times.cap:
            self._attempts += 1
        return wait * self._rng.uniform(1 - times.jitter, 1 + times.jitter)

    def reset(self) -> None:
        self._attempts = 0
