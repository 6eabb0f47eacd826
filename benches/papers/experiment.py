"""A designed constant-gain run, played many times over, beside what the theory says of it.

Parameters are measured in widths of their range, with the best value in the middle.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from benches.papers.constant import ConstantGains
from benches.papers.constant_gains import (
    FORGOTTEN,
    GainDesign,
    Goal,
    Landscape,
    at_once,
    cautious,
    direct,
    in_turn,
    noise_of_game,
)
from benches.papers.process import ConstantGainProcess
from benches.papers.squares import SumOfSquares
from spsa.algorithms import create
from spsa.algorithms.rule import Problem
from spsa.core.params import Vector
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

_PARTS = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of the games, when theta is looked at
_NEAR = 0.005  # a probability by which the density at a quantile is found
_FAR = 1e6  # widths; the theory knows of no bounds


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Experiment:
    """What is played: the true `loss` (Elo per squared width) and `c` (widths), shape (n,) each.

    `moment`, E(c_i^2), is that of all parameters at once or, if `in_turn`, of one a game. `start`
    counts from the best values. By rule, pairs are played by the rule `constant`, an iteration at
    a time; otherwise single games by the quick simulator, which knows of no `bias` of openings.
    """

    design: GainDesign
    goal: Goal
    loss: Vector
    c: Vector
    moment: Vector
    start: Vector
    draw_rate: float
    bias: float
    in_turn: bool
    by_rule: bool

    @property
    def process(self) -> ConstantGainProcess:
        """The design, on the true loss."""
        noise = noise_of_game(self.draw_rate, self.bias)
        return ConstantGainProcess(loss=self.loss, moment=self.moment, r=self.design.r, noise=noise)

    @property
    def times(self) -> list[int]:
        """The numbers of games after which theta is looked at; whole pairs."""
        return sorted({max(2 * round(part * self.design.games / 2), 2) for part in _PARTS})

    def losses(self, games: int) -> SumOfSquares:
        """The Elo lost after so many games, by theory."""
        return self.process.losses(self.start, games)

    def played(self, replicas: int, seed: int) -> Vector:
        """Theta at each of the times, shape (times, replicas, n)."""
        rng = np.random.Generator(np.random.SFC64(seed))
        theta, before, seen = np.tile(self.start, (replicas, 1)), 0, []
        for games in self.times:
            theta = self._on(theta, games - before, rng)
            before = games
            seen.append(theta)
        return np.stack(seen)

    def _on(self, theta: Vector, games: int, rng: np.random.Generator) -> Vector:
        if self.by_rule:
            return self._by_rule(theta, games // 2, rng)
        gains = ConstantGains(loss=self.loss, c=self.c, r=self.design.r, draw_rate=self.draw_rate)
        return (gains.in_turn if self.in_turn else gains.at_once)(theta, games, rng)

    def _by_rule(self, theta: Vector, pairs: int, rng: np.random.Generator) -> Vector:
        """In steps of c, by the rule that tunes engines."""
        n = len(self.c)
        problem = Problem(
            start=theta / self.c,
            lower=np.full(n, -_FAR),
            upper=np.full(n, _FAR),
            unit=np.zeros(n),
            iterations=pairs,
            pairs=1,
        )
        perturbation = "fdsa" if self.in_turn else "spsa"
        settings = {"r": self.design.r, "c": 1.0, "perturbation": perturbation}
        rule = create("constant", settings, problem)
        engine = Quadratic(optimum=np.zeros(n), curvature=self.loss * self.c**2)
        simulated_run = SimulatedRun(
            problem=problem, engine=engine, games=SimulatedGames(self.draw_rate, self.bias)
        )
        return rule.theta(final(simulated_run, rule, rng)) * self.c


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is guessed and what is true; the defaults are those of his program.

    Of Elo lost at the ends of ranges, the last number is that of all further parameters.
    """

    parameters: int = 4
    precision: float = 0.5
    confidence: float = 0.95
    draw_rate: float = 0.61
    bias: float = 0.0
    c_ratio: float = 1 / 6
    lambda_ratio: float = FORGOTTEN
    true_elo: Sequence[float] = (2.0,)
    guessed_elo: Sequence[float] | None = None
    start_elo: float = 2.0
    direct: bool = False
    in_turn: bool = False
    by_rule: bool = False

    def experiment(self) -> Experiment:
        """Raises ValueError for a start within the precision, or openings that leave no noise."""
        loss = self._loss(self.true_elo)
        return Experiment(
            design=self._design,
            goal=self._goal,
            loss=loss,
            c=self._c,
            moment=self._moment,
            start=np.full(self.parameters, sqrt(self.start_elo / float(loss.sum()))),
            draw_rate=self.draw_rate,
            bias=self.bias,
            in_turn=self.in_turn,
            by_rule=self.by_rule,
        )

    @property
    def _goal(self) -> Goal:
        return Goal(precision=self.precision, confidence=self.confidence)

    @property
    def _design(self) -> GainDesign:
        landscape = Landscape(
            loss=self._loss(self.guessed_elo or self.true_elo),
            moment=self._moment,
            noise=noise_of_game(self.draw_rate, self.bias),
        )
        if self.direct:
            return direct(self._goal, landscape, self.start_elo)
        return cautious(self._goal, landscape, self.lambda_ratio)

    @property
    def _c(self) -> Vector:
        return np.full(self.parameters, self.c_ratio)

    @property
    def _moment(self) -> Vector:
        return in_turn(self._c) if self.in_turn else at_once(self._c)

    def _loss(self, elo: Sequence[float]) -> Vector:
        each = [*elo, *[elo[-1]] * self.parameters][: self.parameters]
        return 4 * np.array(each)  # lost at half of the range


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A quantity after so many games: by formula, and by simulation with one standard error."""

    games: int
    quantity: str
    formula: float
    simulated: float
    error: float

    @property
    def z(self) -> float:
        """The difference in standard errors."""
        return (self.simulated - self.formula) / self.error


def checks(experiment: Experiment, theta: Vector) -> Iterator[Check]:
    """Formula beside simulation; `theta` as `played` gives it."""
    for games, replicas in zip(experiment.times, theta, strict=True):
        for quantity, formula, simulated, error in (
            *_place(experiment, games, replicas[:, 0]),
            *_strength(experiment, games, replicas**2 @ experiment.loss),
        ):
            yield Check(
                games=games, quantity=quantity, formula=formula, simulated=simulated, error=error
            )


Line = tuple[str, float, float, float]


def _place(experiment: Experiment, games: int, first: Vector) -> Sequence[Line]:
    """Mean and deviation of the first parameter, in widths."""
    process, root = experiment.process, sqrt(len(first))
    spread = sqrt(float(process.variance(games)[0]))
    mean = float(process.mean(experiment.start, games)[0])
    return (
        ("mean of theta_1", mean, float(first.mean()), spread / root),
        ("deviation of theta_1", spread, float(first.std(ddof=1)), spread / (root * sqrt(2))),
    )


def _strength(experiment: Experiment, games: int, lost: Vector) -> Iterator[Line]:
    """Mean and quantiles of the Elo lost, and how often the wanted precision is met."""
    expected, goal = experiment.losses(games), experiment.goal
    root = sqrt(len(lost))
    yield "Elo lost, mean", expected.mean, float(lost.mean()), expected.deviation / root
    for p in dict.fromkeys((0.5, goal.confidence)):
        near = min(_NEAR, p / 2, (1 - p) / 2)
        width = expected.quantile(p + near) - expected.quantile(p - near)
        error = sqrt(p * (1 - p)) / root * width / (2 * near)
        yield f"Elo lost, {p:.0%}", expected.quantile(p), float(np.quantile(lost, p)), error
    p = expected.cdf(goal.precision)
    within = float((lost <= goal.precision).mean())
    error = max(sqrt(p * (1 - p)), 1 / root) / root
    yield f"within {goal.precision:g} Elo", p, within, error
