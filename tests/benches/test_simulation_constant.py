"""The quick simulator plays the games of the constant-gain process, and ends as theory says."""

from math import sqrt

import numpy as np
import pytest
from builders import score_of_elo

from benches.papers.constant import ConstantGains
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
