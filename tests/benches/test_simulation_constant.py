"""The quick simulator plays the games of the constant-gain process, and ends as theory says."""

from math import sqrt

import numpy as np
import pytest
from elo import score_of_elo

from benches.papers.constant import ConstantGains
from benches.papers.constant_gains import at_once, in_turn, noise_of_game
from benches.papers.process import ConstantGainProcess
from spsa.algorithms import Vector

LOSS, C = np.array([0.3, 0.02, 1.0]), np.array([1.0, 4.0, 0.5])


def gains(r: float = 0.01, draw_rate: float = 0.5) -> ConstantGains:
    return ConstantGains(loss=LOSS, c=C, r=r, draw_rate=draw_rate)


def elo(theta: Vector) -> Vector:
    loss: Vector = (LOSS * theta**2).sum(axis=-1)
    return -loss


def test_one_game_moves_towards_its_winner_who_wins_as_often_as_elo_says() -> None:
    replicas, r, draw_rate = 200_000, 0.01, 0.5
    theta = np.tile([3.0, -5.0, 2.0], (replicas, 1))
    moved = gains(r, draw_rate).at_once(theta, 1, np.random.default_rng(1)) - theta
    signs = np.rint(moved / (r * C)).astype(int)
    np.testing.assert_allclose(moved, signs * r * C, atol=1e-5)
    decisive = np.abs(signs).max(axis=-1) == 1
    assert decisive.mean() == pytest.approx(1 - draw_rate, abs=0.005)
    assert (np.abs(signs[decisive]) == 1).all()
    for way in ([1, 1, 1], [1, -1, 1], [-1, 1, -1], [1, 1, -1]):
        won = (signs == way).all(axis=-1).mean()  # way won by plus, or its opposite by minus
        better = float(elo(theta[0] + C * way) - elo(theta[0] - C * way))
        chance = (score_of_elo(better) - draw_rate / 2) / 4
        assert won == pytest.approx(chance, abs=5 * sqrt(chance / replicas)), way


def test_a_side_far_ahead_wins_every_decisive_game() -> None:
    theta = np.tile([400.0, 0.0, 0.0], (500, 1))
    moved = gains(r=1e-2).at_once(theta, 20, np.random.default_rng(1)) - theta
    won = -moved[:, 0] / 1e-2
    assert won.mean() == pytest.approx(10, abs=0.5)


def test_no_games_and_nothing_but_draws_move_nothing() -> None:
    theta = np.random.default_rng(1).standard_normal((70, 3))
    for still, games in ((gains(), 0), (gains(draw_rate=1.0), 50)):
        np.testing.assert_allclose(still.at_once(theta, games, np.random.default_rng(2)), theta)
        np.testing.assert_allclose(still.in_turn(theta, games, np.random.default_rng(2)), theta)


def test_replicas_keep_their_places_and_do_not_know_of_each_other() -> None:
    theta = np.arange(300.0)[:, None] * [1.0, 0.0, 0.0]
    ended = gains(r=1e-5).at_once(theta, 40, np.random.default_rng(2))
    np.testing.assert_allclose(ended, theta, atol=0.01)
    moved = np.rint((ended - theta)[:, 1] / 4e-5)
    assert abs(np.corrcoef(moved[:-1], moved[1:])[0, 1]) < 0.25
    assert (moved % 2 == np.rint((ended - theta)[:, 2] / 0.5e-5) % 2).all()  # one parity of games


def test_one_parameter_at_a_time_gets_its_share_of_the_games() -> None:
    theta = np.zeros((400, 3))
    played = gains(r=0.001, draw_rate=0.0).in_turn(theta, 5, np.random.default_rng(2))
    counts = np.rint(np.abs(played) / (0.001 * C))
    assert {tuple(np.unique(column)) for column in counts.T} == {(0.0, 2.0), (1.0,)}


def test_more_parameters_than_a_word_has_bits_get_signs_of_their_own() -> None:
    n = 70
    wide = ConstantGains(loss=np.full(n, 1e-6), c=np.ones(n), r=1.0, draw_rate=0.0)
    signs = wide.at_once(np.zeros((4000, n)), 1, np.random.default_rng(5))
    assert set(np.unique(np.rint(signs))) == {-1.0, 1.0}
    alike = np.corrcoef(signs.T) - np.eye(n)
    assert np.abs(alike).max() < 5 / sqrt(4000)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["at once", "in turn"])
@pytest.mark.parametrize("n", [1, 3])
def test_means_and_percentiles_are_those_of_the_theory(way: str, n: int) -> None:
    replicas, games, r, draw_rate = 4000, 9000, 0.02, 0.6
    process = ConstantGainProcess(
        loss=LOSS[:n],
        moment=(at_once if way == "at once" else in_turn)(C[:n]),
        r=r,
        noise=noise_of_game(draw_rate),
    )
    walk = ConstantGains(loss=LOSS[:n], c=C[:n], r=r, draw_rate=draw_rate)
    begin = np.array([1.0, -3.0, 0.5])[:n]
    play = walk.at_once if way == "at once" else walk.in_turn
    theta = play(np.tile(begin, (replicas, 1)), games, np.random.default_rng(8))
    spread = np.sqrt(process.variance(games))
    error = (theta.mean(axis=0) - process.mean(begin, games)) / spread * sqrt(replicas)
    assert np.abs(error).max() < 4
    np.testing.assert_allclose(theta.var(axis=0) / spread**2, 1.0, atol=5 * sqrt(2 / replicas))
    lost, expected = theta**2 @ LOSS[:n], process.losses(begin, games)
    assert lost.mean() == pytest.approx(expected.mean, abs=4 * lost.std() / sqrt(replicas))
    for probability in (0.05, 0.5, 0.95):
        within = (lost <= expected.quantile(probability)).mean()
        error = sqrt(probability * (1 - probability) / replicas)
        assert within == pytest.approx(probability, abs=4 * error)


def test_games_may_be_played_in_parts() -> None:
    theta = np.tile([1.0, -3.0, 0.5], (3000, 1))
    rng = np.random.default_rng(3)
    whole = gains().at_once(theta, 4000, rng)
    parts = gains().at_once(gains().at_once(theta, 1500, rng), 2500, rng)
    error = np.sqrt((whole.var(axis=0) + parts.var(axis=0)) / 3000)
    assert (np.abs(whole.mean(axis=0) - parts.mean(axis=0)) < 4 * error).all()
