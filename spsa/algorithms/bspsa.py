"""BSPSA: a Bayesian filter with all correlations between the parameters.

Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization", (14) to (16),
here for B pairs at once; `spsa.algorithms.bayes` has A and the innovation nu, which is W with one
iteration open:

    S_{k+1}^-1   = S_k^-1 + B A A^T / tau^2                       (14)
    S_{k+1}^-1 b = A nu / tau^2                                   (15)
    theta_{k+1}  = theta_k + b                                    (16)

The covariance S itself is kept. (14) adds a matrix of rank one, so by Sherman and Morrison

    g   = S A / (B A^T S A + tau^2),   b = g nu,   S_{k+1} = S - B g (S A)^T

which needs n^2 operations, while solving (15) needs n^3. Matrix products of the linear algebra
library are avoided, because on another processor they sum in another order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.bayes import SETTINGS, Bayesian, Prior
from spsa.algorithms.carrying import Carry
from spsa.algorithms.rule import Outcome, Problem, RuleEntry, State, Vector, total
from spsa.algorithms.state_json import packed, restored, shapes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Joint:
    """The state: theta is N(mean, covariance), shapes (n,) and (n, n); the moments of w, (1,) each.

    The covariance is symmetric to the bit.
    """

    mean: Vector
    covariance: Vector
    squares: Vector
    pairs: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Bspsa(Bayesian):
    name: str = "bspsa"

    def start(self) -> Joint:
        start = self.problem.start
        variance = np.broadcast_to(np.square(self.prior.distance), start.shape)
        none = np.zeros((*start.shape[:-1], 1))
        return Joint(
            mean=start,
            covariance=variance[..., None] * np.eye(start.shape[-1]),
            squares=none,
            pairs=none,
        )

    def variance(self, state: State) -> Vector:
        return np.diagonal(state.covariance, axis1=-2, axis2=-1)

    def posterior(self, state: State, outcome: Outcome) -> Joint:
        seen = self.seen(state, outcome)
        reach = _product(state.covariance, seen.slope)
        root = np.sqrt(total(seen.slope * reach) + seen.noise)
        reach = reach / root
        return Joint(
            mean=state.mean + reach * (seen.innovation / root),  # (15), (16)
            covariance=_less(state.covariance, reach),  # (14)
            squares=state.squares + outcome.squares,
            pairs=state.pairs + outcome.pairs,
        )

    def carried(self, state: State, carry: Carry) -> Joint:
        prior = np.diagonal(self.start().covariance)
        return Joint(
            mean=carry.positions(state.mean),
            covariance=carry.covariance(state.covariance, prior),
            squares=state.squares,
            pairs=state.pairs,
        )

    def dump(self, state: State) -> dict[str, Any]:
        plain = {name: getattr(state, name).tolist() for name in ("mean", "squares", "pairs")}
        return {**plain, "covariance": packed(state.covariance)}

    def load(self, data: Mapping[str, Any]) -> Joint:
        return Joint(**restored(self.name, data, shapes(self.start())))


def _product(symmetric: Vector, vector: Vector) -> Vector:
    """S A, row by row: rows of a symmetric matrix are its columns, and add up in memory's order."""
    product: Vector = np.add.reduce(symmetric * vector[..., None], axis=-2)
    return product


def _less(symmetric: Vector, vector: Vector) -> Vector:
    """S - v v^T, with one temporary array instead of two."""
    square = vector[..., None] * vector[..., None, :]
    return np.subtract(symmetric, square, out=square)


def _build(problem: Problem, given: Mapping[str, Any]) -> Bspsa:
    return Bspsa(problem=problem, prior=Prior.given(given))


ENTRY = RuleEntry(
    name="bspsa",
    summary="Bayesian filter with given curvature and distance, with correlations",
    settings=SETTINGS,
    build=_build,
)
