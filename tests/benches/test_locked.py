"""Locked problems are what they say, and so is what a prior saves after a change of the engine.

Which rule is good on them is no test.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benches.papers.commands.locked import retune
from benches.papers.locked import BUDGETS, GROUPS, RULES, group_result
from benches.papers.retuning import CHANGES, FIRST_VALUES, KNOWLEDGE, THETA, Retuning, saving


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


def test_knowledge_starts_where_the_earlier_run_ended_and_the_first_values_do_not():
    found = Retuning(change="nothing", earlier=6000, later=1200, runs=12).lost()
    assert list(found) == [FIRST_VALUES, THETA, KNOWLEDGE]
    assert {each.shape for each in found.values()} == {(40, 12)}
    for start in (THETA, KNOWLEDGE):
        assert found[start][0].mean() < found[FIRST_VALUES][0].mean() / 2
    assert found[KNOWLEDGE][0].mean() < found[THETA][0].mean()


def test_games_saved_are_those_after_which_a_start_is_as_strong():
    reference = np.linspace(10.0, 1.0, 10)[:, None] * np.ones(3)
    assert saving(reference, reference) == pytest.approx(0.0)
    assert saving(reference / 2, reference) == pytest.approx(0.1)
    assert saving(np.minimum(reference, 1.0), reference) == pytest.approx(0.9)
    assert saving(reference + 1, reference) is None


@pytest.mark.slow
def test_the_command_tells_every_change_and_every_start():
    quick = ("--runs", "4", "--earlier", "1500", "--games", "1000")
    told = CliRunner().invoke(retune, quick)
    assert told.exit_code == 0, told.output
    assert all(f"changed: {change}; " in told.stdout for change in CHANGES)
    found = json.loads(CliRunner().invoke(retune, (*quick, "--json")).stdout)
    assert found["1 step"][KNOWLEDGE]["saved"].keys() == {FIRST_VALUES, THETA}
    assert len(found["everything"][THETA]["elo_left"]) == 1000 // 30
