"""Reduces any quadratic loss and any perturbation to independent parameters by a change of axes.

Sections 2.1 and 2.2 of van den Bergh's paper. With M = E(c c^t) = L L^t and the loss
theta^t H theta / 2, H = -Hess(e), the eigenvectors Q of L^t H L, with eigenvalues mu_j, give

    theta = L Q y,   loss = sum mu_j y_j^2 / 2,   E of the perturbations in y = 1

mu_j are the eigenvalues of M H as well, and (2.3) is the time constant of the smallest of them.
"""

from dataclasses import dataclass

import numpy as np

from spsa.algorithms import Vector
from spsa.lab.theory.process import Process


@dataclass(frozen=True, slots=True, eq=False)
class Modes:
    """A process in axes y = `into` @ theta, in which its parameters are independent.

    `into` and `back`, of shape (n, n), are inverse to each other.
    """

    process: Process
    into: Vector
    back: Vector

    def mean(self, start: Vector, games: float) -> Vector:
        """The expectation of theta after `games`, shape (n,)."""
        mean: Vector = self.back @ self.process.mean(self.into @ start, games)
        return mean

    def covariance(self, games: float) -> Vector:
        """The covariance of theta after `games`, shape (n, n)."""
        covariance: Vector = (self.back * self.process.variance(games)) @ self.back.T
        return covariance

    @property
    def slowest(self) -> float:
        """(2.3): the time constant, in games, that bounds all others."""
        return float(self.process.time_constants.max())


def modes(hessian: Vector, moment: Vector, r: float, noise: float) -> Modes:
    """The process with the Hessian of the loss (positive definite, Elo) and E(c c^t), (n, n) each.

    Raises numpy's LinAlgError if `moment` is not positive definite.
    """
    lower = np.linalg.cholesky(moment)
    eigenvalues, vectors = np.linalg.eigh(lower.T @ hessian @ lower)
    process = Process(loss=eigenvalues / 2, moment=np.ones_like(eigenvalues), r=r, noise=noise)
    return Modes(process, vectors.T @ np.linalg.inv(lower), lower @ vectors)
