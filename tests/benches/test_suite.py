"""The suite's problems are what they say, and `papers compare` plays rules on them."""

import json
from dataclasses import replace
from math import isclose

import numpy as np
import pytest
from click.testing import CliRunner

from benches.papers.commands.compare import compare
from benches.papers.comparison import (
    COMPARED_RULES,
    ComparisonCell,
    ComparisonSettings,
    RuleResults,
    ranks,
    with_elo_to_gain,
)
from benches.papers.families import FAMILIES
from benches.papers.random_losses import RandomLosses
from benches.papers.suite import ProblemGroup, Size, Suite, together

SMALL = Size(parameters=(4, 8), budgets=(1_000, 20_000), problems=6, most_results=20_000)
SUITE = Suite(seed=11, half="judge", size=SMALL)


def losses(family: str, problems: int = 40, n: int = 6, seed: int = 3) -> RandomLosses:
    return FAMILIES[family](np.random.default_rng(seed), problems, n)


def group(pairs: int, suite: Suite = SUITE) -> ProblemGroup:
    return next(iter(suite.groups(pairs)))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_point_within_the_bounds_beats_the_optimum_where_nothing_is_lost(family):
    drawn = losses(family)
    assert np.all(drawn.engine.elo(drawn.optimum) == 0.0)
    elsewhere = np.random.default_rng(1).uniform(drawn.lower, drawn.upper, (200, 40, 6))
    assert np.all(drawn.engine.elo(elsewhere) < 0.0)


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "settled"])
def test_the_start_loses_the_elo_to_gain(family):
    drawn = losses(family)
    assert np.allclose(-drawn.engine.elo(drawn.start), drawn.elo_to_gain, rtol=1e-9)
    least, most = (6 * 20.0, 6 * 80.0) if family == "steep" else (1.0, 60.0)
    assert least <= drawn.elo_to_gain.min() < drawn.elo_to_gain.max() <= most
    assert drawn.elo_to_gain.max() - drawn.elo_to_gain.min() > (most - least) / 4


def test_a_seed_draws_the_same_problems_and_another_seed_or_half_draws_others():
    one, again = SUITE.problems(group(75)), SUITE.problems(group(75))
    assert np.array_equal(one.losses.hessian, again.losses.hessian)
    assert np.array_equal(one.draw_rate, again.draw_rate)
    for other in (replace(SUITE, seed=12), replace(SUITE, half="choose")):
        found = other.problems(group(75))
        assert not np.intersect1d(one.losses.elo_to_gain, found.losses.elo_to_gain).size
        assert not np.intersect1d(one.draw_rate, found.draw_rate).size


def test_a_budget_holds_the_same_problems_however_it_is_cut():
    pairs, games = SUITE.problems(group(1)), SUITE.problems(group(75))
    assert (pairs.problem.iterations, games.problem.iterations) == (1_000, 13)
    assert np.array_equal(pairs.losses.optimum, games.losses.optimum)
    assert np.array_equal(pairs.draw_rate, games.draw_rate)


def test_engines_side_by_side_are_each_asked_for_their_own():
    parts = [losses("iso", 5), losses("rotated", 5), losses("lopsided", 5)]
    whole = together(parts)
    sides = np.stack([whole.start, whole.start + 0.3])
    each = [np.stack([p.start, p.start + 0.3]) for p in parts]
    wanted = [p.engine.elo(theta) for p, theta in zip(parts, each, strict=True)]
    assert np.array_equal(whole.engine.elo(sides), np.concatenate(wanted, axis=-2))


CELL, NO_ELO_TO_GAIN = (
    ComparisonCell(family=f, parameters=4, budget=9) for f in ("iso", "settled")
)


def of_rule(rule: str, *gained: float) -> RuleResults:
    return RuleResults(rule, {CELL: np.array(gained), NO_ELO_TO_GAIN: np.array([-9.0, -9.0])})


def test_the_results_of_a_rule_have_means_with_errors_and_leaves_out_what_nobody_can_gain():
    one, other = of_rule("one", 0.5, 0.7, 0.9), of_rule("other", 0.4, 0.5, 0.9)
    assert isclose(one.overall().mean, 0.7) and one.overall().count == 3
    assert isclose(one.overall().error, 0.2 / 3**0.5)
    assert isclose(one.gain_over(other).mean, 0.1)
    assert isclose(one.gain_over(other).error, 0.1 / 3**0.5)
    assert one.worst() == (-9.0, NO_ELO_TO_GAIN)
    assert ranks([other, one], "iso") == {"one": 1, "other": 2}
    assert list(with_elo_to_gain(one.cells)) == [CELL]


@pytest.mark.parametrize("rule", COMPARED_RULES)
def test_everybody_can_run_and_ends_at_a_number(rule):
    tiny = Size(parameters=(2,), budgets=(300,), problems=2, most_results=300)
    contest = ComparisonSettings(
        suite=Suite(seed=1, half="choose", size=tiny), pairs=30, in_flight=3
    )
    for h in contest.groups():
        for part in contest.recovered(rule, h).values():
            assert np.all(np.isfinite(part))


def test_the_command_has_every_rule_with_its_difference_and_every_cell_and_repeats_itself():
    asked = ["--rules", "mixture,fishtest", "--budgets", "600", "--problems", "2", "--batch", "75"]
    told, found, again = (
        CliRunner().invoke(compare, [*asked, *more]) for more in ([], ["--json"], ["--json"])
    )
    assert (told.exit_code, found.exit_code) == (0, 0), told.output
    lines = told.stdout.splitlines()
    assert lines[0].startswith("half judge, seed 1: 70 problems, 75 pairs an iteration")
    assert "minus mixture" in lines[1]
    assert [line.split()[0] for line in lines[2:4]] == ["mixture", "fishtest"]
    assert "heterogeneous" in told.stdout and "settled" in told.stdout
    (contest,) = json.loads(found.stdout)["contests"]
    assert [one["rule"] for one in contest["rules"]] == ["mixture", "fishtest"]
    cells = contest["rules"][0]["cells"]
    sizes = {(cell["parameters"], cell["budget"]) for cell in cells}
    assert sizes == {(4, 600), (16, 600), (64, 600), (8, 720), (8, 900)}
    assert all(len(cell["recovered"]) == 2 for cell in cells)
    assert found.stdout == again.stdout
