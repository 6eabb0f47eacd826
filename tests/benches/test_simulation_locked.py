"""The locked problems are what they say; which rule is good on them is no test."""

import numpy as np
import pytest

from benches.papers.locked import BUDGETS, GROUPS, RULES, Conditions, Drifting, group_result


@pytest.mark.parametrize("name", GROUPS)
def test_a_problem_loses_what_it_says_at_its_start_and_nothing_at_its_best(name: str) -> None:
    group = GROUPS[name]
    losses = group.family(np.random.default_rng(1), 5, group.parameters, group.elo)
    lost = losses.engine.elo(losses.optimum) - losses.engine.elo(losses.start)
    assert lost[:, 0] == pytest.approx(np.full(5, 0.0 if group.settled else group.elo))
    assert (losses.start >= losses.lower).all()
    assert (losses.optimum <= losses.upper).all()
    nearby = losses.optimum + np.random.default_rng(2).normal(size=losses.optimum.shape)
    assert (losses.engine.elo(nearby) <= 1e-12).all()


def test_a_cliff_is_past_the_optimum_seen_from_the_start() -> None:
    losses = GROUPS["cliff"].family(np.random.default_rng(1), 5, 16, 20.0)
    way = np.sign(losses.optimum - losses.start)
    past, before = (losses.engine.elo(losses.optimum + 1.5 * s * way) for s in (1, -1))
    assert (past < 5 * before).all()


def test_an_optimum_that_drifts_moves_with_results_and_not_with_looks() -> None:
    engine = GROUPS["drifting"].family(np.random.default_rng(1), 5, 16, 20.0).engine
    assert isinstance(engine, Drifting)
    first = engine.optimum
    for _ in range(50):
        engine.elo(first)
    assert engine.optimum.tolist() == first.tolist()
    for _ in range(50):
        engine.elo(np.stack([first, first]))
    moved = np.abs(engine.optimum - first)
    assert 0.0 < moved.max() <= 1.0


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_judged_twice_alike(rule: str) -> None:
    one, again = (group_result("settled", rule, BUDGETS[0]) for _ in range(2))
    assert one.gained.tolist() == again.gained.tolist()
    assert one.gained.shape == one.move.shape == (GROUPS["settled"].runs,)
    assert one.gained.max() <= 0.0
    assert (one.move > 0.0).all()
    assert np.isnan(one.believed).all() == (rule != "mixture")


def test_the_conditions_are_those_of_the_games() -> None:
    """Another seed is another problem; pairs, draws and results in flight are other games."""
    usual = group_result("2 Elo", "mixture", BUDGETS[0])
    for other in (
        Conditions(seed=7),
        Conditions(pairs=10),
        Conditions(draw_rate=0.9),
        Conditions(in_flight=4),
    ):
        assert group_result("2 Elo", "mixture", BUDGETS[0], other).gained.mean() != (
            usual.gained.mean()
        )


def test_every_step_is_misjudged_by_itself() -> None:
    """Up to four times, either way; what a step costs differs by more than a hundred."""
    group = GROUPS["spread"]
    losses = group.family(np.random.default_rng(1), 40, group.parameters, group.elo)
    cost = np.stack(
        [-losses.engine.elo(losses.optimum + step)[:, 0] for step in np.eye(group.parameters)],
        axis=-1,
    )
    spread = np.log(cost).std(axis=-1)
    assert np.median(spread) > 1.5
