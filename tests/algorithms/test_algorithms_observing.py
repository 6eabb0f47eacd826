"""A rule that is watched moves as it does alone, and what is noted of it is true."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import START, generator, outcome, problem, tallies, told

from spsa.algorithms import algorithms, create
from spsa.algorithms.tuning import Average, Observed
from spsa.errors import UnusableState

PROBLEM = problem()
walks = st.lists(st.lists(st.floats(-50, 50), min_size=2, max_size=2), min_size=1, max_size=30)


def watched(name):
    return Observed(create(name, {}, PROBLEM))


def results(rule, count, seed=1):
    """What a run of the rule plays, and random counts of it."""
    state, rng, found = rule.start(), generator(seed), []
    for k, tally in enumerate(tallies(seed, count), start=1):
        found.append(outcome(rule.ask(state, k, rng), tally, k=k))
        state = rule.tell(state, found[-1])
    return found


@settings(deadline=None)
@given(walks)
def test_the_average_is_the_weighted_mean_and_deviation_of_all_thetas(walk):
    """Theta s weighs s (s + 1) (s + 2), so the last half has nearly all of the weight."""
    thetas = np.array(walk)
    found = Average(0, np.zeros(2), np.zeros(2))
    for theta in thetas:
        found = found.with_next(theta)
    s = np.arange(1.0, len(thetas) + 1)
    share = (s * (s + 1) * (s + 2))[:, None]
    share /= share.sum()
    mean = (share * thetas).sum(axis=0)
    variance = (share * (thetas - mean) ** 2).sum(axis=0)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.deviation**2, variance, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", algorithms())
def test_a_rule_does_not_notice_and_a_state_survives_a_database_to_the_bit(name):
    rule = watched(name)
    alone, state = rule.rule.start(), rule.start()
    for one in results(rule, 12):
        alone = rule.rule.tell(alone, one)
        state = rule.tell(rule.load(json.loads(json.dumps(rule.dump(state)))), one)
        assert rule.theta(state).tobytes() == rule.rule.theta(alone).tobytes()
        pair = ((rule, state), (rule.rule, alone))
        first, second = (r.ask(s, one.k, generator(7)) for r, s in pair)
        assert first.offset.tobytes() == second.offset.tobytes()
        assert first.centre.tobytes() == second.centre.tobytes()
    assert rule.dump(state) == rule.dump(told(rule, *results(rule, 12)))


def test_only_rules_without_a_belief_have_a_witness():
    with_witness = [name for name in algorithms() if watched(name).witness is not None]
    assert with_witness == ["spsa", "fishtest", "kiiski", "constant"]


def test_a_witness_learns_what_it_would_have_learnt_by_itself():
    rule, filters = watched("spsa"), create("mixture", {}, PROBLEM)
    seen = results(rule, 15)
    supported, belief = rule.supported(told(rule, *seen)), filters.belief(told(filters, *seen))
    assert supported is not None and belief is not None
    assert supported.mean.tobytes() == belief.mean.tobytes()


@pytest.mark.parametrize("part", ["rule", "average", "witness"])
def test_notes_that_are_none_or_of_other_parameters_are_refused(part):
    rule, fewer = watched("spsa"), problem(START[:2])
    other = Observed(create("spsa", {}, fewer))
    for broken in (3, None, {}, other.dump(other.start())[part]):
        with pytest.raises(UnusableState, match="saved state"):
            rule.load({**rule.dump(rule.start()), part: broken})
