"""A rule on a space: pure, inside its bounds to the bit, and every number where it belongs."""

from dataclasses import astuple

import numpy as np
import pytest
from builders import parameter, tally_of_seed
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.algorithms import Belief, algorithms
from spsa.algorithms.tuning import Observed, PlayedGames, tuning
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


def games_of(proposal, tally):
    return PlayedGames(
        k=proposal.k, a_k=proposal.a_k, c_k=proposal.c_k, played=proposal.played, tally=tally
    )


def walked(rules, tallies):
    """Theta and the answers after these results, one in flight."""
    theta, state = rules.start()
    for k, tally in enumerate(tallies, start=1):
        proposal = rules.propose(state, theta, k)
        answer = rules.update(state, theta, games_of(proposal, tally))
        yield proposal, theta, answer
        theta, state = answer.theta, answer.state


seeds = st.integers(0, 2**31)
tallies = st.lists(
    st.one_of(st.just(ALL_WON), st.just(ALL_LOST), st.builds(tally_of_seed, seeds, st.just(PAIRS))),
    min_size=1,
    max_size=12,
)


@unhurried
@given(seeds, tallies)
def test_the_same_seed_and_results_give_the_same_bits(seed, results):
    first, second = (list(walked(tuned(seed=seed), results)) for _ in range(2))
    assert first == second


def test_another_seed_or_k_gives_another_perturbation():
    wide = Space(tuple(parameter(f"p{i}") for i in range(40)))
    rules, other = tuned(wide), tuned(wide, seed=6)
    theta, state = rules.start()
    signs = [rules.propose(state, theta, 1).signs, rules.propose(state, theta, 2).signs]
    signs.append(other.propose(state, theta, 1).signs)
    assert len({tuple(s.values()) for s in signs}) == 3


@unhurried
@given(seeds, tallies, st.floats(0.001, 1000.0))
def test_theta_never_leaves_its_bounds_and_is_what_the_log_adds_up_to(seed, results, a):
    for _, before, answer in walked(tuned(seed=seed, a=a), results):
        for p in SPACE.active:
            assert before[p.name] + answer.delta[p.name] == answer.theta[p.name]
            assert p.minimum <= answer.theta[p.name] <= p.maximum


@unhurried
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.0, 1.0), st.floats(1e-3, 1e3))
def test_a_step_to_a_bound_ends_on_the_right_side_of_it(minimum, width, part, step):
    maximum = minimum + width
    value = min(max(minimum + part * width, minimum), maximum)
    p = parameter("x", value=value, minimum=minimum, maximum=maximum, step=step, integral=False)
    for tally in (ALL_WON, ALL_LOST):
        for _, before, answer in walked(tuned(Space((p,)), a=1e9), [tally] * 3):
            assert minimum <= before["x"] + answer.delta["x"] <= maximum


def test_a_bound_that_the_difference_overshoots_is_stopped_at_from_inside():
    before, maximum = -1.0, 0.1
    assert before + (maximum - before) > maximum
    p = parameter("x", value=before, minimum=-2.0, maximum=maximum, step=1.0, integral=False)
    rules = tuned(Space((p,)), a=1e9)
    theta, state = rules.start()
    proposal = rules.propose(state, theta, 1)
    tally = ALL_WON if proposal.signs["x"] > 0 else ALL_LOST
    answer = rules.update(state, theta, games_of(proposal, tally))
    assert maximum - 1e-15 <= answer.theta["x"] <= maximum


def test_a_start_at_a_bound_that_steps_do_not_hit_is_at_the_bound():
    """A bound over its step, times the step, is a hair beyond: a run must not hang at that."""
    step, maximum = next(
        (step, bound)
        for step in (0.1, 0.3, 0.7, 0.9)
        for bound in (n / 10 for n in range(1, 1000))
        if bound / step * step > bound
    )
    p = parameter("x", value=maximum, maximum=maximum, step=step, integral=False)
    rules = tuned(Space((p,)), a=1e9)
    assert rules.start()[0] == {"x": maximum}
    for tally in (ALL_WON, ALL_LOST, Tally.of_pair(1, 1)):
        (_, before, answer), *_ = walked(rules, [tally])
        assert 0 <= before["x"] + answer.delta["x"] <= maximum


