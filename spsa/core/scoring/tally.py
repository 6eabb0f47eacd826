"""Tallies of game pairs, with their pentanomial."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

Pentanomial = tuple[int, int, int, int, int]

NO_PAIRS: Pentanomial = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of whole game pairs, from plus's side.

    `pentanomial[i]` is the number of pairs in which plus scored i half points (LL, LD, WL or DD,
    WD, WW). wins + losses + draws = 2 * sum(pentanomial).
    """

    wins: int = 0
    losses: int = 0
    draws: int = 0
    pentanomial: Pentanomial = NO_PAIRS

    @classmethod
    def of_pair(cls, first: int, second: int) -> Self:
        """The tally of one pair from plus's half points (0, 1 or 2) in its two games."""
        games = (first, second)
        counts = [0] * 5
        counts[first + second] = 1
        return cls(games.count(2), games.count(0), games.count(1), _five(counts))

    @property
    def games(self) -> int:
        return self.wins + self.losses + self.draws

    @property
    def pairs(self) -> int:
        return sum(self.pentanomial)

    @property
    def consistent(self) -> bool:
        """Whether the two ways of counting the same games agree."""
        half_points = sum(i * n for i, n in enumerate(self.pentanomial))
        return (
            min(self.wins, self.losses, self.draws, *self.pentanomial) >= 0
            and self.games == 2 * self.pairs
            and half_points == 2 * self.wins + self.draws
        )

    def __add__(self, other: "Tally") -> "Tally":
        counts = [a + b for a, b in zip(self.pentanomial, other.pentanomial, strict=True)]
        return Tally(
            self.wins + other.wins,
            self.losses + other.losses,
            self.draws + other.draws,
            _five(counts),
        )

    def without(self, part: "Tally") -> "Tally":
        """The tally without a part of its games."""
        counts = [a - b for a, b in zip(self.pentanomial, part.pentanomial, strict=True)]
        return Tally(
            self.wins - part.wins,
            self.losses - part.losses,
            self.draws - part.draws,
            _five(counts),
        )

    def __neg__(self) -> "Tally":
        return Tally(self.losses, self.wins, self.draws, _five(self.pentanomial[::-1]))


def _five(counts: Sequence[int]) -> Pentanomial:
    ll, ld, even, wd, ww = counts
    return ll, ld, even, wd, ww
