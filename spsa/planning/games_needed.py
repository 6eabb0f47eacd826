"""How many games have to be ready so that no slot waits, and how they are cut into batches.

While the engines of the next iteration are built, the slots play games that are ready. So many have
to be ready when a build begins that they last until it ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt

REACTION_SECONDS = 1.5
"""The seconds that pass besides the build: the master's tick, and the poll of an idle worker."""

RESULTS_PER_ONE_IN_FLIGHT = 4
"""Iterations in flight grow with the results: one more iteration in flight after this many."""

MAX_IN_FLIGHT = 64
"""The most iterations in flight that were simulated."""

_SAFETY = 3.0  # standard deviations of the claims while engines are built


@dataclass(frozen=True, slots=True, kw_only=True)
class GamesNeeded:
    """The games that the machines need.

    `slots` play games of `game_seconds` in batches of at most `batch_games`. An iteration has
    `games`, its engines are built in `build_seconds`, and `builders` iterations at a time.
    """

    slots: int
    game_seconds: float
    games: int
    batch_games: int
    build_seconds: float
    builders: int = 1

    @property
    def rate(self) -> float:
        """Games per second of the fleet."""
        return self.slots / self.game_seconds

    @property
    def wanted(self) -> float:
        """Games that have to be ready or being built, so that no slot waits.

        Claims are a Poisson process. The number is what is claimed during a build, plus three
        standard deviations, but at most what all slots can claim.
        """
        if not self.slots:
            return 1.0
        lead, batch = self._lead, self._batch
        claims = self.rate * lead / batch
        most = self.slots * ceil(lead / (batch * self.game_seconds))
        return batch * min(claims + _SAFETY * sqrt(claims), most)

    @property
    def in_flight(self) -> int:
        """Iterations in flight, for the wanted games and for those being played.

        Until the oldest batch is reported, the slots hold one batch each.
        """
        return 1 + ceil((self.wanted + self.slots * self._batch) / self.games)

    @property
    def games_to_build(self) -> float:
        """Games that an iteration needs so that builds keep up with the slots."""
        return self.rate * self.build_seconds / self.builders

    def games_for(self, in_flight: int) -> int:
        """Games that an iteration needs so that `in_flight` of them keep all slots busy."""
        needed = self.wanted + self.slots * self._batch
        enough = max(needed / max(1, in_flight - 1), self.games_to_build, self.games)
        return 2 * ceil(enough / 2)

    def remedy(self, in_flight: int) -> str:
        """What would keep the slots busy with at most `in_flight` iterations in flight."""
        if in_flight < 2 and self.games_to_build <= self.games:
            waits = "builds" if self.build_seconds else "waits between iterations"
            return f"more iterations, or more games in each, reduce the part of the {waits}"
        return f"games_per_iteration = {self.games_for(in_flight)} keeps them busy"

    @property
    def _lead(self) -> float:
        return self.build_seconds + REACTION_SECONDS

    @property
    def _batch(self) -> int:
        return cut(self.games, self.batch_games, self.slots)[0]


def cut(games: int, most: int, slots: int) -> tuple[int, ...]:
    """The sizes of an iteration's batches: whole pairs, at most `most` games, smaller to the end.

    Each batch is an equal share of the remaining games for each slot (guided self-scheduling,
    Polychronopoulos and Kuck 1987), so the last ones are single pairs and end together.
    """
    return tuple(_shares(games, most, slots))


def _shares(games: int, most: int, slots: int) -> Iterator[int]:
    left = games
    while left:
        share = 2 * max(1, left // max(1, slots) // 2)
        yield min(share, most, left)
        left -= min(share, most, left)


def evenly(games: int, most: int) -> tuple[int, ...]:
    """Batches of `most` games, and one with the rest."""
    return tuple(min(most, games - start) for start in range(0, games, most))


ITERATIONS_PER_ONE_IN_FLIGHT = 100
"""How many planned iterations a run needs for each one in flight.

In shorter runs results come too late for the steps of some rules, which gain less:
`benches.papers compare --depth 1,2,4`, docs/operations.md.
"""


def in_flight_limit(planned_iterations: int) -> int:
    """The most iterations in flight for a run of this length."""
    return min(max(1, planned_iterations // ITERATIONS_PER_ONE_IN_FLIGHT), MAX_IN_FLIGHT)


def in_flight_after(results: int) -> int:
    """The most in flight after `results`: few at first, because the first steps are largest."""
    return 1 + results // RESULTS_PER_ONE_IN_FLIGHT
