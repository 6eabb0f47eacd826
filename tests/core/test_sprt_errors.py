"""How often a sequential test accepts the wrong hypothesis, by simulation: 5%, as it says.

Wald, "Sequential Analysis", gives the expected length, too: 0.9 log(19) / (d^2 / 2) pairs at either
hypothesis, where d is their distance in deviations of a pair.
"""

from math import log, sqrt

import numpy as np
import pytest

from spsa.core.scoring import ELO_PER_SCORE, Tally, sprt

TESTS = 2000
PAIRS_A_LOOK = 4
LOOKS = 3000
RESULTS = np.arange(-2.0, 3.0)
DRAWISH = np.array([0.02, 0.20, 0.52, 0.22, 0.04])


def deviations(distribution):
    """The mean of a pair's wins minus losses in its own deviations."""
    mean = distribution @ RESULTS
    return mean / sqrt(distribution @ (RESULTS - mean) ** 2)


def with_nelo(nelo):
    """A distribution of pairs that is so much normalised Elo, near `DRAWISH`."""
    wanted, low, high = nelo * sqrt(2) / ELO_PER_SCORE, -5.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        tilted = DRAWISH * np.exp(middle * RESULTS)
        tilted /= tilted.sum()
        low, high = (middle, high) if deviations(tilted) < wanted else (low, middle)
    return tilted


def accepted(counts, bounds):
    """The hypothesis that a test accepts and the pairs it took; `counts` has every look's tally.

    Only looks at which the test may end are taken: the ratio is close to
    (pairs / 2) log((1 + (T - T0)^2) / (1 + (T - T1)^2)), van den Bergh's "Normalized Elo".
    """
    pairs = counts.sum(axis=1)
    mean = counts @ RESULTS / pairs
    deviation = np.sqrt(np.maximum(counts @ RESULTS**2 / pairs - mean**2, 1e-3))
    first, second = (mean / deviation - nelo * sqrt(2) / ELO_PER_SCORE for nelo in bounds)
    nearly = pairs / 2 * np.log((1 + first**2) / (1 + second**2))
    apart = np.where(pairs < 400, 0.44, 0.12)  # how far the two are apart at most
    for look in np.flatnonzero(np.abs(nearly) > log(19) - apart):
        one, two, three, four, five = (int(n) for n in counts[look])
        test = sprt(Tally(pentanomial=(one, two, three, four, five)), *bounds)
        assert abs(test.llr - nearly[look]) < apart[look]
        if test.accepted is not None:
            return test.accepted, int(pairs[look])
    raise AssertionError(f"no decision after {pairs[-1]} pairs")


@pytest.mark.slow
@pytest.mark.parametrize("truth", [0, pytest.param(1, marks=pytest.mark.long)])
def test_the_wrong_hypothesis_is_accepted_in_five_of_a_hundred_tests(truth):
    bounds = (0.0, 20.0)
    rng = np.random.default_rng(20 + truth)
    outcomes = [
        accepted(
            np.cumsum(rng.multinomial(PAIRS_A_LOOK, with_nelo(bounds[truth]), LOOKS), 0), bounds
        )
        for _ in range(TESTS)
    ]
    wrong = sum(found != truth for found, _ in outcomes) / TESTS
    length = sum(pairs for _, pairs in outcomes) / TESTS
    assert 0.04 <= wrong <= 0.06, (wrong, length)
    apart = (bounds[1] - bounds[0]) * sqrt(2) / ELO_PER_SCORE
    assert length == pytest.approx(0.9 * log(19) * 2 / apart**2, rel=0.1)
