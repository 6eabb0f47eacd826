"""A rule on a space: inside its bounds to the bit, carried to another, with one or more limits."""

from dataclasses import astuple, replace

import numpy as np
import pytest
from builders import parameter, tally_of_seed
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spsa.algorithms import RULES
from spsa.algorithms.rule import PAIR_RESULTS, Belief
from spsa.algorithms.time_controls import TimeControlSums
from spsa.algorithms.tuning import Observed, tuning
from spsa.core.params import Space
from spsa.core.scoring import Tally

unhurried = settings(deadline=None, max_examples=50)  # the machine may be busy with games

PAIRS = 10
ALL_WON = Tally.of_pair(2, 2) + Tally.of_pair(2, 2)
ALL_LOST = -ALL_WON

SPACE = Space(
    (
        parameter("margin", value=50),
        parameter("low", value=0, minimum=0, maximum=12, step=3),
        parameter("high", value=12, minimum=0, maximum=12, step=3),
        parameter("ratio", value=0.3, minimum=0.1, maximum=0.7, step=0.1, integral=False),
        parameter(
            "fine", value=0.29, minimum=0.05, maximum=0.95, step=0.05, integral=False, scale=100
        ),
        parameter("still", value=7, active=False),
    )
)
ACTIVE = [p.name for p in SPACE.active]


def tuned(space=SPACE, seed=5, algorithm="spsa", **settings):
    return tuning(space, algorithm, settings, iterations=50, pairs=PAIRS, seed=seed)


def updated(rules, state, theta, asked, tally, by_time_control=()):
    gains = {"k": asked.k, "a_k": asked.a_k, "c_k": asked.c_k}
    outcome = rules.outcome(theta, asked.played, tally, **gains)
    return rules.update(state, theta, outcome, by_time_control)


def walked(rules, tallies):
    """Theta and the answers after these results, one in flight."""
    theta, state = rules.start()
    for k, tally in enumerate(tallies, start=1):
        proposal = rules.propose(state, theta, k)
        answer = updated(rules, state, theta, proposal, tally)
        yield proposal, theta, answer
        theta, state = answer.theta, answer.state


seeds = st.integers(0, 2**31)
tallies = st.lists(
    st.one_of(st.just(ALL_WON), st.just(ALL_LOST), st.builds(tally_of_seed, seeds, st.just(PAIRS))),
    min_size=1,
    max_size=12,
)


def test_another_seed_or_k_gives_another_perturbation():
    wide = Space(tuple(parameter(f"p{i}") for i in range(40)))
    rules, other = tuned(wide), tuned(wide, seed=6)
    theta, state = rules.start()
    signs = [rules.propose(state, theta, 1).signs, rules.propose(state, theta, 2).signs]
    signs.append(other.propose(state, theta, 1).signs)
    assert len({tuple(s.values()) for s in signs}) == 3


@pytest.mark.parametrize("algorithm", RULES)
def test_the_same_seed_and_results_give_the_same_theta_to_the_bit(algorithm):
    assert moved(tuned(algorithm=algorithm)) == moved(tuned(algorithm=algorithm))


@unhurried
@given(seeds, tallies, st.floats(0.001, 1000.0))
def test_theta_never_leaves_its_bounds_and_is_what_the_log_adds_up_to(seed, results, a):
    for _, before, answer in walked(tuned(seed=seed, a=a), results):
        for p in SPACE.active:
            assert before[p.name] + answer.delta[p.name] == answer.theta[p.name]
            assert p.minimum <= answer.theta[p.name] <= p.maximum


