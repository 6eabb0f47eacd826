"""`bspsa` and `bspsas` against the formulas of Ivec & Vojnovic 2022, and what follows from them."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from outcomes import START, N, generator, outcome, problem, tallies, told, walked

from spsa.algorithms import create
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas, sigma_of
from spsa.core.scoring import ELO_PER_SCORE
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

SIGMA = np.array([5.0, 7.0, 9.0, 4.0, 12.0])
DISTANCE = np.array([1.0, 0.5, 2.0, 3.0, 0.25])
PRIOR: dict[str, Any] = {"sigma": SIGMA, "distance": DISTANCE, "tau": 0.6, "c_end": 1.5}


def filter_of(kind=Bspsas, prior=PRIOR, start=START):
    return kind(problem=problem(start, reach=50.0), **prior)


def test_bspsa_moves_as_by_14_to_16():
    """The precision of the paper, and its system of equations, beside the covariance."""
    rule, theta = filter_of(Bspsa), START
    precision = np.diag(1 / DISTANCE**2)
    state, rng = rule.start(), generator()
    for k, w in enumerate((2, -1, 0, 1, 1, -2), start=1):
        asked = rule.ask(state, k, rng)
        state = rule.tell(state, outcome(asked, np.eye(5)[w + 2], k=k))
        A = 2 * asked.offset / SIGMA**2
        precision = precision + np.outer(A, A) / 0.6**2  # (14)
        theta = theta + np.linalg.solve(precision, A * w / 0.6**2)  # (15), (16)
        assert rule.theta(state) == pytest.approx(theta)
        assert state.covariance == pytest.approx(np.linalg.inv(precision))
        assert rule.belief(state).deviation == pytest.approx(np.sqrt(np.diag(state.covariance)))
    assert np.abs(np.tril(state.covariance, -1)).max() > 0.01


def test_bspsas_moves_as_by_9_without_its_sum_and_10():
    """Of several pairs, also where they were not played about the mean."""
    rule, s2, theta = filter_of(), DISTANCE**2, START
    state, rng, aside = rule.start(), generator(), np.array([0.0, 0.5, 0.0, -0.5, 0.0])
    assert (rule.belief(state).mean == START).all()
    for k, pentanomial in enumerate(((0, 0, 0, 0, 1), (1, 2, 3, 5, 4), (0, 1, 0, 0, 0)), start=1):
        asked = rule.ask(state, k, rng)
        played = outcome(asked, pentanomial, k=k, centre=theta + aside)
        state = rule.tell(state, played)
        B, W = sum(pentanomial), np.dot(pentanomial, (-2, -1, 0, 1, 2))
        A = 2 * asked.offset / SIGMA**2
        nu = W + B * np.sum(A * aside)
        below = B * A**2 * s2 + 0.6**2
        theta = theta + A * s2 / below * nu
        s2 = s2 * 0.6**2 / below
        assert rule.theta(state) == pytest.approx(theta)
        assert rule.belief(state).deviation == pytest.approx(np.sqrt(s2))


def test_late_results_say_the_same_in_any_order():
    """Against one regression over all results, each about the centre it was played at."""
    rule = filter_of(Bspsa)
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
        state = told(rule, *order)
        assert state.mean == pytest.approx(wanted)
        assert state.covariance == pytest.approx(np.linalg.inv(precision))


def test_the_covariance_stays_symmetric_to_the_bit_and_positive():
    covariance = walked(filter_of(Bspsa), tallies(seed=6, count=200)).covariance
    assert covariance.tobytes() == covariance.T.copy().tobytes()
    assert np.linalg.eigvalsh(covariance).min() > 0


def test_tau_is_learned_from_the_games_unless_it_is_told():
    """As many decisive pairs as 50 of variance 0.8 and these together make it."""
    rule = Bspsas(problem=problem(), sigma=7.0, distance=1.0)
    asked = rule.ask(rule.start(), 1, generator())
    state = told(rule, outcome(asked, (50, 0, 50, 0, 50)))
    noise = rule.seen(state, outcome(asked, (0, 0, 0, 1, 0)))[1]
    assert noise == pytest.approx([(40 + 400) / (50 + 150)])
    assert filter_of().seen(filter_of().start(), outcome(asked, (0, 0, 3, 1, 0)))[
        1
    ] == pytest.approx(4 * 0.36)


def test_sigma_follows_from_the_elo_that_a_step_loses_unless_it_is_told():
    """A pair's expected w by the model of the rule and by the loss agree near equality."""
    h, x, y = 0.3, 0.02, 0.05  # plus and minus at y +- x, the optimum at 0
    elo = -h * (y + x) ** 2 + h * (y - x) ** 2
    w = 2 * np.tanh(elo / ELO_PER_SCORE)
    assert 2 * x / sigma_of(h) ** 2 * (0 - y) == pytest.approx(w, rel=1e-3)
    rules = [create("bspsas", given, problem()) for given in ({"sigma": 4}, {"elo_per_step": 2})]
    assert [rule.density for rule in rules] == [4**2, sigma_of(2) ** 2]


def test_with_the_truth_told_theta_comes_as_close_as_was_believed():
    """200 engines drawn from the prior: errors over believed deviations have variance 1."""
    rng, h, s = generator(11), 1.0, 0.8
    start = np.zeros((200, N))
    engine = Quadratic(optimum=rng.normal(0, s, start.shape), curvature=np.full(N, h))
    rule = filter_of(prior={"sigma": sigma_of(h), "distance": s}, start=start)
    played = SimulatedRun(problem=rule.problem, engine=engine, games=SimulatedGames(draw_rate=0.6))
    belief = rule.belief(final(played, rule, rng))
    assert belief.deviation is not None
    z = (engine.optimum - belief.mean) / belief.deviation
    assert np.mean(belief.deviation) < 0.5 * s
    assert 0.9 < np.mean(z**2) < 1.3
