"""Formulas of constant gains against each other, and against published figures."""

import numpy as np
import pytest

from benches.papers.commands.check import DESIGNS, designed
from benches.papers.constant_gains import Goal, Landscape, at_once, cautious, direct, noise_of_game

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


@pytest.mark.parametrize("n", DESIGNS)
def test_the_published_design_to_the_digits_printed(n):
    assert designed(n) == DESIGNS[n]


@pytest.mark.parametrize("n", DIRECT)
def test_the_published_direct_design_to_the_digits_printed(n):
    design = direct(Goal(precision=0.5), landscape(n), 2.0)
    r, games = DIRECT[n]
    assert round(design.r, 6) == r
    assert abs(design.games - games) <= 1  # it cuts where we round
    assert design.games < cautious(Goal(precision=0.5), landscape(n)).games


def test_bias_of_the_openings_takes_noise_away():
    assert noise_of_game(0.6) == pytest.approx(0.4)
    assert noise_of_game(0.6, bias=0.2) == pytest.approx(0.4 - 4 * 0.04)
    for draw_rate, bias in ((1.0, 0.0), (0.6, 0.4), (-0.1, 0.0)):
        with pytest.raises(ValueError, match="leave a variance of"):
            noise_of_game(draw_rate, bias)
