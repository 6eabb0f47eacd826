"""Losses of many random problems at a time, with what is known of their optimum.

Besides quadratic losses there are those that no paper assumes: tilted, lopsided, saturating, whole.
All quantities are in steps. The first axis runs over replicas, here: over different problems.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from spsa.algorithms.rule import total
from spsa.core.params import Vector
from spsa.planning.simulated_run import Engine, Quadratic


@dataclass(frozen=True, slots=True, kw_only=True)
class Tilted:
    """Loses x' H x Elo at x from its `optimum`; `hessian` is H, Elo per squared step, (n, n)."""

    optimum: Vector
    hessian: Vector

    def elo(self, theta: Vector) -> Vector:
        away = theta - self.optimum
        pulled: Vector = np.matmul(self.hessian, away[..., None])[..., 0]
        return -total(away * pulled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asymmetric:
    """Loses `below` or `above` Elo a squared step, by the side of its `optimum`; shape (n,).

    Beyond `shelf` below and `ledge` above it the loss is constant.
    """

    optimum: Vector
    below: Vector
    above: Vector
    shelf: Vector
    ledge: Vector

    def elo(self, theta: Vector) -> Vector:
        away = np.clip(theta - self.optimum, -self.shelf, self.ledge)
        return -total(np.where(away < 0.0, self.below, self.above) * away**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturating:
    """An engine whose loss is about that of `engine` if small, but less than `most` Elo, (1,)."""

    engine: Engine
    most: Vector

    def elo(self, theta: Vector) -> Vector:
        elo: Vector = self.most * np.expm1(self.engine.elo(theta) / self.most)
        return elo


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An engine that rounds its parameters to whole steps."""

    engine: Engine

    def elo(self, theta: Vector) -> Vector:
        return self.engine.elo(np.rint(theta))


ROOM = 8.0  # bounds, in steps from the start


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomLosses:
    """Engines to be tuned, their start, and what an oracle knows of them.

    `start`, `lower`, `upper`, `unit` and `optimum` have shape (R, n), `hessian` (R, n, n): an
    engine x steps away from its optimum loses about x' H x Elo. `deviation`, (R, n), is the root
    mean square of the distribution of distances. `elo_to_gain`, shape (R, 1), is the scale for
    gains.
    """

    engine: Engine
    start: Vector
    lower: Vector
    upper: Vector
    unit: Vector
    optimum: Vector
    hessian: Vector
    deviation: Vector
    elo_to_gain: Vector


@dataclass(frozen=True, slots=True)
class DistanceToOptimum:
    """Distances from start to optimum, and the deviation of their distribution; shape (R, n)."""

    distance: Vector
    deviation: Vector


def usual(rng: np.random.Generator, problems: int, n: int) -> DistanceToOptimum:
    """Distances of 0.3 to 2.5 steps, with a different scale for every problem."""
    scale = np.exp(rng.uniform(np.log(0.6), np.log(5 / 3), (problems, 1)))
    signs = rng.choice([-1.0, 1.0], (problems, n))
    distance = scale * rng.uniform(0.5, 1.5, (problems, n)) * signs
    return DistanceToOptimum(
        distance, np.broadcast_to(scale * root_mean_square(0.5, 1.5), distance.shape)
    )


def root_mean_square(least: float, most: float) -> float:
    """The root mean square of a uniform distribution."""
    return sqrt((least**2 + least * most + most**2) / 3)


def _elo_to_gain(rng: np.random.Generator, problems: int) -> Vector:
    """1 to 60 Elo, log-uniform."""
    return np.exp(rng.uniform(0.0, np.log(60.0), (problems, 1)))


def quadratic(
    rng: np.random.Generator,
    shape: Vector,
    away: DistanceToOptimum | None = None,
    elo_to_gain: Vector | None = None,
) -> RandomLosses:
    """Independent parameters with curvatures proportional to `shape`."""
    base = tilted(rng, diagonal(shape), away, elo_to_gain)
    curvature = np.diagonal(base.hessian, axis1=-2, axis2=-1).copy()
    return replace(base, engine=Quadratic(optimum=base.optimum, curvature=curvature))


def tilted(
    rng: np.random.Generator,
    shape: Vector,
    away: DistanceToOptimum | None = None,
    elo_to_gain: Vector | None = None,
) -> RandomLosses:
    problems, n = shape.shape[:2]
    away = away or usual(rng, problems, n)
    worth = _elo_to_gain(rng, problems) if elo_to_gain is None else elo_to_gain
    start = np.rint(rng.uniform(-5.0, 5.0, shape.shape[:2]))
    optimum = start + away.distance
    hessian = shape * (-worth / Tilted(optimum=optimum, hessian=shape).elo(start))[..., None]
    return RandomLosses(
        engine=Tilted(optimum=optimum, hessian=hessian),
        start=start,
        lower=start - ROOM,
        upper=start + ROOM,
        unit=np.zeros_like(start),
        optimum=optimum,
        hessian=hessian,
        deviation=away.deviation,
        elo_to_gain=worth,
    )


def diagonal(curvature: Vector) -> Vector:
    hessian: Vector = curvature[..., None] * np.eye(curvature.shape[-1])
    return hessian


def turned(rng: np.random.Generator, curvature: Vector) -> Vector:
    """A Hessian with these eigenvalues along random orthogonal axes."""
    n = curvature.shape[-1]
    axes, _ = np.linalg.qr(rng.standard_normal((*curvature.shape[:-1], n, n)))
    turned: Vector = np.matmul(axes * curvature[..., None, :], np.swapaxes(axes, -2, -1))
    return turned
