"""Synthetic games follow their law, and races play what can be played, when it can be asked."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from outcomes import problem

from spsa.algorithms.rule import Outcome, Perturbation
from spsa.core.params import Grid, Vector, straddle
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

DRAWS = 20_000


def of_game(score, draw_rate):
    """Loss, draw, win: the law of the paper's simulator, written down once more."""
    drawn = min(draw_rate, 2 * score, 2 * (1 - score))
    return np.array([1 - score - drawn / 2, drawn, score - drawn / 2])


def score_of(elo):
    return float(1 / (1 + 10 ** (-elo / 400)))


def surprise(counts, chances):
    """Pearson's chi-square of counts over what was expected, in its standard deviations."""
    expected = chances * counts.sum()
    seen = expected > 5
    assert counts[~seen].sum() < 30
    statistic = float(((counts - expected)[seen] ** 2 / expected[seen]).sum())
    freedom = max(int(seen.sum()) - 1, 1)
    return (statistic - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize("pairs", [1, 3])
@pytest.mark.parametrize("elo", [30.0, -120.0, 600.0])
@pytest.mark.parametrize(("draw_rate", "bias"), [(0.82, 0.0), (0.6, 0.15), (0.3, 0.6)])
def test_pairs_follow_the_law_of_two_independent_games(pairs, elo, draw_rate, bias):
    rng = np.random.default_rng(3)
    games = SimulatedGames(draw_rate, bias)
    played = games.play(np.full((DRAWS, 1), elo), pairs, rng)
    assert (played.sum(axis=-1) == pairs).all()
    sides = [np.clip(score_of(elo) + b, 0.0, 1.0) for b in (bias, -bias)]
    chances = np.convolve(*(of_game(float(score), draw_rate) for score in sides))
    assert surprise(played.sum(axis=0), chances) < 5


def test_replicas_may_have_draw_rates_of_their_own():
    rates = np.array([[0.0], [1.0]])
    played = SimulatedGames(rates).play(np.zeros((2, 1)), 1, np.random.default_rng(1))
    assert played[1].tolist() == [0, 0, 1, 0, 0]
    assert played[0, [1, 3]].sum() == 0


def test_a_quadratic_engine_can_be_asked_for_many_points_at_once():
    engine = Quadratic(optimum=np.array([1.0, 0.0]), curvature=np.array([2.0, 3.0]))
    points = np.array([[1.0, 0.0], [0.0, 2.0], [2.0, -1.0]])
    assert engine.elo(points).tolist() == [[0.0], [-14.0], [-5.0]]
    assert engine.elo(np.stack([points, points]))[1].tolist() == engine.elo(points).tolist()


@dataclass
class Fixed:
    """A rule that always asks for the same, and remembers when it was asked and what it was told.

    Its state is the number of results it was told.
    """

    centre: Vector
    offset: Vector
    asked: list[tuple[int, int]] = field(default_factory=list)
    told: list[Outcome] = field(default_factory=list)

    def start(self):
        return 0

    def theta(self, state):
        return self.centre

    def ask(self, state, k, rng):
        self.asked.append((k, state))
        return Perturbation(centre=self.centre, offset=self.offset, a_k=float(k), c_k=2.0)

    def tell(self, state, outcome):
        self.told.append(outcome)
        return state + 1


@dataclass
class Noted:
    """An engine that notes what was played with it."""

    points: list[Vector] = field(default_factory=list)

    def elo(self, theta):
        self.points.append(theta)
        return np.zeros((*theta.shape[:-1], 1))


def simulated_run(start, engine=None, *, in_flight=1, **over):
    return SimulatedRun(
        problem=replace(problem(start, reach=5.0, iterations=1, pairs=1), **over),
        engine=engine or Noted(),
        games=SimulatedGames(0.5),
        in_flight=in_flight,
    )


@pytest.mark.parametrize("in_flight", [1, 3, 9])
def test_iterations_are_asked_for_when_the_results_before_so_many_before_are_in(in_flight):
    rule = Fixed(np.zeros(2), np.ones(2))
    run = simulated_run(np.zeros(2), iterations=6, in_flight=in_flight)
    assert final(run, rule, np.random.default_rng(1)) == 6
    assert rule.asked == [(k, max(0, k - in_flight)) for k in range(1, 7)]
    assert [(outcome.k, outcome.a_k) for outcome in rule.told] == [(k, k) for k in range(1, 7)]
    assert {outcome.c_k for outcome in rule.told} == {2.0}


points = st.lists(st.floats(-6, 6, allow_subnormal=False), min_size=3, max_size=3).map(np.array)


@given(points, points.filter(lambda offset: bool(np.all(offset))))
def test_what_is_played_and_told_straddles_what_was_asked_within_the_bounds(centre, offset):
    engine, rule = Noted(), Fixed(centre, offset)
    final(simulated_run(np.zeros(3), engine), rule, np.random.default_rng(1))
    plus, minus = engine.points[0]
    bounds = np.full(3, 5.0)
    wanted = straddle(Grid(-bounds, bounds, np.zeros(3)), centre, offset)
    np.testing.assert_array_equal([plus, minus], wanted)
    np.testing.assert_array_equal(rule.told[0].difference, plus - minus)
    np.testing.assert_array_equal(rule.told[0].centre, (plus + minus) / 2)


def test_whole_numbers_are_played_whole_and_right_on_average():
    centre = np.tile([0.3, -1.6, 4.9], (4000, 1))
    engine, rule = Noted(), Fixed(centre, np.full(3, 0.75))
    final(simulated_run(centre, engine, unit=np.ones(3)), rule, np.random.default_rng(2))
    plus, minus = engine.points[0]
    assert (plus == np.rint(plus)).all() and (minus == np.rint(minus)).all()
    assert (np.abs(engine.points[0]) <= 5).all()
    difference = rule.told[0].difference
    assert set(np.unique(difference)) == {1.0, 2.0}
    assert difference[:, :2].mean() == pytest.approx(1.5, abs=0.03)
    assert rule.told[0].centre.mean(axis=0)[:2] == pytest.approx(centre[0, :2], abs=0.05)


def test_batches_are_of_the_planned_size_and_say_who_is_better():
    start = np.array([[1.0], [-1.0]])
    engine = Quadratic(optimum=np.zeros(1), curvature=np.array([25.0]))
    rule = Fixed(start, np.ones((2, 1)))
    final(simulated_run(start, engine, pairs=5000), rule, np.random.default_rng(4))
    outcome = rule.told[0]
    assert outcome.pairs.tolist() == [[5000], [5000]]
    expected = 2 * (2 * score_of(-100) - 1)  # of w; plus is 2 steps off where minus is best
    assert outcome.result[:, 0] / 5000 == pytest.approx([expected, -expected], abs=0.05)
