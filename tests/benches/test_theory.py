"""Constant gains: their formulas, published figures, and simulation beside them."""

import json
from math import sqrt

import numpy as np
import pytest
from click.testing import CliRunner

from benches.papers.__main__ import papers
from benches.papers.commands.check import DESIGNS, designed
from benches.papers.constant import ConstantGains
from benches.papers.constant_gains import Goal, Landscape, at_once, cautious, direct, noise_of_game

DIRECT = {  # its second heuristic: r, games, mean, median, 95%, success
    1: (0.006268, 136208),
    4: (0.002467, 296057),
    16: (0.000865, 729865),
}
COARSE = ("--precision", "8", "--elo", "40", "--start-elo", "30")  # few games


def theory(replicas: int, *more: str) -> str:
    """What `benches.papers theory` prints."""
    done = CliRunner().invoke(papers, ["theory", "--replicas", str(replicas), *more])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("n", DESIGNS)
def test_the_published_designs_to_the_digits_printed(n):
    """The second at their defaults: 0 to 200, two Elo lost at half, c a sixth, 61% drawn."""
    assert designed(n) == DESIGNS[n]
    width, goal = np.full(n, 200.0), Goal(precision=0.5)
    landscape = Landscape(
        loss=2.0 / np.square(width / 2), moment=at_once(width / 6), noise=noise_of_game(0.61)
    )
    design, (r, games) = direct(goal, landscape, 2.0), DIRECT[n]
    assert round(design.r, 6) == r
    assert abs(design.games - games) <= 1  # it cuts where we round
    assert design.games < cautious(goal, landscape).games


def test_bias_of_the_openings_takes_noise_away():
    assert noise_of_game(0.6) == pytest.approx(0.4)
    assert noise_of_game(0.6, bias=0.2) == pytest.approx(0.4 - 4 * 0.04)
    for draw_rate, bias in ((1.0, 0.0), (0.6, 0.4), (-0.1, 0.0)):
        with pytest.raises(ValueError, match="leave a variance of"):
            noise_of_game(draw_rate, bias)


def test_more_parameters_than_a_word_has_bits_get_signs_of_their_own():
    n = 70
    wide = ConstantGains(loss=np.full(n, 1e-6), c=np.ones(n), r=1.0, draw_rate=0.0)
    signs = wide.at_once(np.zeros((4000, n)), 1, np.random.default_rng(5))
    assert set(np.unique(np.rint(signs))) == {-1.0, 1.0}
    assert np.abs(np.corrcoef(signs.T) - np.eye(n)).max() < 5 / sqrt(4000)


@pytest.mark.slow
def test_van_den_berghs_example_to_the_digits_printed():
    told = theory(10)
    for line in (
        "r = 0.003111, c = 0.166667 of the range, 376868 games",
        "the loss halves in 43537.498565 games",
        "loses 0.210799 Elo on average, less than 0.176897 in half of all runs and than 0.500000",
        "after the games it loses 1.021039 times as much",
    ):
        assert line in told
    (last,) = [line.split() for line in told.splitlines() if "376868  Elo lost, 95%" in line]
    assert last[4] == "0.510440"


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        "",
        "--in-turn",
        "--direct -n 1",
        "--elo 60,20,10 --guessed-elo 30",
        "--by-rule",
        "--by-rule --bias 0.1",
        "--by-rule --in-turn --draw-rate 0.2",
    ],
)
def test_simulations_agree_with_the_formulas(how):
    answer = json.loads(theory(300, "--json", *COARSE, *how.split()))
    checks = answer["checks"]
    assert max(check["games"] for check in checks) == pytest.approx(answer["games"], abs=2)
    assert len(checks) == 24
    assert all(abs(check["z"]) < 4.5 for check in checks), checks
