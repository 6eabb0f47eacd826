"""Who takes part in comparisons: every rule of the registry, oracles, and rivals.

A rule of the registry runs with its defaults, told what a person would tell it: values, bounds,
steps and the plan. A name that ends in `-told` gets the truth about each problem as well.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import log
from types import MappingProxyType

import numpy as np

from spsa.algorithms import Rule, Vector, algorithms, create
from spsa.algorithms.bayes import Prior, sigma_of
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas
from spsa.simulation.race import Tuner
from spsa.simulation.rivals import Adam, Averaged, DoG, Kalman, ScheduleFree
from spsa.simulation.suite import Field

DEFAULT = "mixture"
SEED = MappingProxyType({"a": 1.0, "c": 0.5, "A": 50.0})  # seed 002, taken at its word

Entrant = Callable[[Field], Tuner]


def _registered(name: str, field: Field) -> Rule:
    return create(name, {}, field.problem)


def _seed(field: Field) -> Rule:
    return create("spsa", SEED, field.problem)


def _told(rule: type[Bspsa] | type[Bspsas], field: Field) -> Rule:
    """The true curvature of every parameter, and how far it may be expected to be."""
    curvature = np.diagonal(field.terrain.hessian, axis1=-2, axis2=-1)
    return rule(problem=field.problem, prior=_prior(field, _sigma(curvature)))


def _ceiling(field: Field) -> Rule:
    prior = _prior(field, sigma_of(1.0))
    return Kalman(problem=field.problem, prior=prior, hessian=field.terrain.hessian)


def _averaged(name: str, field: Field) -> Tuner:
    return Averaged(_registered(name, field), field.problem)


def _prior(field: Field, sigma: Vector | float) -> Prior:
    return Prior(sigma=sigma, distance=field.terrain.deviation)


def _sigma(curvature: Vector) -> Vector:
    """As `sigma_of`; infinite where a parameter has no effect."""
    with np.errstate(divide="ignore"):
        return np.sqrt(200 / (curvature * log(10)))


def _rival(rival: Callable[..., Tuner], field: Field) -> Tuner:
    return rival(problem=field.problem)


ENTRANTS: Mapping[str, Entrant] = MappingProxyType(
    {
        **{name: partial(_registered, name) for name in algorithms()},
        "bspsa-told": partial(_told, Bspsa),
        "bspsas-told": partial(_told, Bspsas),
        "kalman-told": _ceiling,
        "adam": partial(_rival, Adam),
        "dog": partial(_rival, DoG),
        "schedule-free": partial(_rival, ScheduleFree),
        "spsa-averaged": partial(_averaged, "spsa"),
        "fishtest-averaged": partial(_averaged, "fishtest"),
        "seed-literally": _seed,
    }
)
