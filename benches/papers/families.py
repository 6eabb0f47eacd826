"""Families of random tuning problems, on which rules are compared.

All quantities are in steps. The Elo to gain of a problem is the loss at its start. Every parameter
starts 0.3 to 2.5 steps from its optimum, unless its family says otherwise. The first axis is that
of replicas, which are different problems here.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from benches.papers.random_losses import (
    ROOM,
    Asymmetric,
    DistanceToOptimum,
    RandomLosses,
    Saturating,
    Whole,
    diagonal,
    quadratic,
    root_mean_square,
    tilted,
    turned,
    usual,
)
from spsa.algorithms.rule import total
from spsa.core.params import Vector
from spsa.planning.simulated_run import Quadratic

Family = Callable[[np.random.Generator, int, int], RandomLosses]
"""Draws problems: generator, number of problems, number of parameters."""


def iso(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """All parameters are equally important."""
    return quadratic(rng, np.ones((problems, n)))


def heterogeneous(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Curvatures log-normal with deviation 1: 95% within a factor of 7 of the median."""
    return quadratic(rng, np.exp(rng.standard_normal((problems, n))))


def heavy(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Curvatures with a tail like 1/h, up to 1000 times the least: few parameters matter much."""
    return quadratic(rng, 1 / rng.uniform(0.001, 1.0, (problems, n)))


def rotated(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """The axes of the loss are not the parameters; curvatures along them differ by up to 100."""
    return tilted(rng, turned(rng, 10 ** rng.uniform(0, 2, (problems, n))))


def canyon(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """As `rotated`, with curvatures that differ by up to 10,000."""
    return tilted(rng, turned(rng, 10 ** rng.uniform(0, 4, (problems, n))))


def coupled(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Pairs of parameters that compensate each other, with a correlation of 0.7 to 0.95."""
    hessian = np.zeros((problems, n, n))
    each = np.arange(n)
    hessian[:, each, each] = np.exp(rng.standard_normal((problems, n)) / 2)
    one, other = each[0 : n - 1 : 2], each[1:n:2]
    scale = np.sqrt(hessian[:, one, one] * hessian[:, other, other])
    size = (problems, len(one))
    coupling = scale * rng.uniform(0.7, 0.95, size) * rng.choice([-1.0, 1.0], size)
    hessian[:, one, other] = hessian[:, other, one] = coupling
    return tilted(rng, hessian)


def misjudged(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Steps wrong by up to 4 times either way, and a quarter to a half of them without effect."""
    factor = np.exp(rng.uniform(-np.log(4), np.log(4), (problems, n)))
    dead = rng.random((problems, n)) < rng.uniform(0.25, 0.5, (problems, 1))
    dead[:, 0] = False
    true = usual(rng, problems, n)
    distance = np.clip(true.distance / factor, -0.9 * ROOM, 0.9 * ROOM)
    away = DistanceToOptimum(distance, true.deviation / factor)
    return quadratic(rng, np.where(dead, 0.0, factor**2), away)


def lopsided(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """One side up to 4 times steeper; the other does no more harm from 1.5 to 4 steps on."""
    shape = (problems, n)
    gentle = np.exp(rng.standard_normal(shape) / 2)
    steep = gentle * rng.uniform(1.0, 4.0, shape)
    flat, left = rng.uniform(1.5, 4.0, shape), rng.random(shape) < 0.5
    base = quadratic(rng, (gentle + steep) / 2)

    def landscape(scale: Vector | float) -> Asymmetric:
        return Asymmetric(
            optimum=base.optimum,
            below=scale * np.where(left, gentle, steep),
            above=scale * np.where(left, steep, gentle),
            shelf=np.where(left, flat, np.inf),
            ledge=np.where(left, np.inf, flat),
        )

    scale = -base.elo_to_gain / landscape(1.0).elo(base.start)
    hessian = scale[..., None] * diagonal((gentle + steep) / 2)
    return replace(base, engine=landscape(scale), hessian=hessian)


def saturating(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Loses ever less for every step more, and never above 1.1 to 3 times what the start loses."""
    base = quadratic(rng, np.exp(rng.standard_normal((problems, n)) / 2))
    most = base.elo_to_gain * rng.uniform(1.1, 3.0, base.elo_to_gain.shape)
    deeper = -most * np.log1p(-base.elo_to_gain / most) / base.elo_to_gain
    hessian = deeper[..., None] * base.hessian
    inner = Quadratic(optimum=base.optimum, curvature=np.diagonal(hessian, axis1=-2, axis2=-1))
    return replace(base, engine=Saturating(engine=inner, most=most), hessian=hessian)


def integer(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Whole numbers a step apart, optimum included; starts 1 to 3 of them away."""
    real = usual(rng, problems, n)
    wanted = np.rint(real.distance)
    away = DistanceToOptimum(np.where(wanted == 0.0, 1.0, wanted), real.deviation)
    base = quadratic(rng, np.exp(rng.standard_normal((problems, n)) / 2), away)
    return replace(base, engine=Whole(engine=base.engine), unit=np.ones_like(base.unit))


def cornered(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Bounds up to half a step beyond start and optimum, or, half the time, exactly there."""
    base = quadratic(rng, np.exp(rng.standard_normal((problems, n)) / 2))
    shape = base.start.shape
    beyond = np.maximum(rng.uniform(-0.5, 0.5, (2, *shape)), 0.0)
    lower = np.minimum(base.start, base.optimum) - beyond[0]
    upper = np.maximum(base.start, base.optimum) + beyond[1]
    closed = rng.random(shape) < 0.5  # one bound is near, the other one is not
    return replace(
        base, lower=np.where(closed, lower, base.lower), upper=np.where(closed, base.upper, upper)
    )


def settled(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """Starts at the optimum; `elo_to_gain` is the loss at the usual distance."""
    base = quadratic(rng, np.exp(rng.standard_normal((problems, n)) / 2))
    return replace(base, start=base.optimum, lower=base.optimum - ROOM, upper=base.optimum + ROOM)


def steep(rng: np.random.Generator, problems: int, n: int) -> RandomLosses:
    """20 to 80 Elo to gain by every single parameter, 2 to 5 steps away."""
    shape = (problems, n)
    distance = rng.uniform(2.0, 5.0, shape) * rng.choice([-1.0, 1.0], shape)
    away = DistanceToOptimum(distance, np.full(shape, root_mean_square(2.0, 5.0)))
    worth = rng.uniform(20.0, 80.0, shape)
    return quadratic(rng, worth / distance**2, away, total(worth))


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        family.__name__: family
        for family in (
            iso,
            heterogeneous,
            heavy,
            rotated,
            canyon,
            coupled,
            misjudged,
            lopsided,
            saturating,
            integer,
            cornered,
            settled,
            steep,
        )
    }
)
