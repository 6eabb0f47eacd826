from math import inf, isfinite, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.core.scoring import (
    ELO_PER_SCORE,
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

# Final reports that users of fastchess have published, with the Elo, the normalised Elo and the
# likelihood of superiority printed in them.
PUBLISHED = [
    ((352, 579, 1264, 743, 464), (19.83, 6.77), (24.25, 8.26), 1.0),
    ((19, 82, 272, 308, 361), (162.63, 13.49), (207.38, 14.92), 1.0),
    ((13, 34, 232, 71, 29), (31.71, 14.63), (53.96, 24.73), 1.0),
    ((790, 1759, 3256, 1780, 807), (1.14, 4.04), (1.48, 5.26), 0.7095),
    ((34, 49, 128, 62, 27), (-0.58, 21.41), (-0.75, 27.80), 0.4788),
]

# And their log-likelihood ratios, for bounds in normalised Elo.
PUBLISHED_TESTS = [
    ((352, 579, 1264, 743, 464), 9, 16, 4.60),
    ((13, 34, 232, 71, 29), 0, 10, 2.95),
    ((790, 1759, 3256, 1780, 807), 0, 5, -0.71),
]


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


@pytest.mark.parametrize(
    "broken", [Tally(1, 0, 0, (0, 0, 0, 1, 0)), Tally(2, 0, 0, (0, 0, 0, 1, 0)), Tally(-1, 1, 2)]
)
def test_counts_that_contradict_each_other_are_seen(broken):
    assert not broken.consistent


@pytest.mark.parametrize(("pentanomial", "plain", "normalised", "superiority"), PUBLISHED)
def test_estimates_are_the_published_ones(pentanomial, plain, normalised, superiority):
    seen = Tally(pentanomial=pentanomial)
    assert (elo(seen).value, elo(seen).error) == pytest.approx(plain, abs=0.02)
    # The prior of two pairs shows in a few hundred: 0.2% of the normalised value.
    assert nelo(seen).value == pytest.approx(normalised[0], rel=0.003, abs=0.006)
    assert nelo(seen).error == pytest.approx(normalised[1], abs=0.006)
    assert los(seen) == pytest.approx(superiority, abs=1e-4)


@unhurried
@given(some_pairs)
def test_seen_from_the_other_side_only_the_sign_turns(t):
    assert isfinite(elo(t).value) and 0 < elo(t).error < inf and 0 <= los(t) <= 1
    assert elo(-t).value == -elo(t).value
    assert elo(-t).error == pytest.approx(elo(t).error, rel=1e-9)
    assert nelo(-t).value == pytest.approx(-nelo(t).value, rel=1e-9)
    assert los(-t) == pytest.approx(1 - los(t), abs=1e-12)


@pytest.mark.parametrize("pairs", [1, 20, 500])
def test_won_pairs_only_are_a_large_and_uncertain_number(pairs):
    found = elo(tally(0, 0, 0, 0, pairs))
    nearly = elo(tally(0, 0, 0, 1, pairs - 1))
    assert nearly.value < found.value < 400 * (3 + len(str(pairs)))
    assert found.error > found.value / 2


def test_no_games_tell_nothing():
    nothing = Tally()
    assert (elo(nothing).value, elo(nothing).error) == (0, inf)
    assert (nelo(nothing).value, nelo(nothing).error) == (0, inf)
    assert (los(nothing), score(nothing)) == (0.5, 0.5)
    assert sprt(nothing, 0, 5).llr == 0


def test_the_variance_of_unpaired_games_is_that_of_two():
    # Draw rate 0.5 between equals: (1/4, 1/2, 1/4) twice; tau^2 = 2 (1 - d) = 1.
    independent = tally(*(1000 * n for n in (1, 4, 6, 4, 1)))
    assert pair_variance(independent) == pytest.approx(1.0, rel=1e-3)
    assert null_variance(independent) == pytest.approx(1.0, rel=1e-3)
    assert standard_error(independent) == pytest.approx(ELO_PER_SCORE / 2 / sqrt(16000), rel=1e-3)


@pytest.mark.parametrize(("pentanomial", "elo0", "elo1", "llr"), PUBLISHED_TESTS)
def test_likelihood_ratios_are_the_published_ones(pentanomial, elo0, elo1, llr):
    test = sprt(Tally(pentanomial=pentanomial), elo0, elo1)
    assert test.llr == pytest.approx(llr, abs=0.006)


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
