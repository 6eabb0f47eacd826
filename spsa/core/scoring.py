"""Tallies of game pairs, Elo and sequential tests from a tally, with errors that count pairs.

A pair gives w = wins - losses of plus, -2..2. The two games of a pair share their opening, so the
variance tau^2 of w decides the error of a score.

Two regularisations keep the errors of small and one-sided tallies realistic; neither matters after
some hundred ordinary pairs:
- a score of 0 or 1 counts as half of its own smallest step, 1 / (8 pairs), away from there. No
  other score is changed by that; 20 won pairs of 20 are 881 Elo, 500 of 500 are 1441;
- variances start from `PRIOR_WEIGHT` pairs of variance `PRIOR_VARIANCE`, so that a few pairs with
  equal results do not have an error of 0.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import atanh, erf, erfc, exp, fsum, inf, log, sqrt
from operator import add, sub
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
        pair = (int(first + second == half_points) for half_points in range(5))
        return cls.of((games.count(2), games.count(0), games.count(1), *pair))

    @classmethod
    def of(cls, counts: Iterable[int]) -> Self:
        """The tally with these `counts`."""
        wins, losses, draws, ll, ld, even, wd, ww = counts
        return cls(wins, losses, draws, (ll, ld, even, wd, ww))

    @property
    def counts(self) -> tuple[int, ...]:
        """Wins, losses, draws, and the pentanomial."""
        return self.wins, self.losses, self.draws, *self.pentanomial

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
            min(self.counts) >= 0
            and self.games == 2 * self.pairs
            and half_points == 2 * self.wins + self.draws
        )

    def __add__(self, other: "Tally") -> "Tally":
        return Tally.of(map(add, self.counts, other.counts))

    def without(self, part: "Tally") -> "Tally":
        """The tally without a part of its games."""
        return Tally.of(map(sub, self.counts, part.counts))

    def __neg__(self) -> "Tally":
        return Tally.of((self.losses, self.wins, self.draws, *self.pentanomial[::-1]))


ELO_PER_SCORE = 800 / log(10)
"""Elo for a unit of score difference between equals: C of van den Bergh's (2.1)."""

