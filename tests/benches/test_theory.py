"""Formulas of constant gains against each other, and against published figures."""

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benches.papers.commands.check import DESIGNS, designed
from benches.papers.constant_gains import (
    FORGOTTEN,
    Goal,
    Landscape,
    at_once,
    cautious,
    direct,
    fastest,
    in_turn,
    noise_of_game,
    root,
    time_needed,
)
from benches.papers.process import ConstantGainProcess
from spsa.algorithms import Vector
from spsa.core.scoring import ELO_PER_SCORE
from spsa.planning.simulated_run import SimulatedGames

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


def test_less_precision_and_less_confidence_need_fewer_games() -> None:
    def games(precision: float, confidence: float) -> int:
        return cautious(Goal(precision=precision, confidence=confidence), landscape(4)).games

    assert games(1.0, 0.95) == pytest.approx(games(0.5, 0.95) / 2, rel=1e-5)
    assert games(0.5, 0.5) < games(0.5, 0.95)


def test_a_start_that_is_good_enough_needs_no_design() -> None:
    with pytest.raises(ValueError, match=r"loses 0\.1 Elo is within 0\.211 already"):
        direct(Goal(precision=0.5), landscape(4), 0.1)


def test_unequal_parameters_are_planned_for_by_the_slowest() -> None:
    land = landscape(3)
    uneven = Landscape(loss=land.loss * [1, 4, 0.5], moment=land.moment, noise=land.noise)
    goal = Goal(precision=0.5)
    assert cautious(goal, uneven).games == pytest.approx(2 * cautious(goal, land).games, abs=1)
    assert uneven.slowness / 0.003 == pytest.approx(
        ELO_PER_SCORE / (4 * 0.003 * uneven.loss[2] * uneven.moment[2])
    )


def test_one_parameter_at_a_time_takes_n_times_as_many_games() -> None:
    c = np.array([1.0, 2.0, 0.5, 1.5])
    loss = np.array([0.2, 0.05, 1.0, 0.1])
    both = [
        ConstantGainProcess(loss=loss, moment=m(c), r=0.01, noise=0.4) for m in (at_once, in_turn)
    ]
    np.testing.assert_allclose(both[1].time_constants, 4 * both[0].time_constants)
    assert both[1].mean_loss == both[0].mean_loss


def test_bias_of_the_openings_takes_noise_away() -> None:
    assert noise_of_game(0.6) == pytest.approx(0.4)
    assert noise_of_game(0.6, bias=0.2) == pytest.approx(0.4 - 4 * 0.04)
    for draw_rate, bias in ((1.0, 0.0), (0.6, 0.4), (-0.1, 0.0)):
        with pytest.raises(ValueError, match="leave a variance of"):
            noise_of_game(draw_rate, bias)


def test_pairs_of_biased_openings_have_the_noise_that_is_left() -> None:
    draw_rate, bias, pairs = 0.5, 0.2, 400_000
    played = SimulatedGames(draw_rate, bias).play(np.zeros((pairs, 1)), 1, np.random.default_rng(4))
    result = played @ np.arange(-2.0, 3.0)
    expected = 2 * noise_of_game(draw_rate, bias)
    assert result.var() == pytest.approx(expected, rel=5 * sqrt(4 / pairs))
    assert expected < 0.7 * 2 * noise_of_game(draw_rate)


PROCESS = ConstantGainProcess(
    loss=np.array([0.3, 0.02, 1.0]), moment=np.array([1.0, 4.0, 0.5]), r=0.004, noise=0.39
)
BEGIN = np.array([1.0, -3.0, 0.5])


def test_a_process_begins_at_its_start_and_forgets_it() -> None:
    np.testing.assert_array_equal(PROCESS.mean(BEGIN, 0), BEGIN)
    np.testing.assert_array_equal(PROCESS.variance(0), 0.0)
    assert PROCESS.losses(BEGIN, 0).mean == pytest.approx(float(PROCESS.loss @ BEGIN**2))
    late = 40 * float(PROCESS.time_constants.max())
    assert PROCESS.losses(BEGIN, late).mean == pytest.approx(PROCESS.mean_loss)
    assert PROCESS.losses(BEGIN, late).quantile(0.7) == pytest.approx(PROCESS.loss_quantile(0.7))
    assert PROCESS.scale(BEGIN, late) == pytest.approx(1.0)


@pytest.mark.parametrize("games", [10.0, 3e4, 1e6])
def test_mean_and_variance_give_the_mean_loss(games: float) -> None:
    second = PROCESS.mean(BEGIN, games) ** 2 + PROCESS.variance(games)
    assert PROCESS.losses(BEGIN, games).mean == pytest.approx(float(PROCESS.loss @ second))


@pytest.mark.parametrize("games", [0.0, 2e4, 3e5])
def test_with_one_time_constant_the_mean_loss_is_that_of_2_7(games: float) -> None:
    land = landscape(4)
    process = ConstantGainProcess.of(land, 0.003)
    begin = np.array([10.0, -50.0, 3.0, 0.0])
    left = exp(-2 * games / float(process.time_constants[0]))
    at_start = float(land.loss @ begin**2)
    expected = at_start * left + process.mean_loss * (1 - left)
    assert process.losses(begin, games).mean == pytest.approx(expected)


def test_what_loses_nothing_walks_at_random() -> None:
    flat = ConstantGainProcess(loss=np.array([0.0]), moment=np.array([4.0]), r=0.01, noise=0.5)
    assert flat.variance(300)[0] == pytest.approx(300 * 0.5 * 0.01**2 * 4)
    assert flat.mean(np.array([2.0]), 300)[0] == 2.0
    assert flat.losses(np.array([2.0]), 300).mean == 0.0


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


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, float("nan")])
def test_a_loss_can_only_be_brought_to_a_part_of_itself(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        fastest(p)
    with pytest.raises(ValueError, match="is needed"):
        time_needed(0.5, p)


def test_a_direct_design_is_the_fastest_approach_in_its_own_units() -> None:
    land, goal, elo = landscape(4), Goal(precision=0.5), 2.0
    design = direct(goal, land, elo)
    process = ConstantGainProcess.of(land, design.r)
    assert process.mean_loss == pytest.approx(fastest(goal.mean_loss(4) / elo)[0] * elo)
    reached = process.losses(start(land, elo), design.games).mean
    assert reached == pytest.approx(goal.mean_loss(4), rel=1e-4)


def test_the_start_is_forgotten_after_three_time_constants() -> None:
    process = ConstantGainProcess.of(landscape(1), 0.01)
    left = process.mean(np.ones(1), FORGOTTEN * float(process.time_constants[0]))
    assert left[0] == pytest.approx(exp(-3))
    assert process.half_lives[0] == pytest.approx(process.time_constants[0] * log(2) / 2)
    assert sqrt(process.variance(1e12)[0] * process.loss[0]) == pytest.approx(
        sqrt(process.mean_loss)
    )


@pytest.mark.parametrize("sharp", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("place", [-0.99, 1e-9, 0.3])
def test_roots_are_found_to_the_bit_and_soon(sharp: float, place: float) -> None:
    asked = []

    def rising(x: float) -> float:
        asked.append(x)
        return exp(sharp * x) - exp(sharp * place)

    assert root(rising, -1.0, 2.0) == pytest.approx(place, abs=1e-13)
    assert len(asked) < 50
    assert root(rising, place + 0.1, 2.0) == place + 0.1
    assert root(rising, -1.0, place - 1e-3) == place - 1e-3
