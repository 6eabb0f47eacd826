"""Table 1 of Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization".

1, 4, 16 and 64 parameters start at a distance of 100 from their best value, 0, where they lose 2
Elo in all, and are tuned for 200,000 iterations of one pair. Games have a fixed draw rate of 82%,
which corresponds to tau = 0.6. R and sigma are those that the paper chose, not those of its (18),
which gives an R that is 5 standard errors off for one parameter. All is in steps of c_N = 220.

Two rows are not in the paper: BSPSA with the true values of the problem, and `mixture` with only
value, bounds and step.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import log, sqrt
from types import MappingProxyType
from typing import Self

import numpy as np

from benches.papers.blocks import Correlated, Gains, IsotropicQuadratic, Scaled
from spsa.algorithms import create
from spsa.algorithms.rule import Problem, Rule
from spsa.core.params import Vector
from spsa.core.scoring import ELO_PER_SCORE
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun, final

PARAMETERS = (1, 4, 16, 64)
ITERATIONS = 200_000
ELO_TO_GAIN = 2.0  # Elo

_STEP = 220.0  # c_N
_START = 100.0 / _STEP
_BOUND = 1000.0 / _STEP
_GAMMA, _ALPHA, _DELAY = 0.101, 0.602, 0.1
_DRAW_RATE, _TAU = 0.82, 0.6


class Row(StrEnum):
    """The rules of the table. `TOLD` is BSPSA with the true sigma and s_1."""

    SPSA = "spsa"
    BSPSAS = "bspsas"
    BSPSA = "bspsa"
    TOLD = "bspsa-told"
    MIXTURE = "mixture"


@dataclass(frozen=True, slots=True)
class Gain:
    """Elo gained, as printed: the mean and the standard deviation of 50 runs."""

    mean: float
    deviation: float

    @property
    def error(self) -> float:
        return self.deviation / sqrt(50)


_R = MappingProxyType({1: 8e-5, 4: 22e-5, 16: 59e-5, 64: 90e-5})
_SIGMA = MappingProxyType({1: 700.0, 4: 1400.0, 16: 2800.0, 64: 5600.0})
PUBLISHED: Mapping[tuple[Row, int], Gain] = MappingProxyType(
    {
        (Row.SPSA, 1): Gain(1.99944, 0.00071),
        (Row.SPSA, 4): Gain(1.9929, 0.0044),
        (Row.SPSA, 16): Gain(1.9048, 0.0331),
        (Row.SPSA, 64): Gain(1.2616, 0.1159),
        (Row.BSPSAS, 1): Gain(1.99970, 0.00042),
        (Row.BSPSAS, 4): Gain(1.9951, 0.0035),
        (Row.BSPSAS, 16): Gain(1.9333, 0.0256),
        (Row.BSPSAS, 64): Gain(1.2525, 0.1093),
        (Row.BSPSA, 1): Gain(1.99968, 0.00044),
        (Row.BSPSA, 4): Gain(1.9953, 0.0033),
        (Row.BSPSA, 16): Gain(1.9303, 0.0243),
        (Row.BSPSA, 64): Gain(1.2683, 0.1054),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table1Cell:
    """A cell of the table, and the length of its runs; the paper's have 200,000 iterations."""

    row: Row
    n: int
    iterations: int = ITERATIONS

    @property
    def published(self) -> Gain | None:
        return PUBLISHED.get((self.row, self.n)) if self.iterations == ITERATIONS else None

    @property
    def curvature(self) -> float:
        """The Elo lost by one parameter at a distance of one step."""
        return ELO_TO_GAIN / (self.n * _START**2)

    def losses(self, runs: int, rng: np.random.Generator) -> Vector:
        """The final losses of `runs`, in Elo, shape (runs,).

        The paper's rules are simulated in blocks, which is equivalent and several times faster.
        """
        if self.row is Row.MIXTURE:
            return self.losses_by_rule(runs, rng)
        bowl = IsotropicQuadratic(curvature=self.curvature, draw_rate=_DRAW_RATE)
        start = theta = np.full((runs, self.n), _START)
        for theta, block in bowl.play(start, self.c, self.gains(runs), rng):
            if np.abs(theta).max() + np.abs(block.offset).max() > _BOUND:
                raise ValueError("a run has reached its bounds, which blocks do not support")
        return self._lost(theta)

    def losses_by_rule(self, runs: int, rng: np.random.Generator) -> Vector:
        """Like `losses`, by the rule itself, one iteration at a time."""
        problem = self.problem(runs)
        engine = Quadratic(optimum=np.zeros(self.n), curvature=np.full(self.n, self.curvature))
        rule = self.rule(problem)
        simulated_run = SimulatedRun(
            problem=problem, engine=engine, games=SimulatedGames(_DRAW_RATE)
        )
        return self._lost(rule.theta(final(simulated_run, rule, rng)))

    def problem(self, runs: int) -> Problem:
        """What all rules know: value, bounds and step; no unit, one pair per iteration."""
        return Problem(
            start=np.full((runs, self.n), _START),
            lower=np.full(self.n, -_BOUND),
            upper=np.full(self.n, _BOUND),
            unit=np.zeros(self.n),
            iterations=self.iterations,
            pairs=1,
        )

    def rule(self, problem: Problem) -> Rule:
        """The rule with the settings of the paper, or with the true ones."""
        prior = {"sigma": self.sigma, "distance": _START, "tau": _TAU}
        name, settings = {
            Row.SPSA: ("fishtest", {"r_end": _R[self.n]}),
            Row.BSPSAS: ("bspsas", prior),
            Row.BSPSA: ("bspsa", prior),
            Row.TOLD: ("bspsa", prior),
            Row.MIXTURE: ("mixture", {}),
        }[self.row]
        return create(name, settings, problem)

    def gains(self, runs: int) -> Gains:
        """The same rule for `blocks`."""
        if self.row is Row.SPSA:
            return Scaled(iter(self._r_k))
        if self.row is Row.BSPSAS:
            return Scaled(self._independent())
        covariance = np.tile(_START**2 * np.eye(self.n), (runs, 1, 1))
        return Correlated(covariance, self.sigma, _TAU)

    @property
    def sigma(self) -> float:
        """The sigma of BSPSA's prior, in steps; for `TOLD` the true one."""
        return self.true_sigma if self.row is Row.TOLD else _SIGMA[self.n] / _STEP

    @property
    def true_sigma(self) -> float:
        """The sigma with which (6) gives the Elo loss of the problem."""
        return sqrt(200 / (self.curvature * log(10)))

    @property
    def c(self) -> Vector:
        """c_k of all iterations, shape (N,)."""
        return (self.iterations / self._k) ** _GAMMA

    @property
    def limit(self) -> float:
        """The least possible mean loss, with all results weighted optimally.

        It is that of the paper's perturbations; `mixture` chooses its own, which say more if they
        are wider.
        """
        evidence = 4 * np.sum(self.c**2) / (self.true_sigma**4 * _TAU**2)
        return self.n * self.curvature / (1 / _START**2 + float(evidence))

    @property
    def expected(self) -> float | None:
        """The exact mean loss, as far as w is linear in theta; None if it is unknown.

        Each iteration adds scale_k c_k delta W, so the mean square of theta follows a recursion. It
        ignores BSPSA's correlations, which hardly change the loss.
        """
        if self.row is Row.MIXTURE:
            return None
        scale = self._r_k if self.row is Row.SPSA else np.fromiter(self._independent(), np.float64)
        pull = 8 * self.curvature * self.c / ELO_PER_SCORE
        step = scale * self.c
        kept = 1 - 2 * step * pull + self.n * (step * pull) ** 2
        noise = self.n * (step * _TAU) ** 2
        square = self.n * _START**2
        for factor, added in zip(kept.tolist(), noise.tolist(), strict=True):
            square = square * factor + added
        return self.curvature * square

    @property
    def _k(self) -> Vector:
        return np.arange(1.0, self.iterations + 1)

    @property
    def _r_k(self) -> Vector:
        """R_k = a_k / c_k^2, which ends at the paper's R."""
        delay = _DELAY * self.iterations
        a_k: Vector = ((delay + self.iterations) / (delay + self._k)) ** _ALPHA
        return _R[self.n] * a_k / self.c**2

    def _independent(self) -> Iterator[float]:
        """(9) and (10) with equal s_i: the factor of c_k delta W."""
        variance, noise = _START**2, (_TAU * self.sigma**2) ** 2
        for c_k in self.c.tolist():
            certain = 4 * c_k**2 * variance + noise
            yield 2 * variance * self.sigma**2 / certain
            variance *= noise / certain

    def _lost(self, theta: Vector) -> Vector:
        lost: Vector = self.curvature * np.square(theta).sum(axis=-1)
        return lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The final loss in Elo: mean and standard deviation over `runs` >= 2."""

    cell: Table1Cell
    runs: int
    mean: float
    deviation: float

    @classmethod
    def of(cls, cell: Table1Cell, parts: Iterable[Vector]) -> Self:
        losses = np.concatenate(list(parts))
        mean, deviation = float(losses.mean()), float(losses.std(ddof=1))
        return cls(cell=cell, runs=len(losses), mean=mean, deviation=deviation)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.deviation / sqrt(self.runs)

    @property
    def gain(self) -> float:
        """The mean Elo gained, of 2 to gain."""
        return ELO_TO_GAIN - self.mean

    @property
    def of_limit(self) -> float:
        """The mean loss, divided by the least possible one."""
        return self.mean / self.cell.limit

    @property
    def z_published(self) -> float | None:
        """The difference from the paper, in standard errors of both; None without a figure."""
        published = self.cell.published
        if published is None:
            return None
        return (self.gain - published.mean) / sqrt(self.error**2 + published.error**2)

    @property
    def z_expected(self) -> float | None:
        """The difference from the exact mean loss, in standard errors; None if that is unknown."""
        expected = self.cell.expected
        return None if expected is None else (self.mean - expected) / self.error
