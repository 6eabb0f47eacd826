"""BSPSA: a Bayesian filter with all correlations between the parameters.

Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization", (14) to (16),
here for B pairs at once; `spsa.algorithms.bspsas` has the model, A and the innovation nu, which is
W with one iteration open:

    S_{k+1}^-1   = S_k^-1 + B A A^T / tau^2                       (14)
    S_{k+1}^-1 b = A nu / tau^2                                   (15)
    theta_{k+1}  = theta_k + b                                    (16)

The covariance S itself is kept. (14) adds a matrix of rank one, so by Sherman and Morrison

    g   = S A / (B A^T S A + tau^2),   b = g nu,   S_{k+1} = S - B g (S A)^T

which needs n^2 operations, while solving (15) needs n^3. Matrix products of the linear algebra
library are avoided, because on another processor they sum in another order.
"""

from dataclasses import dataclass, replace

import numpy as np

from spsa.algorithms.bspsas import Bspsas, Posterior
from spsa.algorithms.rule import State, Vector, total
from spsa.algorithms.state import Carry


@dataclass(frozen=True, slots=True, kw_only=True)
class Bspsa(Bspsas):
    name = "bspsa"

    def untold(self) -> Vector:
        start = self.problem.start
        variance = np.broadcast_to(np.square(self.distance), start.shape)
        return variance[..., None] * np.eye(start.shape[-1])

    def variance(self, state: State) -> Vector:
        variance: Vector = np.einsum("...ii->...i", state.covariance)
        return variance

    def learned(
        self, state: State, slope: Vector, noise: Vector, innovation: Vector
    ) -> tuple[Vector, Vector]:
        # S A, row by row: rows of a symmetric matrix are its columns, and add in memory's order.
        reach: Vector = np.add.reduce(state.covariance * slope[..., None], axis=-2)
        root = np.sqrt(total(slope * reach) + noise)
        reach = reach / root
        mean = state.mean + reach * (innovation / root)  # (15), (16)
        return mean, state.covariance - reach[..., None] * reach[..., None, :]  # (14)

    def carried(self, state: Posterior, carry: Carry) -> Posterior:
        known = carry.covariance(state.covariance, np.diagonal(self.untold()))
        return replace(state, mean=carry.positions(state.mean), covariance=known)
