"""The generalised chi-square against tables, closed forms and drawn numbers."""

from math import erf, exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.papers.constant_gains import chi_square_quantile
from benches.papers.squares import SumOfSquares

# 95% points of chi^2 as van den Bergh's paper prints them.
CHI_SQUARE_95 = {
    1: 3.8414588206941236,
    2: 5.9914645471079799,
    3: 7.8147279032511765,
    4: 9.4877290367811540,
}


@pytest.mark.parametrize("degrees", CHI_SQUARE_95)
def test_the_quantiles_of_chi_square_are_those_of_the_paper(degrees: int) -> None:
    found = SumOfSquares.chi_square(degrees).quantile(0.95)
    assert found == pytest.approx(CHI_SQUARE_95[degrees], rel=1e-12)
    assert chi_square_quantile(degrees, 0.95) == pytest.approx(CHI_SQUARE_95[degrees], rel=1e-12)


@pytest.mark.parametrize("x", [1e-6, 0.1, 1.0, 9.0, 60.0])
@pytest.mark.parametrize("shift", [0.0, 0.3, 25.0, 4e4])
def test_one_square_is_an_interval_of_the_normal(x: float, shift: float) -> None:
    def normal(z: float) -> float:
        return (1 + erf(z / sqrt(2))) / 2

    centre = shift + x - 1  # near the mean, where there is something to see
    below = SumOfSquares(np.ones(1), np.array([shift])).cdf(max(centre, x))
    root = sqrt(max(centre, x))
    assert below == pytest.approx(
        normal(root - sqrt(shift)) - normal(-root - sqrt(shift)), abs=1e-12
    )


@pytest.mark.parametrize("x", [1e-3, 0.5, 3.0, 40.0])
def test_squares_in_pairs_are_a_sum_of_exponentials(x: float) -> None:
    weight = np.array([1.0, 0.3, 0.01, 1e-4])
    rate = 1 / (2 * weight)
    expected = 1.0
    for i in range(4):
        others = np.delete(rate, i)
        expected -= exp(-rate[i] * x) * float(np.prod(others / (others - rate[i])))
    found = SumOfSquares(np.repeat(weight, 2), np.zeros(8)).cdf(x)
    assert found == pytest.approx(expected, abs=1e-12)


values = st.floats(1e-4, 1e2)
parts = st.lists(st.tuples(values, st.one_of(st.just(0.0), values)), min_size=1, max_size=8)


@settings(max_examples=15, deadline=None)
@given(parts, st.floats(0.02, 0.98))
def test_quantiles_invert_the_distribution_whose_unit_is_free(
    given_parts: list[tuple[float, float]], probability: float
) -> None:
    weight, shift = np.array(given_parts).T
    squares = SumOfSquares(weight, shift)
    x = squares.quantile(probability)
    assert squares.cdf(x) == pytest.approx(probability, abs=1e-8)
    assert SumOfSquares(7 * weight, 7 * shift).cdf(7 * x) == pytest.approx(probability, abs=1e-8)
    assert squares.cdf(0.9 * x) < probability < squares.cdf(1.1 * x)
