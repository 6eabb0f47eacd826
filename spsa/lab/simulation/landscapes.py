"""Losses that no paper assumes: tilted, lopsided, saturating, whole. Shapes as in `engine`."""

from dataclasses import dataclass

import numpy as np

from spsa.algorithms.rule import Vector, total
from spsa.lab.simulation.engine import Engine


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
class Lopsided:
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