PRIOR_VARIANCE = 0.8
PRIOR_WEIGHT = 2.0
# the 97.5 % quantile of the normal distribution
_HALF_WIDTH = 1.9599639845400536


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the half width of its 95% interval, in the same unit."""

    value: float
    error: float


def score(tally: Tally) -> float:
    """The score of plus per game, 0..1; a half without games."""
    half_points = sum(i * n for i, n in enumerate(tally.pentanomial))
    return half_points / (4 * tally.pairs) if tally.pairs else 0.5


def pair_variance(tally: Tally) -> float:
    """tau^2: the variance of w = wins - losses in a pair, about the observed mean."""
    mean = _mean(tally)
    return _variance(_moment(tally, mean), max(tally.pairs - 1, 0))


def null_variance(tally: Tally) -> float:
    """tau^2 about 0: the variance of w if both players are equal."""
    return _variance(_moment(tally, 0.0), tally.pairs)


def standard_error(tally: Tally) -> float:
    """One standard deviation of `elo`; infinite without games.

    By the slope of Elo at the result, whose own standard error is tau / (2 sqrt(pairs)).
    """
    if not tally.pairs:
        return inf
    slope = ELO_PER_SCORE / (2 * (1 - _inner_result(tally) ** 2))
    return slope * sqrt(pair_variance(tally) / tally.pairs)


def elo(tally: Tally) -> Estimate:
    """Elo of plus over minus by the pentanomial; 0 with an infinite error without games."""
    value = ELO_PER_SCORE * atanh(_inner_result(tally))
    return Estimate(value, _HALF_WIDTH * standard_error(tally))


def nelo(tally: Tally) -> Estimate:
    """Normalised Elo: the difference in standard deviations of a game, times `ELO_PER_SCORE`.

    Its error depends on the number of games alone (van den Bergh, "Normalized Elo"); infinite
    without games.
    """
    deviation = sqrt(2 * pair_variance(tally))
    error = _HALF_WIDTH / sqrt(2 * tally.pairs) if tally.pairs else inf
    return Estimate(ELO_PER_SCORE * _mean(tally) / deviation, ELO_PER_SCORE * error)


def los(tally: Tally) -> float:
    """Likelihood of superiority: the probability, 0..1, that plus is the stronger one."""
    deviations = _mean(tally) * sqrt(tally.pairs / null_variance(tally))
    return 0.5 * (1.0 + erf(deviations / sqrt(2.0)))


def _mean(tally: Tally) -> float:
    total = sum((i - 2) * n for i, n in enumerate(tally.pentanomial))
    return total / tally.pairs if total else 0.0


def _moment(tally: Tally, about: float) -> float:
    return fsum(n * (i - 2 - about) ** 2 for i, n in enumerate(tally.pentanomial))


def _variance(squares: float, weight: float) -> float:
    return (PRIOR_WEIGHT * PRIOR_VARIANCE + squares) / (PRIOR_WEIGHT + weight)


def _inner_result(tally: Tally) -> float:
    """Wins - losses per game, -1..1, kept inside: 2 score - 1, and exactly odd in the tally."""
    most = 1 - 1 / (4 * tally.pairs) if tally.pairs else 0.0
    return min(max(_mean(tally) / 2, -most), most)


def chi_square_tail(value: float, freedom: int) -> float:
    """The chance that chi-square is larger; Wilson & Hilferty 1931 from three degrees on."""
    if freedom == 1:
        return erfc(sqrt(value / 2))
    if freedom == 2:
        return exp(-value / 2)
    spread = 2 / (9 * freedom)
    deviations = ((value / freedom) ** (1 / 3) - (1 - spread)) / spread**0.5
    return 0.5 * erfc(deviations / sqrt(2.0))


# The generalised sequential probability ratio test on the pentanomial: the log-likelihood ratio
# compares the two most likely distributions of a pair's result under the hypotheses (Van den Bergh,
# "A practical introduction to the GSPRT"). Tests of normalised Elo last about equally long with any
# book and draw rate.

_SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)
_UNSEEN = 1e-3  # count of a result that did not occur, so that every hypothesis is possible
_EVEN = (0.2, 0.2, 0.2, 0.2, 0.2)
_BOUNDARY = log(0.95 / 0.05)  # either error has a probability of 5%
_ROUNDS = 10  # the linearised constraint converges in 3 to 5


@dataclass(frozen=True, slots=True)
class Sprt:
    """The state of a test: the log-likelihood ratio of H1 to H0, and its two boundaries."""

    llr: float
    lower: float
    upper: float

    @property
    def accepted(self) -> int | None:
        """The number of the accepted hypothesis, 0 or 1; None while the test goes on."""
        if self.llr >= self.upper:
            return 1
        return 0 if self.llr <= self.lower else None


def sprt(tally: Tally, nelo0: float, nelo1: float) -> Sprt:
    """Test H1: plus is nelo1 stronger in normalised Elo, against H0: it is nelo0 stronger."""
    ratio = _llr(tally, nelo0, nelo1) if tally.pairs else 0.0
    return Sprt(ratio, -_BOUNDARY, _BOUNDARY)


def _llr(tally: Tally, nelo0: float, nelo1: float) -> float:
    counts = [n or _UNSEEN for n in tally.pentanomial]
    pairs = sum(counts)
    seen = [n / pairs for n in counts]
    first, second = _with_deviations(seen, nelo0), _with_deviations(seen, nelo1)
    return sum(n * log(q1 / q0) for n, q0, q1 in zip(counts, first, second, strict=True))


def _with_deviations(seen: Sequence[float], nelo: float) -> list[float]:
    """The likeliest distribution whose mean is as many deviations from a half as `nelo` says.

    mean - 1/2 - t * deviation is not linear in the distribution; it is linearised about the last
    solution until that stands still.
    """
    t = sqrt(2) * nelo / ELO_PER_SCORE
    found: Sequence[float] = _EVEN
    for _ in range(_ROUNDS):
        found = _likeliest(seen, _linearised(found, t))
    return list(found)


def _linearised(distribution: Sequence[float], t: float) -> list[float]:
    mean = sum(q * s for q, s in zip(distribution, _SCORES, strict=True))
    variance = sum(q * (s - mean) ** 2 for q, s in zip(distribution, _SCORES, strict=True))
    scale = t * sqrt(variance) / 2
    return [s - 0.5 - scale * (1 + (s - mean) ** 2 / variance) for s in _SCORES]


def _likeliest(seen: Sequence[float], values: Sequence[float]) -> list[float]:
    """The distribution under which `seen` is likeliest of those whose mean of `values` is 0.

    By Lagrange it is seen / (1 + x * values), with the x for which that mean vanishes.
    """

    def mean(x: float) -> float:
        return sum(q * v / (1 + x * v) for q, v in zip(seen, values, strict=True))

    x = _falling_root(mean, -1 / max(values), -1 / min(values))
    return [q / (1 + x * v) for q, v in zip(seen, values, strict=True)]


def _falling_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function is 0 between two poles, by halving to the last bit."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return low
