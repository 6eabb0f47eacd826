"""Games enough that no slot finds none: how many have to lie ready, and how they are cut.

The slots of a fleet are the customers of a store, new iterations are its deliveries, and a delivery
takes as long as two engines are built. What has to be in store when the next one is ordered is the
reorder point of an inventory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt

REACTION_SECONDS = 1.5
"""What comes on top of a build: the looks of a master, the polls of a worker that found nothing."""

RESULTS_PER_DEPTH = 4
"""Depth grows with the results: one iteration more in flight for every so many that are applied."""

MOST_DEPTH = 64
"""More in flight was never simulated."""

_SURE = 3.0  # standard deviations of the claims while engines are built


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Who waits for games, and what for.

    `slots` play games of `game_seconds` in batches of at most `batch_games`; an iteration has
    `games`, and its engines are built in `build_seconds`, those of `builders` iterations at a time.
    """

    slots: int
    game_seconds: float
    games: int
    batch_games: int
    build_seconds: float
    builders: int = 1

    @property
    def rate(self) -> float:
        """Games that the fleet plays in a second."""
        return self.slots / self.game_seconds

    @property
    def wanted(self) -> float:
        """Games that have to lie ready or be in the making, lest a slot should find none.

        Claims come as batches end, as in a Poisson stream: what is claimed while engines are built
        and three standard deviations more, but never more than all slots together could claim.
        """
        if not self.slots:
            return 1.0
        lead, batch = self._lead, self._batch
        claims = self.rate * lead / batch
        most = self.slots * ceil(lead / (batch * self.game_seconds))
        return batch * min(claims + _SURE * sqrt(claims), most)

    @property
    def depth(self) -> int:
        """Iterations in flight: their games are wanted, or are being played.

        Until the oldest batch is reported the others claim as many games as all slots hold.
        """
        return 1 + ceil((self.wanted + self.slots * self._batch) / self.games)

    @property
    def games_to_build(self) -> float:
        """Games that an iteration needs for the builds to keep up with the slots."""
        return self.rate * self.build_seconds / self.builders

    def games_for(self, depth: int) -> int:
        """Games that an iteration needs for so many in flight to keep all slots busy."""
        owed = self.wanted + self.slots * self._batch
        enough = max(owed / max(1, depth - 1), self.games_to_build, self.games)
        return 2 * ceil(enough / 2)

    def remedy(self, depth: int) -> str:
        """What would keep the slots busy where no more than so many in flight are borne."""
        if depth < 2 and self.games_to_build <= self.games:
            return "more iterations, or more games in each, leave less of the time to builds"
        return f"games_per_iteration = {self.games_for(depth)} keeps them busy"

    @property
    def _lead(self) -> float:
        return self.build_seconds + REACTION_SECONDS

    @property
    def _batch(self) -> int:
        return cut(self.games, self.batch_games, self.slots)[0]


def cut(games: int, most: int, slots: int) -> tuple[int, ...]:
    """The sizes of an iteration's batches: whole pairs, at most `most` games, smaller to the end.

    Each batch is a fair share of what is left for so many slots (guided self-scheduling, Polychro-
    nopoulos and Kuck 1987), so that the last ones are single pairs and end together.
    """
    return tuple(_shares(games, most, slots))


def _shares(games: int, most: int, slots: int) -> Iterator[int]:
    left = games
    while left > 0:
        share = 2 * max(1, left // max(1, slots) // 2)
        yield min(share, most, left)
        left -= min(share, most, left)


def evenly(games: int, most: int) -> tuple[int, ...]:
    """Batches of `most` games, and one with the rest."""
    return tuple(min(most, games - start) for start in range(0, games, most))


def depth_limit(planned_iterations: int, iterations_per_depth: int, most: int = MOST_DEPTH) -> int:
    """The most iterations in flight that a run of this length bears."""
    return min(max(1, planned_iterations // iterations_per_depth), most)


def depth_after(results: int) -> int:
    """The most in flight after so many results: the first ones move theta most."""
    return 1 + results // RESULTS_PER_DEPTH
