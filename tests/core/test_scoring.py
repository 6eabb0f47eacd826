from math import inf, isfinite, isnan
from pathlib import Path

import pytest
from golden import compare_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.core.scoring import (
    Tally,
    elo,
    los,
    nelo,
    null_variance,
    pair_variance,
    score,
    sprt,
    standard_error,
)

unhurried = settings(deadline=None)  # the machine may be busy with games
counts = st.tuples(*[st.integers(0, 2000)] * 5)
halves = st.integers(0, 2)


def tally(*pentanomial):
    ll, ld, even, wd, ww = pentanomial
    return Tally(pentanomial=(ll, ld, even, wd, ww))


some_pairs = counts.filter(any).map(lambda c: tally(*c))


@unhurried
@given(st.lists(st.tuples(halves, halves), max_size=30))
def test_a_tally_of_pairs_counts_every_game_twice_consistently(games):
    total = sum((Tally.of_pair(*pair) for pair in games), Tally())
    assert total.consistent
    assert total.pairs == len(games)
    assert score(total) == (sum(a + b for a, b in games) / (4 * len(games)) if games else 0.5)


@unhurried
@given(counts, counts)
def test_the_other_side_is_the_negative(one, other):
    a, b = Tally(3, 1, 0, one), Tally(0, 2, 2, other)
    other_side = -a
    assert -other_side == a
    assert -(a + b) == -a + -b
    assert a + b == b + a and (a + b).without(b) == a
    assert (a + b).pairs == a.pairs + b.pairs


def test_estimates_and_tests_are_the_published_ones_and_as_before():
    """Those that are published are of final reports of fastchess."""

    def shown(files):
        seen = tally(*map(int, files["tally"].split()))
        nelo0, nelo1, llr = map(float, files.get("test", "0 5 nan").split())
        test, plain, normal = sprt(seen, nelo0, nelo1), elo(seen), nelo(seen)
        if not isnan(llr):
            assert test.llr == pytest.approx(llr, abs=0.006)
        if "published" in files:
            value, error, normalised, its_error, chance = map(float, files["published"].split())
            assert (plain.value, plain.error) == pytest.approx((value, error), abs=0.02)
            # the prior of two pairs shows in a few hundred: 0.2% of the normalised value
            assert normal.value == pytest.approx(normalised, rel=0.003, abs=0.006)
            assert normal.error == pytest.approx(its_error, abs=0.006)
            assert los(seen) == pytest.approx(chance, abs=1e-4)
        numbers = (plain.value, plain.error, normal.value, normal.error, standard_error(seen))
        more = (score(seen), los(seen), pair_variance(seen), null_variance(seen), test.llr)
        return [" ".join(f"{number:.9g}" for number in (*numbers, *more))]

    compare_cases(Path(__file__).with_name("tallies.txt"), shown)


@unhurried
@given(some_pairs)
def test_seen_from_the_other_side_only_the_sign_turns(t):
    assert isfinite(elo(t).value) and 0 < elo(t).error < inf and 0 <= los(t) <= 1
    assert elo(-t).value == -elo(t).value
    assert elo(-t).error == pytest.approx(elo(t).error, rel=1e-9)
    assert nelo(-t).value == pytest.approx(-nelo(t).value, rel=1e-9)
    assert los(-t) == pytest.approx(1 - los(t), abs=1e-12)


@unhurried
@given(counts=counts, elo0=st.floats(-10, 5), width=st.floats(0.5, 10))
def test_swapping_sides_swaps_the_hypotheses(counts, elo0, width):
    t = Tally(pentanomial=counts)
    here = sprt(t, elo0, elo0 + width).llr
    there = sprt(-t, -elo0 - width, -elo0).llr
    assert here == pytest.approx(-there, rel=1e-6, abs=1e-6)


def test_a_test_ends_at_its_boundaries():
    assert sprt(tally(100, 1000, 2000, 1500, 200), 0, 5).accepted == 1
    assert sprt(tally(200, 1500, 2000, 1000, 100), 0, 5).accepted == 0
    going_on = sprt(tally(1, 10, 20, 11, 1), 0, 5)
    assert going_on.accepted is None
    assert (going_on.lower, going_on.upper) == pytest.approx((-2.9444, 2.9444), abs=1e-4)
