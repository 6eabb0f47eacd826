"""The curve through all validations: by the formulas, and its interval covers the truth."""

import numpy as np
import pytest

from spsa.planning.strength import strength_curve


def test_no_match_is_no_curve_and_the_start_says_nothing():
    assert strength_curve([], [], []) is None
    assert strength_curve([0], [12.0], [5.0]) is None


def test_the_curve_is_the_conditional_mean_of_a_random_walk(monkeypatch):
    """One value of q; by the covariance q min(k, k') of the walk."""
    monkeypatch.setattr("spsa.planning.strength._CHANGES", np.array([16.0]))
    ks, elo, sd = [30, 50, 50, 100], [4.0, 9.0, 1.0, 14.0], [5.0, 6.0, 8.0, 4.0]
    found = strength_curve(ks, elo, sd)
    prior = 16.0**2 / 100 * np.minimum.outer(ks, ks)
    gain = prior @ np.linalg.inv(prior + np.diag(np.square(sd)))
    assert found.elo[1:] == pytest.approx(gain @ elo)
    assert found.deviation[1:] == pytest.approx(np.sqrt(np.diag(prior - gain @ prior)))


def test_neighbours_make_each_other_sharper_and_the_order_does_not_matter():
    ks = list(range(10, 110, 10))
    alone = strength_curve(ks[-1:], [10.0], [8.0])
    together = strength_curve(ks, [10.0] * 10, [8.0] * 10)
    assert together.deviation[-1] < 0.8 * alone.deviation[-1]
    backwards = strength_curve(ks[::-1], [10.0] * 10, [8.0] * 10)
    assert backwards == together


def test_the_interval_covers_a_strength_that_saturates_as_often_as_it_says():
    """No random walk: the gain of a tuning rises and levels off."""
    rng = np.random.default_rng(5)
    ks, inside, total = np.arange(50, 1050, 50), 0, 0
    for _ in range(300):
        truth = rng.uniform(0, 60) * (1 - np.exp(-ks / rng.uniform(50, 1000)))
        seen = truth + rng.normal(0, 12, ks.shape)
        found = strength_curve(ks.tolist(), seen.tolist(), [12.0] * len(ks))
        apart = np.abs(np.array(found.elo[1:]) - truth)
        inside += int((apart < 1.96 * np.array(found.deviation[1:])).sum())
        total += len(ks)
    assert 0.92 < inside / total < 0.99


def test_against_another_engine_the_start_has_an_elo_of_its_own():
    ks, elo = [0, 100, 200], [-150.0, -140.0, -120.0]
    found = strength_curve(ks, elo, [5.0] * 3, over_start=False)
    assert found.ks == (0, 100, 200)
    assert found.elo == pytest.approx(elo, abs=6.0)
    assert all(0.0 < sd < 6.0 for sd in found.deviation)
    moved = strength_curve(ks, [one + 500.0 for one in elo], [5.0] * 3, over_start=False)
    assert [b - a for a, b in zip(found.elo, moved.elo, strict=True)] == pytest.approx(
        [500.0] * 3, abs=0.1
    )
    assert strength_curve([7], [-9.0], [5.0], over_start=False).elo == pytest.approx(
        (-9.0,), abs=0.01
    )
