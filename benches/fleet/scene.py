"""What is simulated, in the seconds of a real fleet, and how it comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

SLOTS = 8
GAME_SECONDS, GAME_SPREAD = 10.0, 4.0
BUILD_SECONDS = 30.0
BATCH_GAMES = 10
MIN_GAMES = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A fleet and its run; time passes `haste` times as fast as it would.

    After `warm` seconds of play what slots do is measured for `seconds`.
    """

    workers: int
    games: int
    builders: int
    warm: float
    seconds: float
    haste: float

    @property
    def slots(self) -> int:
        return self.workers * SLOTS

    def game(self, chance: Random) -> float:
        """How long a game lasts here: a gamma law, so that none is shorter than nothing."""
        shape = (GAME_SECONDS / GAME_SPREAD) ** 2
        return chance.gammavariate(shape, GAME_SECONDS / shape) / self.haste

    def wait(self, seconds: float) -> float:
        """What so many seconds of a real fleet are here."""
        return seconds / self.haste


FLEETS = {
    1: Scene(workers=1, games=150, builders=1, warm=400, seconds=1600, haste=40),
    8: Scene(workers=8, games=150, builders=2, warm=200, seconds=600, haste=8),
    64: Scene(workers=64, games=600, builders=4, warm=150, seconds=200, haste=2),
    256: Scene(workers=256, games=2000, builders=4, warm=150, seconds=150, haste=1),
}
"""By the number of workers. Iterations are as large as two builds of so many at a time need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What was measured: parts of the slots' time, and of one processor's by the database.

    `iterations` were applied in the window, and as many as `depth` were in flight on average.
    """

    playing: float
    database: float | None
    fleet: float
    iterations: int
    in_flight: float


Span = tuple[float, float]
"""When something began and ended, by the clock of the machine."""


def overlap(spans: Sequence[Span], window: Span) -> float:
    """Seconds of the spans inside a window."""
    first, last = window
    return sum(max(0.0, min(end, last) - max(begin, first)) for begin, end in spans)
