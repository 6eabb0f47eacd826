"""What the mixture computes, against its formulas and against what follows from them."""

from math import log

import numpy as np
import pytest
from outcomes import generator, problem, tallies, walked

from spsa.algorithms import Outcome, Problem, Rule, Vector, create
from spsa.algorithms.rule import State

ELO = [10 ** (-1 + q / 4) for q in range(15)]  # H of every hypothesis
EVEN, GOOD = (1.0, 0.0, 4.0, 0.0, 0.0), (0.0, 0.0, 4.0, 0.0, 1.0)  # w^2 is 0.8 a pair in both


def rule(chosen: Problem) -> Rule:
    return create("mixture", {}, chosen)


def played(centre: Vector, difference: Vector, pentanomial: tuple[float, ...]) -> Outcome:
    return Outcome(
        k=1,
        centre=centre,
        difference=difference,
        pentanomial=np.array(pentanomial),
        a_k=1.0,
        c_k=1.0,
    )


def told(of: Rule, *outcomes: Outcome) -> State:
    state = of.start()
    for one in outcomes:
        state, _ = of.tell(state, one)
    return state


def test_one_update_by_hand() -> None:
    start, x = np.array([1.0, -2.0]), np.array([0.5, -1.5])
    of = rule(problem(start, reach=9.0))
    before, y = of.start(), start + 0.1
    after = told(of, played(y, 2 * x, (1, 2, 3, 5, 4)))
    W, B, squares, tau2 = 9.0, 15.0, 27.0, (40 + 0.0) / 50
    assert len(before.mean) == len(ELO)
    for j, elo in enumerate(ELO):
        A = [2 * x_i * elo / 2 * log(10) / 200 for x_i in x]
        nu = W - B * sum(A_i * (mu - y_i) for A_i, mu, y_i in zip(A, start, y, strict=True))
        S = B * tau2 + B**2 * sum(A_i**2 for A_i in A)
        assert after.mean[j] == pytest.approx(
            [mu + B * A_i * nu / S for mu, A_i in zip(start, A, strict=True)]
        )
        assert after.variance[j] == pytest.approx([1 - (B * A_i) ** 2 / S for A_i in A])
        found = float(after.log_weight[j, 0] - before.log_weight[j, 0])
        assert found == pytest.approx(-(nu**2) / (2 * B * tau2))
    assert (after.squares.tolist(), after.pairs.tolist()) == ([squares], [B])


def test_theta_and_belief_by_hand() -> None:
    of = rule(problem(np.array([0.0, 1.0])))
    state = told(of, played(np.array([0.2, 1.0]), np.array([2.0, -1.0]), (0, 2, 9, 6, 3)))
    likely = [np.exp(float(x)) for x in state.log_weight[:, 0] - state.log_weight.max()]
    weight = [x / sum(likely) for x in likely]
    mean = sum(w * mu for w, mu in zip(weight, state.mean, strict=True))
    moments = zip(weight, state.mean, state.variance, strict=True)
    square = sum(w * (v + mu**2) for w, mu, v in moments) - mean**2
    belief = of.belief(state)
    assert of.theta(state) == pytest.approx(mean)
    assert belief is not None
    assert belief.deviation == pytest.approx(np.sqrt(square))


def test_before_any_game_the_optimum_is_about_a_step_away() -> None:
    of = rule(problem())
    belief = of.belief(of.start())
    assert belief is not None
    assert belief.deviation == pytest.approx(1.0)


def test_one_parameter_learns_the_same_in_whatever_order_results_come() -> None:
    """A late result says exactly what it says: this is the filter's answer to all data at once."""
    of = rule(problem(np.array([0.5])))
    centres, differences = np.linspace(-1, 2, 6), (2.0, -3.0, 2.5, 1.0, -2.0, 4.0)
    outcomes = [
        played(np.array([y]), np.array([x]), EVEN if i % 3 == 0 else GOOD)
        for i, (y, x) in enumerate(zip(centres, differences, strict=True))
    ]
    one, other = told(of, *outcomes), told(of, *outcomes[::-1])
    assert one.mean == pytest.approx(other.mean, rel=1e-12)
    assert one.variance == pytest.approx(other.variance, rel=1e-12)


def test_each_filter_is_the_least_squares_fit_that_its_hypothesis_asks_for() -> None:
    start, rng = np.array([0.5, -1.0]), np.random.default_rng(2)
    of = rule(problem(start))
    x = rng.choice([-1.0, 1.0], (4, 2)) * np.array([[1.0, 0.0], [0.0, 1.0]] * 2)
    y = rng.normal(size=(4, 2))
    state = told(of, *(played(y[i], 2 * x[i], (EVEN, GOOD)[i % 2]) for i in range(4)))
    W, B, noise = np.array([-2.0, 2.0] * 2), 5.0, 5.0 * 0.8
    for mean, elo in zip(state.mean, ELO, strict=True):
        A = B * 2 * x * elo / 2 * log(10) / 200
        precision = np.eye(2) + A.T @ A / noise
        target = start + A.T @ (W + (A * y).sum(axis=1)) / noise
        assert mean == pytest.approx(np.linalg.solve(precision, target))


def test_the_offset_depends_on_the_pairs_so_far_and_on_nothing_else_of_the_plan() -> None:
    def c(k: int, pairs: int, iterations: int = 100) -> float:
        of = rule(problem(pairs=pairs, iterations=iterations))
        return of.ask(of.start(), k, generator()).c_k

    assert c(7, 50) == c(7, 50, iterations=10_000)
    assert c(501, 2) == pytest.approx(c(11, 96), rel=0.001)  # 1001 and 1008 pairs
    assert c(500_001, 2) == pytest.approx(1.0, rel=1e-6)
    assert c(1, 50) > c(2, 50) > c(100_000, 50)


def test_a_run_that_is_extended_is_the_long_run() -> None:
    results = tallies(seed=4, count=40)
    planned = [rule(problem(iterations=n)) for n in (10, 40)]
    short, long = (walked(of, results) for of in planned)
    assert planned[0].dump(short) == planned[1].dump(long)


def test_hypotheses_are_about_the_elo_of_all_parameters_together() -> None:
    """Twins that always move together are one parameter: the same Elo, weights and moments."""
    x = np.array([1.5])
    one = told(rule(problem(np.array([0.0]))), played(np.array([0.1]), x, GOOD))
    pair = told(rule(problem(np.zeros(2))), played(np.full(2, 0.1), np.full(2, 1.5), GOOD))
    assert pair.log_weight == pytest.approx(one.log_weight)


def test_steep_losses_soon_outweigh_flat_ones() -> None:
    """An engine that loses 80 Elo one step away is not taken for one that loses 0.1."""
    of, optimum, curvature = rule(problem(np.zeros(1), pairs=200)), 2.0, 80.0
    state = of.start()
    for k in range(1, 30):
        asked = of.ask(state, k, generator(k))
        better = 4 * curvature * float(asked.offset[0] * (optimum - asked.centre[0]))
        won = round(200 * (1 + np.tanh(better / 347.4)) / 2)
        state, _ = of.tell(state, played(asked.centre, 2 * asked.offset, (200 - won, 0, 0, 0, won)))
    likely = ELO[int(np.argmax(state.log_weight))]
    assert likely > 10
    assert of.theta(state) == pytest.approx([optimum], abs=0.05)


def test_a_thousand_parameters_are_saved_in_little_space() -> None:
    of = rule(problem(np.zeros(1000)))
    dumped = of.dump(of.start())
    assert sum(len(str(value)) for value in dumped.values()) < 400_000