@unhurried
@given(seeds)
def test_signs_are_those_of_what_is_played(seed):
    for proposal, theta, answer in walked(tuned(seed=seed), [Tally()] * 5):
        assert list(proposal.signs) == list(answer.gradient) == ACTIVE
        assert (answer.theta["still"], answer.delta["still"]) == (7, 0.0)
        assert proposal.base == theta
        for name, sign in proposal.signs.items():
            assert sign in (-1, 1)
            assert np.sign(proposal.played.plus[name] - proposal.played.minus[name]) == sign


@unhurried
@given(seeds, st.integers(1, 50))
def test_theta_goes_to_the_side_that_won(seed, k):
    rules = tuned(seed=seed)
    theta, state = rules.start()
    proposal = rules.propose(state, theta, k)
    for tally, sign in ((ALL_WON, 1), (ALL_LOST, -1)):
        answer = rules.update(state, theta, games_of(proposal, tally))
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
        answer = rules.update(state, theta, games_of(waiting.pop(0), tally))
        for name in theta:
            assert theta[name] + answer.delta[name] == answer.theta[name]
        theta, state = answer.theta, answer.state
        drift = [theta[name] - value for name, value in _natural(rules, state).items()]
        assert max(map(abs, drift)) < 1e-9


def _natural(rules, state):
    return rules.space.natural(rules.rule.theta(rules.rule.load(state)))


def some_tallies(count):
    return [tally_of_seed(seed, PAIRS) for seed in range(count)]


@pytest.mark.parametrize("algorithm", algorithms())
def test_estimates_are_there_as_soon_as_there_is_something_to_estimate_from(algorithm):
    rules = tuned(algorithm=algorithm)
    _, state = rules.start()
    first, second = (answer.estimates for _, _, answer in walked(rules, some_tallies(2)))
    assert set(astuple(rules.estimates(state))) == {None}
    assert (first.averaged, first.averaged_sd) == (None, None)
    for values in (first.supported, second.averaged, second.supported):
        assert list(values) == [p.name for p in SPACE.parameters]
    known = (first.supported_sd, second.averaged_sd, second.supported_sd)
    assert (None in known) == (not algorithm.startswith("bspsa")), "only these have intervals"
    for deviations in filter(None, known):
        assert list(deviations) == ACTIVE
        assert all(deviation >= 0 for deviation in deviations.values())


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
    theta, state = rules.start()
    wrong = [factor if name in ("margin", "low", "ratio", "fine") else 1.0 for name in ACTIVE]
    belief = Belief(rules.space.steps(theta), None, np.zeros(1), np.array(wrong))
    monkeypatch.setattr(Observed, "supported", lambda *_: belief)
    assert rules.estimates(state).better_step == (better and pytest.approx(better))


@settings(unhurried, max_examples=10)
@pytest.mark.parametrize("algorithm", algorithms())
@given(seeds, tallies)
def test_estimates_are_within_the_bounds_and_leave_frozen_parameters(algorithm, seed, results):
    for _, _, answer in walked(tuned(seed=seed, algorithm=algorithm), results):
        for values in (answer.estimates.averaged, answer.estimates.supported):
            for p in SPACE.parameters if values else ():
                assert p.minimum <= values[p.name] <= p.maximum
                assert p.active or values[p.name] == p.value


@pytest.mark.parametrize("algorithm", algorithms())
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
    for algorithm in algorithms():
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
def test_a_run_of_matches_has_a_rule_without_parameters_and_no_warning():
    made = tuning(Space(()), "mixture", {}, iterations=1, pairs=1, seed=1)
    theta, _ = made.start()
    assert theta == {}
