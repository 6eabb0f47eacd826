"""Table 1 in short: blocks against the rules, and both against exact expectations."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from outcomes import outcome

from benches.papers.blocks import IsotropicQuadratic
from benches.papers.commands.check import far_cells
from benches.papers.table1 import PARAMETERS, Losses, Row, Table1Cell
from spsa.planning.simulated_run import SimulatedGames

EXACT = {
    Row.SPSA: (0.000670, 0.007917, 0.090286, 0.738820),
    Row.BSPSAS: (0.000284, 0.004525, 0.069790, 0.729860),
    Row.BSPSA: (0.000284, 0.004525, 0.069790, 0.729860),
}
LIMIT = (0.000280, 0.004468, 0.069173, 0.728713)
SHORT = 2000
PAPERS = [Row.SPSA, Row.BSPSAS, Row.BSPSA, Row.TOLD]


@pytest.mark.slow
@pytest.mark.parametrize("row", EXACT)
@pytest.mark.parametrize("i", [0, 3])
def test_expected_losses_and_limits_are_the_known_ones(row, i):
    cell = Table1Cell(row=row, n=PARAMETERS[i])
    assert cell.expected is not None and round(cell.expected, 6) == EXACT[row][i]
    assert round(cell.limit, 6) == LIMIT[i]


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("row", PAPERS)
def test_blocks_move_as_the_rules_do_step_by_step(row, n):
    cell = Table1Cell(row=row, n=n, iterations=50)
    rng = np.random.default_rng(1)
    rule = cell.rule(cell.problem(3))
    state, theta, k = rule.start(), cell.problem(3).start, 0
    bowl = IsotropicQuadratic(curvature=cell.curvature, draw_rate=0.3)
    for after, block in bowl.play(theta, cell.c, cell.gains(3), rng):
        for j in range(block.results.shape[1]):
            k += 1
            asked = rule.ask(state, k, rng)
            assert asked.c_k == pytest.approx(np.abs(block.offset[0, j, 0]))
            pairs = np.eye(5)[(block.results[:, j] + 2).astype(int)]
            both = {"centre": rule.theta(state), "difference": 2 * block.offset[:, j]}
            state = rule.tell(state, outcome(asked, pairs, k=k, **both))
            theta = theta + block.results[:, j, None] * block.gains[:, j]
            np.testing.assert_allclose(rule.theta(state), theta, rtol=1e-10)
        np.testing.assert_allclose(after, theta, rtol=1e-10)
    assert k == 50 and np.abs(theta - cell.problem(3).start).max() > 1e-4


@pytest.mark.parametrize("start", [0.4, -30.0, 30.0])
@pytest.mark.parametrize("draw_rate", [0.82, 0.1])
def test_blocks_play_the_games_of_the_synthetic_engines(start, draw_rate):
    runs = 20_000
    bowl = IsotropicQuadratic(curvature=5.0, draw_rate=draw_rate)
    cell = Table1Cell(row=Row.SPSA, n=1)
    begin = np.full((runs, 1), start)
    _, block = next(bowl.play(begin, np.ones(1), cell.gains(runs), np.random.default_rng(2)))
    better = -4 * 5.0 * block.offset[:, 0] * start
    games = SimulatedGames(draw_rate).play(better, 1, np.random.default_rng(3))
    signs = np.sign(block.offset[:, 0, 0])
    for sign in (-1.0, 1.0):
        mine = block.results[signs == sign, 0]
        counts = np.array([(mine == w).sum() for w in range(-2, 3)]) / len(mine)
        theirs = games[signs == sign].mean(axis=0)
        error = np.sqrt((counts + theirs + 1e-3) / (runs / 2))
        assert (np.abs(counts - theirs) < 4 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 16])
@pytest.mark.parametrize("row", PAPERS)
def test_short_runs_lose_on_average_what_is_expected(row, n):
    cell = Table1Cell(row=row, n=n, iterations=SHORT)
    losses = cell.losses(300, np.random.default_rng(4))
    assert cell.expected is not None
    error = losses.std() / sqrt(300)
    assert losses.mean() == pytest.approx(cell.expected, abs=3.5 * error)
    assert error < 0.1 * cell.expected


def test_runs_that_come_to_their_bounds_are_refused():
    with pytest.raises(ValueError, match="bounds"):
        Table1Cell(row=Row.SPSA, n=1, iterations=2_000_000).losses(1, np.random.default_rng(1))


def test_a_mean_that_is_far_from_the_published_one_is_reported():
    usual = Losses(cell=Table1Cell(row=Row.SPSA, n=4), runs=50, mean=0.008, deviation=0.005)
    assert list(far_cells([usual])) == []
    paper, exact = far_cells([replace(usual, mean=0.02)])
    assert "spsa with n = 4" in paper and "from the paper" in paper and "from exact" in exact
