"""Games are divided among time controls as their shares say, in whole batches, by a seed."""

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from spsa.core.game_settings import assigned, games_by_share, whole_parts

SHARES = st.lists(st.integers(1, 9), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**63 - 1)


@given(shares=SHARES, times=st.integers(1, 20), size=st.integers(1, 12), seed=SEEDS)
def test_shares_hold_exactly_over_an_iteration(shares, times, size, seed):
    games, whole = 2 * times * sum(whole_parts(shares)), sum(shares)
    sizes = [min(2 * size, games - at) for at in range(0, games, 2 * size)]
    batches = list(assigned(sizes, shares, seed))
    played = Counter[int]()
    for one, number in batches:
        assert one > 0 and one % 2 == 0 and one <= 2 * size
        played[number] += one
    assert [played[i] for i in range(len(shares))] == [games * s // whole for s in shares]
    assert len(batches) < len(sizes) + len(shares)  # hardly any is cut
    assert batches == list(assigned(sizes, shares, seed))


@given(shares=SHARES, pairs=st.integers(0, 40), seed=SEEDS)
def test_games_that_cannot_be_divided_exactly_differ_by_less_than_a_pair(shares, pairs, seed):
    games = games_by_share(2 * pairs, shares, seed)
    assert sum(games) == 2 * pairs
    for one, share in zip(games, shares, strict=True):
        assert one % 2 == 0
        assert abs(Fraction(one, 2) - Fraction(pairs * share, sum(shares))) < 1


def test_no_time_control_always_comes_last():
    orders = [[number for _, number in assigned([4] * 12, (1, 1, 1), seed)] for seed in range(300)]
    last = Counter(order[-1] for order in orders)
    assert set(last) == {0, 1, 2} and min(last.values()) > 60
    assert len({tuple(order) for order in orders}) > 290
