"""Several time controls give a rule one result: with the least error, and as noisy as it says."""

import numpy as np
import pytest
from builders import parameter

from spsa.algorithms.rule import PAIR_RESULTS
from spsa.algorithms.time_controls import TimeControlSums
from spsa.algorithms.tuning import PlayedGames, tuning
from spsa.core.params import Space
from spsa.core.scoring import Tally

SHARP, DRAWN = (0.2, 0.1, 0.4, 0.1, 0.2), (0.01, 0.09, 0.8, 0.09, 0.01)
PAIRS = np.array([[60.0], [20.0]])
SPACE = Space((parameter("margin"), parameter("calm")))


def variance(chances):
    return float(np.dot(chances, PAIR_RESULTS**2))


def known(pairs=1e9):
    """What so many pairs of each have said."""
    taus = np.array([[variance(SHARP)], [variance(DRAWN)]])
    zeros = np.zeros((2, 1))
    return TimeControlSums(
        pairs=np.full((2, 1), pairs), squares=pairs * taus, pull=zeros, pull_squares=zeros
    )


@pytest.mark.parametrize("weights", [(None, None), (1.0, 1.0), (1.0, 5.0), (30.0, 2.0)])
def test_the_result_is_as_noisy_as_a_rule_expects(weights):
    rng, results = np.random.default_rng(7), []
    for _ in range(4000):
        counts = np.array(
            [rng.multinomial(int(n), p) for n, p in zip(PAIRS[:, 0], (SHARP, DRAWN), strict=True)]
        )
        told = known().weighed(counts, weights)
        expected = told @ PAIR_RESULTS**2  # B tau^2 of this result
        results.append((told @ PAIR_RESULTS, expected, told.sum()))
    result, expected, pairs = np.array(results).T
    assert result.var() == pytest.approx(expected.mean(), rel=0.07)
    if None in weights:
        # the information of both, and as many pairs as were played
        both = PAIRS[0, 0] / variance(SHARP) + PAIRS[1, 0] / variance(DRAWN)
        assert pairs == pytest.approx(PAIRS.sum(), rel=1e-6)
        assert PAIRS.sum() ** 2 / expected.mean() == pytest.approx(both, rel=0.05)


def test_what_teaches_more_weighs_more_and_given_weights_are_obeyed():
    counts = np.array([[0, 0, 0, 0, 10], [10, 0, 0, 0, 0]])
    assert known(0.0).weighed(counts, (None, None)) @ PAIR_RESULTS == pytest.approx(0.0)
    assert known().weighed(counts, (None, None)) @ PAIR_RESULTS < -1.0
    assert known().weighed(counts, (9.0, 1.0)) @ PAIR_RESULTS > 1.0
    assert not known().weighed(0 * counts, (None, None)).any()


def played(weights, tallies, k=1, state=None, theta=None):
    rules = tuning(SPACE, "mixture", {}, iterations=9, pairs=8, seed=5, weights=weights)
    start = rules.start()
    state, theta = state or start[1], theta or start[0]
    asked = rules.propose(state, theta, k)
    games = PlayedGames(
        k=k,
        a_k=asked.a_k,
        c_k=asked.c_k,
        played=asked.played,
        tally=sum(tallies, Tally()),
        by_time_control=tallies if weights else (),
    )
    return rules, rules.update(state, theta, games)


WON = sum([Tally.of_pair(2, 1)] * 4, Tally())
EVEN = sum([Tally.of_pair(1, 1)] * 4, Tally())


def test_a_single_time_control_has_no_part_in_the_state():
    _, update = played((), (WON, EVEN))
    assert "time_controls" not in update.state
    rules, same = played((None, None), (WON, EVEN))  # nothing is known yet: equal weights
    assert same.theta == pytest.approx(update.theta, rel=1e-12)
    sums = rules.sums(same.state)
    assert sums.pairs.tolist() == [[4.0], [4.0]] and sums.squares.tolist() == [[4.0], [0.0]]
    assert (np.abs(sums.pull[0]) > 0).all() and not sums.pull[1].any()


def test_what_was_learned_of_the_time_controls_decides_the_next_weights():
    _, first = played((None, None), (WON, EVEN))
    again = [
        played((None, None), parts, 2, first.state, first.theta)[1].elo
        for parts in ((WON, EVEN), (EVEN, WON))
    ]
    assert again[0] < again[1]  # the second has drawn all its pairs so far


@pytest.mark.parametrize("algorithm", ["mixture", "spsa"])
def test_a_fork_knows_the_variances_of_the_same_time_controls(algorithm):
    before, update = played((None, None), (WON, EVEN))
    after = tuning(SPACE, algorithm, {}, iterations=9, pairs=8, seed=1, weights=(None,) * 3)
    for doubt in (1.0, 2.0):
        _, state = after.forked(before, update.state, doubt, [1, -1, 0]).start()
        sums = after.sums(state)
        assert sums.pairs.ravel() * doubt**2 == pytest.approx([4.0, 0.0, 4.0])
        assert sums.squares.ravel() * doubt**2 == pytest.approx([0.0, 0.0, 4.0])
        assert not sums.pull.any() and not sums.pull_squares.any()
    single, _ = played((), (WON, EVEN))
    assert single.sums(single.forked(before, update.state, 1.0, [0]).start()[1]) is None
    assert not after.sums(
        after.forked(single, single.start()[1], 1.0, [0, -1, -1]).start()[1]
    ).pairs.any()
