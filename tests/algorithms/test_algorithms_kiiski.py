import numpy as np
import pytest
from outcomes import START, generator, outcome, problem

from spsa.algorithms import create


def test_one_game_won_moves_a_value_of_100_to_100_04() -> None:
    """The paper's own example: delta = 20, apply_factor = 0.002; here of two games, one won."""
    kiiski = create("kiiski", {"apply_factor": 0.002}, problem(np.array([100.0]), reach=500.0))
    asked = kiiski.ask(kiiski.start(), 1, generator())
    played = outcome(asked, (0, 0, 0, 1, 0), difference=np.array([40.0]))
    after, _ = kiiski.tell(kiiski.start(), played)
    assert kiiski.theta(after) == pytest.approx([100.04])


def test_theta_follows_the_winner_by_a_part_of_every_delta() -> None:
    kiiski = create("kiiski", {"sd": 1.5, "apply_factor": 0.01}, problem())
    asked = kiiski.ask(kiiski.start(), 9, generator())
    after, _ = kiiski.tell(kiiski.start(), outcome(asked, (4, 14, 20, 10, 2), k=9))
    assert kiiski.theta(after) - START == pytest.approx(-8 * 0.01 * asked.offset)
    assert len(set(np.abs(asked.offset))) == len(START)


def test_perturbations_are_normal_with_the_deviation_that_was_given() -> None:
    kiiski = create("kiiski", {"sd": 2.5}, problem())
    rng = generator(2)
    drawn = np.array([kiiski.ask(kiiski.start(), 1, rng).offset for _ in range(8000)]) / 2.5
    assert np.abs(drawn.mean(axis=0)).max() < 0.05
    assert np.abs(drawn.T @ drawn / 8000 - np.eye(len(START))).max() < 0.07
    assert np.mean(np.abs(drawn) < 1) == pytest.approx(0.6827, abs=0.01)


def test_nothing_decays() -> None:
    kiiski = create("kiiski", {}, problem())
    first, last = (kiiski.ask(kiiski.start(), k, generator()) for k in (1, 10_000))
    assert first.offset.tolist() == last.offset.tolist()
    assert (first.a_k, first.c_k) == (last.a_k, last.c_k) == (0.002, 1)
