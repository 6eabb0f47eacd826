"""What is to be planned: a run's files, and what is known or assumed of its games."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from spsa.core.params import Space
from spsa.core.scoring import ELO_PER_SCORE
from spsa.lab.planning.prospect import Prospect, Recovery, RunDesign, recovery
from spsa.lab.planning.speed import Fleet, Shape, demand_of
from spsa.lab.planning.supply import Demand

STAKES = (5.0, 20.0, 60.0)
"""Elo there may be to gain when nobody says how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`design` is simulated `replicas` times from `seed`, with each of the `stakes` to gain.

    `seconds` is what a game takes, None where nobody knows.
    """

    space: Space
    design: RunDesign
    shape: Shape
    fleet: Fleet
    seconds: float | None
    draw_rate: float
    stakes: Sequence[float] = STAKES
    replicas: int = 32
    seed: int = 1

    def recovery(self, design: RunDesign, stake: float) -> Recovery:
        prospect = Prospect(stake=stake, draw_rate=self.draw_rate)
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
        """What the fleet asks of the supply of games; None where nobody knows how long they are."""
        return None if self.seconds is None else demand_of(self.shape, self.fleet, self.seconds)

    @property
    def stake(self) -> float:
        """The one that single figures are given for."""
        return self.stakes[len(self.stakes) // 2]


def noise(draw_rate: float, pairs: int) -> float:
    """One standard deviation of the Elo of so many pairs between equals: C tau / (2 sqrt P)."""
    return ELO_PER_SCORE * sqrt(2 * (1 - draw_rate)) / (2 * sqrt(pairs))
