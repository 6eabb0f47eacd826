"""The common part of BSPSA and BSPSAS: the model of a result, and their settings.

Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization". The strength
of an engine at x is a normal density about the best values, with deviation sigma_i. Then a pair
played between y + c_k delta and y - c_k delta has, to first order and with the optimum at theta,

    w = sum A_i (theta_i - y_i) + noise of variance tau^2,   A_i = 2 delta_i c_k / sigma_i^2   (6)

and B pairs are one observation with B A_i and B tau^2. Before any game the theta_i are independent
N(start_i, s_1^2).

The paper counts from the origin; here counts are from y, the point between plus and minus. With one
iteration open y is the mean, and the innovation

    nu = W - B sum A_i (mean_i - y_i)

is W. With late results, or if bounds and rounding have moved y away from the mean, the innovation
is still right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any, Self, TypeVar

import numpy as np

from spsa.algorithms.gains import C_END, GAMMA, decayed
from spsa.algorithms.outcome_elo import reported, tau2
from spsa.algorithms.rule import (
    Belief,
    Outcome,
    Perturbation,
    Problem,
    RuleUpdate,
    State,
    Vector,
    signs,
    total,
)
from spsa.algorithms.settings import SMALL, Setting

Scalar = TypeVar("Scalar", float, Vector)

SETTINGS = (
    Setting(
        name="elo_per_step",
        meaning="Elo that a parameter loses one step away from its best value",
        default=0.2,
        least=SMALL,
    ),
    Setting(
        name="sigma",
        meaning="sigma_i, deviation of the strength's density, in steps",
        default=None,
        least=SMALL,
        instead_of=("elo_per_step",),
    ),
    Setting(
        name="distance",
        meaning="s_1, how far the best value is expected from the start, in steps",
        default=1.0,
        least=SMALL,
    ),
    Setting(
        name="tau",
        meaning="deviation of the result of a pair, 0.6 in the paper; learned unless given",
        default=None,
        least=0.01,
        most=2.0,
    ),
    C_END,
    GAMMA,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """The prior: numbers, or arrays per parameter and replica.

    `sigma` and `distance` (s_1) are in steps. A `tau` of None is estimated from the games.
    """

    sigma: Vector | float
    distance: Vector | float
    tau: Vector | float | None = None
    c_end: float = 1.0
    gamma: float = 0.101

    @classmethod
    def given(cls, given: Mapping[str, Any]) -> Self:
        """The prior of these settings."""
        return cls(
            sigma=given["sigma"] or sigma_of(given["elo_per_step"]),
            distance=given["distance"],
            tau=given["tau"],
            c_end=given["c_end"],
            gamma=given["gamma"],
        )


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One result as an observation: B A of shape (n,), B tau^2 and nu of shape (1,)."""

    slope: Vector
    noise: Vector
    innovation: Vector


def sigma_of(elo_per_step: Scalar) -> Scalar:
    """sigma in steps, where one step from the best value loses h Elo: sigma^2 = 200 / (h ln 10).

    With it the expected w of the model and of a quadratic loss agree near equality.
    """
    sigma: Scalar = (200 / (elo_per_step * log(10))) ** 0.5
    return sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Bayesian:
    """The part of `Rule` that does not depend on how deviations are stored."""

    problem: Problem
    prior: Prior
    name: str

    def theta(self, state: State) -> Vector:
        return self.problem.inside(state.mean)

    def belief(self, state: State) -> Belief:
        theta = self.theta(state)
        moved = theta - self.problem.start
        apart = 2.0 * (state.mean - self.problem.start) - moved
        gained = total(moved * apart / self.prior.sigma**2) * (200 / log(10))
        return Belief(theta, np.sqrt(self.variance(state)), gained)

    def variance(self, state: State) -> Vector:
        """s_i^2, shape (n,)."""
        raise NotImplementedError

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        prior, centre = self.prior, self.theta(state)
        c_k = decayed(prior.c_end, prior.gamma, self.problem.iterations, k)  # (17)
        return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=1.0, c_k=c_k)

    def tell(self, state: State, outcome: Outcome) -> tuple[State, RuleUpdate]:
        after = self.posterior(state, outcome)
        return after, reported(outcome)

    def posterior(self, state: State, outcome: Outcome) -> State:
        """The state after one more result."""
        raise NotImplementedError

    def seen(self, state: State, outcome: Outcome) -> Seen:
        """The result as an observation of theta; without games it has no information."""
        pairs, tau = outcome.pairs, self.prior.tau
        variance = tau2(state.squares, state.pairs) if tau is None else tau**2
        slope = outcome.difference * (pairs / self.prior.sigma**2)  # (6)
        return Seen(
            slope=slope,
            noise=np.maximum(pairs, 1.0) * variance,
            innovation=outcome.result - total(slope * (state.mean - outcome.centre)),
        )
