"""The generalised sequential probability ratio test on the pentanomial.

The log-likelihood ratio compares the two most likely distributions of a pair's result under the
hypotheses (Van den Bergh, "A practical introduction to the GSPRT"). The hypotheses are about
normalised Elo, whose tests last about equally long with any book and draw rate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt

from spsa.core.scoring import ELO_PER_SCORE, Tally

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
