"""The locked problems are what they say; which rule is good on them is no test."""

import numpy as np
import pytest

from benches.papers.locked import BUDGETS, GROUPS, RULES, group_result


@pytest.mark.parametrize("name", GROUPS)
def test_a_problem_loses_what_it_says_at_its_start_and_nothing_at_its_best(name):
    group = GROUPS[name]
    losses = group.family(np.random.default_rng(1), 5, group.parameters, group.elo)
    lost = losses.engine.elo(losses.optimum) - losses.engine.elo(losses.start)
    assert lost[:, 0] == pytest.approx(np.full(5, 0.0 if group.settled else group.elo))
    assert (losses.start >= losses.lower).all()
    assert (losses.optimum <= losses.upper).all()
    nearby = losses.optimum + np.random.default_rng(2).normal(size=losses.optimum.shape)
    assert (losses.engine.elo(nearby) <= 1e-12).all()


def test_a_cliff_is_past_the_optimum_seen_from_the_start():
    losses = GROUPS["cliff"].family(np.random.default_rng(1), 5, 16, 20.0)
    way = np.sign(losses.optimum - losses.start)
    past, before = (losses.engine.elo(losses.optimum + 1.5 * s * way) for s in (1, -1))
    assert (past < 5 * before).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_judged_twice_alike(rule):
    one, again = (group_result("settled", rule, BUDGETS[0]) for _ in range(2))
    assert one.gained.tolist() == again.gained.tolist()
    assert one.gained.shape == one.move.shape == (GROUPS["settled"].runs,)
    assert one.gained.max() <= 0.0
    assert (one.move > 0.0).all()
    assert np.isnan(one.believed).all() == (rule != "mixture")
