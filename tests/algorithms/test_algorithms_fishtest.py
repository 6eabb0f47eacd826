import numpy as np
import pytest
from outcomes import START, generator, outcome, problem

from spsa.algorithms import Rule, create

BETTER = (2, 10, 20, 14, 4)  # W = 14 + 8 - 10 - 4 = 8


def rule(**settings: float) -> Rule:
    return create("fishtest", settings, problem())


def test_one_result_moves_theta_as_fishtest_does() -> None:
    fishtest = rule(r_end=0.004, c_end=2, A=30, alpha=0.5, gamma=0.1)
    asked = fishtest.ask(fishtest.start(), 3, generator())
    c = 2 * 200**0.1
    c_k = c / 3**0.1
    a = 0.004 * 2**2 * (30 + 200) ** 0.5
    r_k = a / (30 + 3) ** 0.5 / c_k**2
    assert np.abs(asked.offset) == pytest.approx(c_k)
    assert asked.centre.tolist() == START.tolist()
    after, _ = fishtest.tell(fishtest.start(), outcome(asked, BETTER, k=3))
    assert fishtest.theta(after) == pytest.approx(START + r_k * c_k * 8 * np.sign(asked.offset))


def test_the_gains_end_as_they_are_told_to() -> None:
    last = rule(r_end=0.003, c_end=1.5).ask(rule().start(), 200, generator())
    assert last.c_k == pytest.approx(1.5)
    assert last.a_k / last.c_k**2 == pytest.approx(0.003)


def test_the_defaults_are_those_of_the_trade() -> None:
    given = rule(r_end=0.002, c_end=1, A=20, alpha=0.602, gamma=0.101)
    for k in (1, 77, 200):
        usual, told = (r.ask(r.start(), k, generator()) for r in (rule(), given))
        assert (usual.a_k, usual.c_k) == (told.a_k, told.c_k)


def test_a_parameter_moves_by_half_the_difference_that_was_played() -> None:
    fishtest = rule()
    asked = fishtest.ask(fishtest.start(), 1, generator())
    played = np.array([2.0, -2.0, 3.0, 0.0, -0.5])
    after, _ = fishtest.tell(fishtest.start(), outcome(asked, BETTER, difference=played))
    r_k = asked.a_k / asked.c_k**2
    assert fishtest.theta(after) - START == pytest.approx(r_k * 8 * played / 2)


def test_the_gains_that_were_kept_with_the_iteration_count() -> None:
    """A run that was started with other settings goes on by the gains its rows have."""
    first, second = rule(), rule(r_end=0.02, c_end=3)
    asked = first.ask(first.start(), 1, generator())
    kept, _ = second.tell(second.start(), outcome(asked, BETTER))
    same, _ = first.tell(first.start(), outcome(asked, BETTER))
    assert second.theta(kept).tolist() == first.theta(same).tolist()


def test_results_are_taken_as_they_are_and_not_as_elo() -> None:
    """50 pairs won move theta by 100 wins, not by an infinite or a bounded Elo."""
    fishtest = rule()
    asked = fishtest.ask(fishtest.start(), 200, generator())
    after, move = fishtest.tell(fishtest.start(), outcome(asked, (0, 0, 0, 0, 50), k=200))
    assert np.abs(fishtest.theta(after) - START) == pytest.approx(0.002 * 100)
    assert not move.bounded
