"""Games that lie ready, and how they are cut: algebra, and slots that are really kept waiting."""

import heapq
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spsa.planning.games_needed import (
    MAX_IN_FLIGHT,
    GamesNeeded,
    cut,
    evenly,
    in_flight_after,
    in_flight_limit,
)

EVEN = st.integers(1, 400).map(lambda n: 2 * n)
USUAL = GamesNeeded(slots=8, game_seconds=10.0, games=150, batch_games=10, build_seconds=30.0)


@given(games=EVEN, most=EVEN, slots=st.integers(0, 300))
def test_batches_are_whole_pairs_that_shrink_and_add_up(games, most, slots):
    sizes = cut(games, most, slots)
    assert sum(sizes) == games
    assert all(size > 0 and size % 2 == 0 and size <= most for size in sizes)
    assert list(sizes) == sorted(sizes, reverse=True)
    assert sizes[-1] == 2 or slots <= 1


@given(games=EVEN, most=EVEN)
def test_even_batches_differ_in_the_last_one_only(games, most):
    sizes = evenly(games, most)
    assert sum(sizes) == games
    assert set(sizes[:-1]) <= {most}


@given(
    slots=st.integers(1, 3000),
    seconds=st.floats(0.5, 600),
    games=EVEN,
    batch=EVEN,
    build=st.floats(0, 300),
)
def test_what_is_wanted_is_between_the_average_and_all_that_can_be_claimed(
    slots, seconds, games, batch, build
):
    games_needed = GamesNeeded(
        slots=slots, game_seconds=seconds, games=games, batch_games=batch, build_seconds=build
    )
    assert games_needed.rate * build <= games_needed.wanted * (1 + 1e-9)
    assert games_needed.in_flight >= 2
    assert games_needed.games_for(games_needed.in_flight) >= games
    assert replace(games_needed, slots=0).wanted == 1.0


def test_so_many_games_in_an_iteration_need_no_more_depth_than_allowed():
    large = replace(USUAL, slots=2048, batch_games=2, builders=4)
    assert large.in_flight > 60
    assert replace(large, games=large.games_for(8)).in_flight <= 8
    assert large.games_to_build == pytest.approx(2048 / 10 * 30 / 4)


def test_depth_is_borne_by_long_runs_and_grows_with_the_results():
    assert [in_flight_limit(n) for n in (5, 199, 500, 10**6)] == [1, 1, 5, MAX_IN_FLIGHT]
    assert [in_flight_after(n) for n in (0, 3, 4, 40)] == [1, 1, 2, 11]


@pytest.mark.parametrize("slots", [8, 64])
def test_slots_that_are_supplied_so_are_hardly_ever_idle(slots):
    games_needed = replace(USUAL, slots=slots)
    assert idle(games_needed, games_needed.wanted) < 0.01
    assert idle(games_needed, games_needed.rate * games_needed.build_seconds / 3) > 0.03


def idle(games_needed, wanted, rounds=3000):
    """The part of their time that slots wait if an iteration is ordered below `wanted` games."""
    rng, now, waited, played = Random(5), 0.0, 0.0, 0.0
    ready: list[int] = []
    ordered: list[float] = [0.0]
    free = [(0.0, slot) for slot in range(games_needed.slots)]
    for _ in range(rounds):
        now, slot = heapq.heappop(free)
        while ordered and ordered[0] <= now:
            ordered.pop(0)
            ready += cut(games_needed.games, games_needed.batch_games, games_needed.slots)
        if sum(ready) + games_needed.games * len(ordered) < wanted or not (ready or ordered):
            ordered.append(now + games_needed.build_seconds)
        if not ready:
            waited += ordered[0] - now
            heapq.heappush(free, (ordered[0], slot))
            continue
        lasts = sum(rng.gauss(games_needed.game_seconds, 2.0) for _ in range(ready.pop(0)))
        played += lasts
        heapq.heappush(free, (now + lasts, slot))
    return waited / (waited + played)
