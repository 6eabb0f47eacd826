"""The input of a plan: a run's files, and what is known or assumed about its games."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from spsa.core.params import Space
from spsa.core.scoring import ELO_PER_SCORE
from spsa.lab.planning.prospect import Prospect, Recovery, RunDesign, recovery
from spsa.lab.planning.speed import Fleet, Shape, demand_of
from spsa.lab.planning.supply import Demand

ASSUMED_ELO_TO_GAIN = (5.0, 20.0, 60.0)
"""The default assumptions about the Elo to gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`design` is simulated `replicas` times from `seed`, with each of the `elos_to_gain`.

    `seconds` is the time of a game; None if it is unknown.
    """

    space: Space
    design: RunDesign
    shape: Shape
    fleet: Fleet
    seconds: float | None
    draw_rate: float
    elos_to_gain: Sequence[float] = ASSUMED_ELO_TO_GAIN
    replicas: int = 32
    seed: int = 1

    def recovery(self, design: RunDesign, elo_to_gain: float) -> Recovery:
        prospect = Prospect(elo_to_gain=elo_to_gain, draw_rate=self.draw_rate)
        return recovery(design, prospect, replicas=self.replicas, seed=self.seed)

    @property
    def builds_are_slower(self) -> bool:
        """Whether building an iteration takes longer than playing it."""
        fleet, shape = self.fleet, self.shape
        if self.seconds is None:
            return False
        playing = shape.games * self.seconds / fleet.concurrency
        return fleet.build_seconds / fleet.builders > playing

    @property
    def demand(self) -> Demand | None:
        """The fleet's demand for games; None if the time of a game is unknown."""
        return None if self.seconds is None else demand_of(self.shape, self.fleet, self.seconds)

    @property
    def elo_to_gain(self) -> float:
        """The assumption for which single figures are given."""
        return self.elos_to_gain[len(self.elos_to_gain) // 2]


def noise(draw_rate: float, pairs: int) -> float:
    """One standard deviation of the Elo of `pairs` between equals: C tau / (2 sqrt P)."""
    return ELO_PER_SCORE * sqrt(2 * (1 - draw_rate)) / (2 * sqrt(pairs))