@unhurried
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(1e-3, 1e3))
@example(-2.0, 0.1 + 2.0, 1 / 2.1, 1.0)  # -1 + (0.1 - -1) is more than 0.1
@example(0.0, 1.7, 1.0, 0.1)  # as is a bound over its step, times the step
def test_a_step_to_a_bound_ends_on_the_right_side_of_it(minimum, width, part, step):
    """To a hair, or a run would hang at the bound."""
    maximum = 0.1 if minimum == -2.0 else minimum + width
    value = min(max(minimum + part * width, minimum), maximum)
    p = parameter("x", value=value, minimum=minimum, maximum=maximum, step=step, integral=False)
    rules = tuned(Space((p,)), a=1e9)
    assert value < maximum or rules.start()[0] == {"x": maximum}
    for tally in (ALL_WON, ALL_LOST, Tally.of_pair(1, 1)):
        for _, before, answer in walked(rules, [tally] * 3):
            assert minimum <= before["x"] + answer.delta["x"] <= maximum


@unhurried
@given(seeds, st.integers(1, 50))
def test_signs_are_those_of_what_is_played_and_theta_goes_to_the_side_that_won(seed, k):
    rules = tuned(seed=seed)
    theta, state = rules.start()
    proposal = rules.propose(state, theta, k)
    plus, minus = proposal.played.plus, proposal.played.minus
    signs = {name: np.sign(plus[name] - minus[name]) for name in ACTIVE}
    assert (proposal.signs, proposal.base) == (signs, theta)
    assert list(proposal.signs) == ACTIVE and 0 not in signs.values()
    for tally, sign in ((ALL_WON, 1), (ALL_LOST, -1), (Tally(), 0)):
        answer = updated(rules, state, theta, proposal, tally)
        assert list(answer.gradient) == ACTIVE
        assert (answer.theta["still"], answer.delta["still"]) == (7, 0.0)
        for p in SPACE.active:
            towards = sign * proposal.signs[p.name]
            at_the_end = theta[p.name] == (p.maximum if towards > 0 else p.minimum)
            assert np.sign(answer.delta[p.name]) == (0 if at_the_end else towards)
            assert np.sign(answer.gradient[p.name]) == towards
        assert np.sign(answer.elo) == sign


@unhurried
@given(seeds, tallies)
def test_an_answer_may_rest_on_older_results(seed, results):
    """Two in flight: what was opened before the last result is answered on the newest theta."""
    rules = tuned(seed=seed)
    theta, state = rules.start()
    waiting = [rules.propose(state, theta, 1)]
    for k, tally in enumerate(results, start=1):
        waiting.append(rules.propose(state, theta, k + 1))
        answer = updated(rules, state, theta, waiting.pop(0), tally)
        for name in theta:
            assert theta[name] + answer.delta[name] == answer.theta[name]
        theta, state = answer.theta, answer.state
        drift = [theta[name] - value for name, value in _natural(rules, state).items()]
        assert max(map(abs, drift)) < 1e-9


def _natural(rules, state):
    return rules.space.natural(rules.observed.theta(rules.observed.load(state)))


def some_tallies(count):
    return [tally_of_seed(seed, PAIRS) for seed in range(count)]


@pytest.mark.parametrize("algorithm", RULES)
def test_estimates_are_there_as_soon_as_there_is_something_to_estimate_from(algorithm):
    rules = tuned(algorithm=algorithm)
    first, second = (answer.estimates for _, _, answer in walked(rules, some_tallies(2)))
    for values in (first.supported, second.supported):
        assert list(values) == [p.name for p in SPACE.parameters]


@pytest.mark.parametrize(
    ("factor", "better"),
    [
        (1.0, None),
        (2.5, {"margin": 3, "low": 1, "ratio": 0.04, "fine": 0.02}),
        (0.3, {"margin": 27, "low": 10, "ratio": 0.33, "fine": 0.17}),
        (1e9, {"margin": 1, "low": 1, "ratio": 1e-10, "fine": 0.01}),
        (1e-9, {"margin": 100, "low": 12, "ratio": 0.6, "fine": 0.9}),
    ],
)
def test_a_better_step_is_one_that_the_file_may_have(monkeypatch, factor, better):
    rules = tuned(algorithm="mixture")
    theta, _ = rules.start()
    wrong = [factor if name in ("margin", "low", "ratio", "fine") else 1.0 for name in ACTIVE]
    belief = Belief(rules.space.steps(theta), None, np.zeros(1), np.array(wrong))
    monkeypatch.setattr(Observed, "supported", lambda *_: belief)
    ((_, _, answer),) = walked(rules, some_tallies(1))
    assert answer.estimates.better_step == (better and pytest.approx(better))


