from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from outcomes import START, N, generator, outcome, problem, tallies, walked

from spsa.algorithms import Bspsa, Bspsas, Outcome, Prior, Rule, Vector
from spsa.algorithms.rule import State

SIGMA = np.array([5.0, 7.0, 9.0, 4.0, 12.0])
DISTANCE = np.array([1.0, 0.5, 2.0, 3.0, 0.25])
PRIOR = Prior(sigma=SIGMA, distance=DISTANCE, tau=0.6, c_end=1.5)


def told(prior: Prior = PRIOR, start: Vector = START) -> Bspsa:
    return Bspsa(problem=problem(start, reach=50.0), prior=prior)


def test_theta_moves_as_by_14_to_16() -> None:
    """The precision of the paper, and its system of equations, beside the covariance."""
    rule, theta = told(), START
    precision = np.diag(1 / DISTANCE**2)
    state, rng = rule.start(), generator()
    for k, w in enumerate((2, -1, 0, 1, 1, -2), start=1):
        asked = rule.ask(state, k, rng)
        state, _ = rule.tell(state, outcome(asked, np.eye(5)[w + 2], k=k))
        A = 2 * asked.offset / SIGMA**2
        precision = precision + np.outer(A, A) / 0.6**2  # (14)
        theta = theta + np.linalg.solve(precision, A * w / 0.6**2)  # (15), (16)
        assert rule.theta(state) == pytest.approx(theta)
        assert state.covariance == pytest.approx(np.linalg.inv(precision))
    assert np.abs(np.tril(state.covariance, -1)).max() > 0.01


def told_all(rule: Rule, outcomes: list[Outcome]) -> State:
    state = rule.start()
    for one in outcomes:
        state, _ = rule.tell(state, one)
    return state


def test_late_results_say_the_same_in_any_order() -> None:
    """Against one regression over all results, each about the centre it was played at."""
    rule = told()
    asked = [rule.ask(rule.start(), k, generator(k)) for k in (1, 2, 3)]
    centres = START + np.array([[0.0] * N, [0.5] * N, [-1.0, 0.0, 1.0, 2.0, 0.25]])
    outcomes = [
        outcome(a, pentanomial, k=k, centre=centre)
        for k, (a, pentanomial, centre) in enumerate(
            zip(asked, tallies(seed=4, count=3), centres, strict=True), start=1
        )
    ]
    precision = np.diag(1 / DISTANCE**2)
    seen = precision @ START
    for one in outcomes:
        A = one.difference / SIGMA**2
        precision = precision + one.pairs * np.outer(A, A) / 0.6**2
        seen = seen + A * (one.result + one.pairs * np.sum(A * one.centre)) / 0.6**2
    wanted = np.linalg.solve(precision, seen)
    for order in permutations(outcomes):
        state = told_all(rule, list(order))
        assert state.mean == pytest.approx(wanted)
        assert state.covariance == pytest.approx(np.linalg.inv(precision))


def test_of_one_parameter_both_filters_believe_the_same() -> None:
    start = np.array([2.0])
    prior = Prior(sigma=7.0, distance=1.5)
    results = tallies(seed=5, count=40)
    full = told(prior, start)
    simple = Bspsas(problem=full.problem, prior=prior)
    beliefs = [rule.belief(walked(rule, results)) for rule in (full, simple)]
    assert beliefs[0].mean == pytest.approx(beliefs[1].mean)
    assert beliefs[0].deviation == pytest.approx(beliefs[1].deviation)
    assert beliefs[0].deviation < 1.0


def test_the_covariance_stays_symmetric_to_the_bit_and_positive() -> None:
    covariance = walked(told(), tallies(seed=6, count=200)).covariance
    assert covariance.tobytes() == covariance.T.copy().tobytes()
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_shifting_all_values_by_10000_changes_nothing() -> None:
    results = tallies(seed=3, count=30, pairs=2)
    here = told()
    moved = replace(
        here.problem,
        start=START + 10_000,
        lower=here.problem.lower + 10_000,
        upper=here.problem.upper + 10_000,
    )
    there = replace(here, problem=moved)
    steps = here.theta(walked(here, results)) - START
    assert np.abs(steps).max() > 0.05
    assert there.theta(walked(there, results)) - (START + 10_000) == pytest.approx(steps, abs=1e-8)


def test_a_parameter_that_was_not_perturbed_moves_by_its_correlation_alone() -> None:
    rule = told()
    asked = rule.ask(rule.start(), 1, generator())
    still = 2 * asked.offset * np.array([1, 1, 0, 1, 1])
    first, _ = rule.tell(rule.start(), outcome(asked, (0, 9, 20, 11, 7), difference=still))
    assert first.mean[2] == START[2]
    state, _ = rule.tell(rule.start(), outcome(asked, (0, 9, 20, 11, 7)))
    after, _ = rule.tell(state, outcome(asked, (0, 9, 20, 11, 7), difference=still))
    assert after.mean[2] != state.mean[2]
