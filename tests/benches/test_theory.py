"""Formulas of constant gains against each other, and against published figures."""

from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.papers.commands.check import DESIGNS, designed
from benches.papers.constant_gains import (
    Goal,
    Landscape,
    at_once,
    cautious,
    direct,
    fastest,
    noise_of_game,
    time_needed,
)
from benches.papers.process import ConstantGainProcess
from spsa.algorithms import Vector

DIRECT = {  # its second heuristic: r, games, mean, median, 95%, success
    1: (0.006268, 136208),
    4: (0.002467, 296057),
    16: (0.000865, 729865),
}


def landscape(n: int) -> Landscape:
    """Its defaults: 0 to 200, two Elo lost at half of it, c a sixth of it, 61% drawn."""
    width = np.full(n, 200.0)
    return Landscape(
        loss=2.0 / np.square(width / 2), moment=at_once(width / 6), noise=noise_of_game(0.61)
    )


def start(land: Landscape, elo: float) -> Vector:
    distance: Vector = np.sqrt(elo / land.loss.size / land.loss)
    return distance


@pytest.mark.parametrize("n", DESIGNS)
def test_the_published_design_to_the_digits_printed(n: int) -> None:
    assert designed(n) == DESIGNS[n]


@pytest.mark.parametrize("n", DIRECT)
def test_the_published_direct_design_to_the_digits_printed(n: int) -> None:
    design = direct(Goal(precision=0.5), landscape(n), 2.0)
    r, games = DIRECT[n]
    assert round(design.r, 6) == r
    assert abs(design.games - games) <= 1  # it cuts where we round
    assert design.games < cautious(Goal(precision=0.5), landscape(n)).games


def test_a_design_meets_its_goal_in_the_end_and_nearly_after_its_games() -> None:
    land, goal = landscape(9), Goal(precision=0.3, confidence=0.8)
    design = cautious(goal, land)
    process, begin = ConstantGainProcess.of(land, design.r), start(land, 2.0)
    assert process.loss_quantile(0.8) == pytest.approx(0.3)
    assert process.losses(begin, 20 * design.games).cdf(0.3) == pytest.approx(0.8, abs=1e-9)
    assert 0.75 < process.losses(begin, design.games).cdf(0.3) < 0.8


def test_bias_of_the_openings_takes_noise_away() -> None:
    assert noise_of_game(0.6) == pytest.approx(0.4)
    assert noise_of_game(0.6, bias=0.2) == pytest.approx(0.4 - 4 * 0.04)
    for draw_rate, bias in ((1.0, 0.0), (0.6, 0.4), (-0.1, 0.0)):
        with pytest.raises(ValueError, match="leave a variance of"):
            noise_of_game(draw_rate, bias)


PROCESS = ConstantGainProcess(
    loss=np.array([0.3, 0.02, 1.0]), moment=np.array([1.0, 4.0, 0.5]), r=0.004, noise=0.39
)
BEGIN = np.array([1.0, -3.0, 0.5])


@pytest.mark.parametrize("games", [10.0, 3e4, 1e6])
def test_mean_and_variance_give_the_mean_loss(games: float) -> None:
    second = PROCESS.mean(BEGIN, games) ** 2 + PROCESS.variance(games)
    assert PROCESS.losses(BEGIN, games).mean == pytest.approx(float(PROCESS.loss @ second))


@settings(max_examples=60)
@given(st.floats(1e-4, 0.95))
def test_the_fastest_approach_solves_2_8_and_is_the_fastest(p: float) -> None:
    R, T = fastest(p)
    assert 0 < R < p
    left = exp(-R * T)
    assert left + R * (1 - left) == pytest.approx(p)
    for nearby in (0.99, 1.01):
        if R * nearby < p:
            assert time_needed(R * nearby, p) >= T
