"""Simulates single pairs on an isotropic quadratic loss in blocks of iterations, for speed.

The rules of Table 1 of Ivec & Vojnovic 2022 move theta by g_k W_k, and g_k depends on the
perturbations only, not on results. A result depends on theta only through the Elo between the two
sides,

    x_k = -4 h c_k sum_i delta_i theta_i

where h is the Elo lost per squared step. So the perturbations and gains of a block of iterations
are matrix products. Only one number per run is computed iteration by iteration: x_k + sum_{j < k}
K_kj W_j, which decides two games.

The rules of `spsa.algorithms` do the same one iteration at a time, and a test compares both. They
work with any engine, any bounds and any order of results; this module is for long tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spsa.core.params import Vector
from spsa.core.scoring import ELO_PER_SCORE

_LENGTH = 8  # iterations; longer blocks have matrices whose products cost more than they save


class Gains(Protocol):
    """The gains of a rule: what it adds to theta for each half point."""

    def block(self, offset: Vector) -> Vector:
        """g_k of the next iterations, shape (R, m, n), for their perturbations, (R, m, n)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """g_k = scale_k c_k delta: `scale` per iteration, shape (N,)."""

    scale: Iterator[float]

    def block(self, offset: Vector) -> Vector:
        scale = np.array([next(self.scale) for _ in range(offset.shape[1])])
        gains: Vector = offset * scale[:, None]
        return gains


@dataclass(slots=True, eq=False)
class Correlated:
    """BSPSA, (14) to (16) of the paper: a Kalman filter with a covariance, shape (R, n, n).

    With A_k = 2 c_k delta / sigma^2 of m iterations as rows, and L L^t = A S A^t + tau^2 their
    Cholesky factor, U = L^-1 A S gives the gains U_k / L_kk one after the other, and S - U^t U
    after all of them.
    """

    covariance: Vector
    sigma: float
    tau: float

    def block(self, offset: Vector) -> Vector:
        slope = 2 * offset / self.sigma**2
        reach = slope @ self.covariance
        seen = reach @ slope.swapaxes(-2, -1) + self.tau**2 * np.eye(offset.shape[1])
        factor = np.linalg.cholesky(seen)
        reach = np.linalg.solve(factor, reach)
        self.covariance -= reach.swapaxes(-2, -1) @ reach
        gains: Vector = reach / np.diagonal(factor, axis1=-2, axis2=-1)[..., None]
        return gains


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some iterations: perturbations (R, m, n), gains (R, m, n), results (R, m)."""

    offset: Vector
    gains: Vector
    results: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class IsotropicQuadratic:
    """A problem that loses `curvature` Elo per squared step; games have a fixed draw rate."""

    curvature: float
    draw_rate: float

    def play(
        self, theta: Vector, c: Vector, gains: Gains, rng: np.random.Generator
    ) -> Iterator[tuple[Vector, Block]]:
        """Theta, shape (R, n), after every block of the iterations with c_k, shape (N,)."""
        for k in range(0, len(c), _LENGTH):
            offset = _signs(rng, (len(theta), len(c[k : k + _LENGTH]), theta.shape[1]))
            offset *= c[k : k + _LENGTH, None]
            block = self._played(theta, offset, gains.block(offset), rng)
            theta = theta + (block.results[:, None] @ block.gains)[:, 0]
            yield theta, block

    def _played(
        self, theta: Vector, offset: Vector, gains: Vector, rng: np.random.Generator
    ) -> Block:
        slope = offset * (-4 * self.curvature / ELO_PER_SCORE)
        better = np.ascontiguousarray((slope @ theta[..., None])[..., 0].T)  # x / C
        effect = np.ascontiguousarray((gains @ slope.swapaxes(-2, -1)).transpose(1, 2, 0))
        bars = self._bars(rng.random((len(better), 2, len(theta))))
        results = np.empty_like(better)
        for k, bar in enumerate(bars):
            np.subtract(np.add.reduce(np.tanh(better[k]) > bar, axis=0), 2.0, out=results[k])
            better[k + 1 :] += effect[k, k + 1 :] * results[k]
        return Block(offset, gains, np.ascontiguousarray(results.T))

    def _bars(self, luck: Vector) -> Vector:
        """The mean results, tanh(x / C), from which games with this random number are won or drawn.

        Shape (m, 4, R) from (m, 2, R): a pair scores one half point for each bar below its mean.
        The model is that of `SimulatedGames`.
        """
        even = 2 * luck - 1
        won, drawn = even + self.draw_rate, even - self.draw_rate
        return np.concatenate([np.minimum(won, luck), np.maximum(drawn, luck - 1)], axis=1)


def _signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Vector:
    count = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), np.uint8), count=count)
    return 2.0 * bits.reshape(shape).astype(np.float64) - 1.0
