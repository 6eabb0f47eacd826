"""BSPSAS: a Bayesian filter that keeps the parameters independent.

Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization". The strength
of an engine at x is a normal density about the best values, with deviation sigma_i. Then a pair
played between y + c_k delta and y - c_k delta has, to first order and with the optimum at theta,

    w = sum A_i (theta_i - y_i) + noise of variance tau^2,   A_i = 2 delta_i c_k / sigma_i^2   (6)

and B pairs are one observation with B A_i and B tau^2. Before any game the theta_i are independent
N(start_i, s_1^2). Here

    theta_i += A_i s_i^2 nu / (B A_i^2 s_i^2 + tau^2)             (9)
    s_i^2    = s_i^2 tau^2 / (B A_i^2 s_i^2 + tau^2)              (10)

The paper counts from the origin; here counts are from y, the point between plus and minus. With one
iteration open y is the mean, and the innovation

    nu = W - B sum A_i (mean_i - y_i)

is W. With late results, or if bounds and rounding have moved y away from the mean, the innovation
is still right.

The printed (9) has another sum, over the theta_j of the other parameters, which is left out here.
Of the two sums over j that should cancel under (8), the printed derivation halves one. The rest
depends on the origin of theta, and vanishes if the model is linearised about theta_k, like (3).
With it, a shift of all values would change a run, and for the worse.

`bspsa` keeps the correlations; this costs less for many parameters and loses little.
"""

from dataclasses import dataclass, replace
from math import log
from typing import Annotated, TypeVar

import numpy as np

from spsa.algorithms.rule import (
    Belief,
    Outcome,
    Perturbation,
    Rule,
    State,
    Vector,
    perturbed,
    tau2,
    total,
)
from spsa.algorithms.settings import SMALL, Gamma, LastWidth, Setting, decayed
from spsa.algorithms.state import Carry

Scalar = TypeVar("Scalar", float, Vector)


def sigma_of(elo_per_step: Scalar) -> Scalar:
    """sigma in steps, where one step from the best value loses h Elo: sigma^2 = 200 / (h ln 10).

    With it the expected w of the model and of a quadratic loss agree near equality.
    """
    sigma: Scalar = (200 / (elo_per_step * log(10))) ** 0.5
    return sigma


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Posterior:
    """The state: theta is N(mean, covariance); mean (n,), the moments of w (1,) each.

    The covariance is (n, n), symmetric to the bit; where parameters are independent, it is s_i^2
    alone, (n,).
    """

    mean: Vector
    covariance: Vector
    squares: Vector
    pairs: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Bspsas(Rule):
    """The prior is numbers, or arrays per parameter and replica."""

    name = "bspsas"
    elo_per_step: Annotated[
        float, Setting("Elo that a parameter loses one step away from its best value", least=SMALL)
    ] = 0.2
    sigma: Annotated[
        Vector | float | None,
        Setting(
            "sigma_i, deviation of the strength's density, in steps",
            least=SMALL,
            instead_of=("elo_per_step",),
        ),
    ] = None
    distance: Annotated[
        Vector | float,
        Setting("s_1, how far the best value is expected from the start, in steps", least=SMALL),
    ] = 1.0
    tau: Annotated[
        Vector | float | None,
        Setting(
            "deviation of the result of a pair, 0.6 in the paper; learned unless given",
            least=0.01,
            most=2.0,
        ),
    ] = None
    c_end: LastWidth = 1.0
    gamma: Gamma = 0.101

    @property
    def density(self) -> Vector | float:
        """sigma_i^2."""
        sigma = sigma_of(self.elo_per_step) if self.sigma is None else self.sigma
        return sigma**2

    def start(self) -> Posterior:
        start = self.problem.start
        none = np.zeros((*start.shape[:-1], 1))
        return Posterior(mean=start, covariance=self.untold(), squares=none, pairs=none)

    def untold(self) -> Vector:
        """The covariance before any game."""
        return np.broadcast_to(np.square(self.distance), self.problem.start.shape)

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.mean)

    def belief(self, state: State) -> Belief:
        theta = self.theta(state)
        moved = theta - self.problem.start
        apart = 2.0 * (state.mean - self.problem.start) - moved
        gained = total(moved * apart / self.density) * (200 / log(10))
        return Belief(theta, np.sqrt(self.variance(state)), gained)

    def variance(self, state: State) -> Vector:
        """s_i^2, shape (n,)."""
        variance: Vector = state.covariance
        return variance

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        c_k = decayed(self.c_end, self.gamma, self.problem.iterations, k)  # (17)
        return perturbed(self.theta(state), rng, 1.0, c_k)

    def tell(self, state: State, outcome: Outcome) -> Posterior:
        mean, covariance = self.learned(state, *self.seen(state, outcome))
        return Posterior(
            mean=mean,
            covariance=covariance,
            squares=state.squares + outcome.squares,
            pairs=state.pairs + outcome.pairs,
        )

    def seen(self, state: State, outcome: Outcome) -> tuple[Vector, Vector, Vector]:
        """The result as an observation: B A of shape (n,), B tau^2 and nu of shape (1,).

        Without games it has no information.
        """
        pairs, tau = outcome.pairs, self.tau
        variance = tau2(state.squares, state.pairs) if tau is None else tau**2
        slope = outcome.difference * (pairs / self.density)  # (6)
        innovation = outcome.result - total(slope * (state.mean - outcome.centre))
        return slope, np.maximum(pairs, 1.0) * variance, innovation

    def learned(
        self, state: State, slope: Vector, noise: Vector, innovation: Vector
    ) -> tuple[Vector, Vector]:
        """Mean and covariance after one more result."""
        reach = slope * state.covariance
        certain = slope * reach + noise
        mean = state.mean + reach / certain * innovation  # (9)
        return mean, state.covariance * (noise / certain)  # (10)

    def carried(self, state: Posterior, carry: Carry) -> Posterior:
        known = carry.variances(state.covariance, self.untold())
        return replace(state, mean=carry.positions(state.mean), covariance=known)