@settings(unhurried, max_examples=10)
@pytest.mark.parametrize("algorithm", RULES)
@given(seeds, tallies)
def test_all_thetas_are_within_the_bounds_and_leave_frozen_parameters(algorithm, seed, results):
    for _, _, answer in walked(tuned(seed=seed, algorithm=algorithm), results):
        for values in (answer.theta, answer.estimates.supported):
            for p in SPACE.parameters if values else ():
                assert p.minimum <= values[p.name] <= p.maximum
                assert p.active or values[p.name] == p.value


@pytest.mark.parametrize("algorithm", RULES)
def test_everything_is_said_in_the_units_of_the_file(algorithm):
    """Written in quarters of its unit, a parameter is four times as much of everything."""

    def margin(unit):
        return parameter(
            "margin", value=50 * unit, minimum=0, maximum=100 * unit, step=8 * unit, integral=False
        )

    ours, theirs = (tuned(Space((margin(u),)), algorithm=algorithm) for u in (1, 4))
    walks = zip(walked(ours, some_tallies(9)), walked(theirs, some_tallies(9)), strict=True)
    for (_, _, one), (_, _, other) in walks:
        assert other.theta == {"margin": 4 * one.theta["margin"]}
        for ours, theirs in zip(astuple(one.estimates), astuple(other.estimates), strict=True):
            assert theirs == (ours and {"margin": 4 * ours["margin"]})


@settings(unhurried, max_examples=10)
@given(seeds)
def test_the_gradient_is_what_the_games_say_whatever_the_rule(seed):
    """Elo over the played difference in steps, never over less than was wanted."""
    for algorithm in RULES:
        (proposal, _, answer), *_ = walked(
            tuned(algorithm=algorithm, seed=seed), [tally_of_seed(seed, PAIRS)]
        )
        for p in SPACE.active:
            plus, minus = proposal.played.plus[p.name], proposal.played.minus[p.name]
            apart = (plus - minus) / p.step
            least = 2 * proposal.c_k
            assert answer.gradient[p.name] == pytest.approx(
                answer.elo * apart / max(apart**2, least**2), abs=1e-12
            )


@pytest.mark.filterwarnings("error")
def test_only_a_one_sided_result_is_bounded():
    for tally, is_bounded in ((ALL_WON, True), (tally_of_seed(1, PAIRS), False)):
        ((*_, answer),) = walked(tuned(elo_bound=2), [tally])
        assert answer.bounded == is_bounded


def moved(rules):
    """Theta and state of a rule after some results."""
    results = (Tally.of_pair(2, k % 3) + Tally.of_pair(1, 1) for k in range(6))
    *_, (_, _, last) = walked(rules, results)
    return dict(last.theta), last.state


@pytest.mark.parametrize("algorithm", ["bspsa", "bspsas"])
def test_a_fork_has_theta_and_deviations_of_the_run_before(algorithm):
    before = tuned(SPACE, algorithm=algorithm)
    theta, state = moved(before)
    values = Space(tuple(replace(p, value=theta[p.name]) for p in SPACE.parameters))
    fork = tuned(values, algorithm=algorithm).forked(before, state)
    there, known = fork.start()
    assert there == pytest.approx(theta)
    loaded = fork.observed.load(known)
    assert fork.observed.theta(loaded) == pytest.approx(values.steps(theta))
    posterior = before.observed.rule.belief(before.observed.load(state).rule).deviation
    assert fork.observed.rule.belief(loaded.rule).deviation == pytest.approx(posterior)


def test_a_fork_may_have_other_parameters():
    before = tuned(SPACE, algorithm="bspsa")
    _, state = moved(before)
    space = Space((parameter("new", value=7, step=2), *SPACE.parameters[:1]))
    fork = tuned(space, algorithm="bspsa").forked(before, state)
    joint = fork.observed.load(fork.start()[1]).rule
    old = before.observed.load(state).rule
    assert joint.covariance[1, 1] == pytest.approx(old.covariance[0, 0])
    assert joint.covariance[0, 1] == joint.covariance[1, 0] == 0
    assert np.array_equal(joint.covariance, joint.covariance.T)
    assert joint.mean[0] == 3.5


SHARP, DRAWN = (0.2, 0.1, 0.4, 0.1, 0.2), (0.01, 0.09, 0.8, 0.09, 0.01)
OF_EACH = np.array([[60.0], [20.0]])
TWO = Space((parameter("margin"), parameter("calm")))


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
            [rng.multinomial(int(n), p) for n, p in zip(OF_EACH[:, 0], (SHARP, DRAWN), strict=True)]
        )
        told = known().weighed(counts, weights)
        expected = told @ PAIR_RESULTS**2  # B tau^2 of this result
        results.append((told @ PAIR_RESULTS, expected, told.sum()))
    result, expected, pairs = np.array(results).T
    assert result.var() == pytest.approx(expected.mean(), rel=0.07)
    if None in weights:
        # the information of both, and as many pairs as were played
        both = OF_EACH[0, 0] / variance(SHARP) + OF_EACH[1, 0] / variance(DRAWN)
        assert pairs == pytest.approx(OF_EACH.sum(), rel=1e-6)
        assert OF_EACH.sum() ** 2 / expected.mean() == pytest.approx(both, rel=0.05)


def test_what_teaches_more_weighs_more_and_given_weights_are_obeyed():
    counts = np.array([[0, 0, 0, 0, 10], [10, 0, 0, 0, 0]])
    assert known(0.0).weighed(counts, (None, None)) @ PAIR_RESULTS == pytest.approx(0.0)
    assert known().weighed(counts, (None, None)) @ PAIR_RESULTS < -1.0
    assert known().weighed(counts, (9.0, 1.0)) @ PAIR_RESULTS > 1.0
    assert not known().weighed(0 * counts, (None, None)).any()


def test_sums_of_a_result_and_what_its_pairs_count():
    none, counts = TimeControlSums.nothing(2, 3), np.array([[0, 0, 1, 0, 2], [3, 1, 0, 0, 0.0]])
    sums = none.after(counts, np.array([2.0, -1.0, 0.0]))
    assert sums.squares.tolist() == [[8], [13]]
    assert sums.pull.tolist() == [[8, -4, 0], [-14, 7, 0]]
    assert sums.after(counts, np.ones(3)).pull_squares.tolist() == [[80, 32, 16], [245, 98, 49]]
    assert sums.deviations.tolist() == [[1, -1, 0], [-1, 1, 0]]
    assert sums.weights_of_pairs((1.0, 3.0)) == pytest.approx((7 / 15, 21 / 15))
    assert none.weights_of_pairs((1.0, 3.0)) == (1, 3)


def played(weights, tallies, k=1, before=None):
    rules = tuning(TWO, "mixture", {}, iterations=9, pairs=8, seed=5, weights=weights)
    theta, state = (before.theta, before.state) if before else rules.start()
    asked = rules.propose(state, theta, k)
    parts = tallies if weights else ()
    return rules, updated(rules, state, theta, asked, sum(tallies, Tally()), parts)


WON = sum([Tally.of_pair(2, 1)] * 4, Tally())
EVEN = sum([Tally.of_pair(1, 1)] * 4, Tally())


def test_a_single_time_control_has_no_part_in_the_state():
    _, update = played((), (WON, EVEN))
    assert "time_controls" not in update.state
    _, same = played((None, None), (WON, EVEN))  # nothing is known yet: equal weights
    assert same.theta == pytest.approx(update.theta, rel=1e-12)


def test_what_was_learned_of_the_time_controls_decides_the_next_weights():
    _, first = played((None, None), (WON, EVEN))
    again = [played((None, None), parts, 2, first)[1].elo for parts in ((WON, EVEN), (EVEN, WON))]
    assert again[0] < again[1]  # the second has drawn all its pairs so far
