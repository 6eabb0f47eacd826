"""The rules in comparisons: those of the registry, oracles, and rivals.

A rule of the registry runs with its defaults and knows what a user would configure: values, bounds,
steps and the plan. A rule `...-told` also knows the true curvatures and distances; `...-measured`
knows what a user could measure before, the mean curvature and distance of each problem.

Rules whose perturbation decays to a planned end get that end, `c_end` in steps. A wider
perturbation makes every result say more, whatever the rule, so rules are compared at the same
width.
"""

from collections.abc import Callable, Mapping
from functools import partial
from math import log
from types import MappingProxyType

import numpy as np

from spsa.algorithms import Rule, Vector, algorithms, create, method
from spsa.algorithms.bayes import Prior, sigma_of
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas
from spsa.lab.simulation.race import Tuner
from spsa.lab.simulation.rivals import Adam, Averaged, DoG, Kalman, ScheduleFree
from spsa.lab.simulation.suite import Field

DEFAULT = "mixture"
_GAMMA = 0.101
SEED = MappingProxyType({"a": 1.0, "c": 0.5, "A": 50.0})  # the gains of the first version

Entrant = Callable[[Field, float], Tuner]
"""Creates a rule for the problems of a field, with c_end."""


def own_width(field: Field) -> float:
    """The last planned perturbation of the default rule, in steps."""
    rule, last = create(DEFAULT, {}, field.problem), field.problem.iterations
    return rule.ask(rule.start(), last, np.random.default_rng(0)).c_k


def _registered(name: str, field: Field, c_end: float) -> Rule:
    return create(name, _widened(name, field, c_end), field.problem)


def _widened(name: str, field: Field, c_end: float) -> dict[str, float]:
    """The settings with which a rule's perturbation ends at `c_end`; none if it has no such one."""
    if any(setting.name == "c_end" for setting in method(name).settings):
        return {"c_end": c_end}
    if name == "spsa":  # c of the first iteration
        return {"c": c_end * field.problem.iterations**_GAMMA}
    return {}


def _seed(field: Field, _c_end: float) -> Rule:
    return create("spsa", SEED, field.problem)


def _told(rule: type[Bspsa] | type[Bspsas], field: Field, c_end: float) -> Rule:
    """A rule that knows the true curvature and the expected distance of every parameter."""
    curvature = np.diagonal(field.terrain.hessian, axis1=-2, axis2=-1)
    return rule(problem=field.problem, prior=_prior(field, _sigma(curvature), c_end))


def _measured(field: Field, c_end: float) -> Rule:
    """A rule that knows the mean curvature and the mean distance of a problem."""
    curvature = np.diagonal(field.terrain.hessian, axis1=-2, axis2=-1)
    distance = np.sqrt(np.square(field.terrain.deviation).mean(axis=-1, keepdims=True))
    sigma = _sigma(curvature.mean(axis=-1, keepdims=True))
    return Bspsa(problem=field.problem, prior=Prior(sigma=sigma, distance=distance, c_end=c_end))


def _ceiling(field: Field, c_end: float) -> Rule:
    prior = _prior(field, sigma_of(1.0), c_end)
    return Kalman(problem=field.problem, prior=prior, hessian=field.terrain.hessian)


def _averaged(name: str, field: Field, c_end: float) -> Tuner:
    return Averaged(_registered(name, field, c_end), field.problem)


def _prior(field: Field, sigma: Vector | float, c_end: float) -> Prior:
    return Prior(sigma=sigma, distance=field.terrain.deviation, c_end=c_end)


def _sigma(curvature: Vector) -> Vector:
    """As `sigma_of`; infinite where a parameter has no effect."""
    with np.errstate(divide="ignore"):
        return np.sqrt(200 / (curvature * log(10)))


def _rival(rival: Callable[..., Tuner], field: Field, c_end: float) -> Tuner:
    return rival(problem=field.problem, c_end=c_end)


ENTRANTS: Mapping[str, Entrant] = MappingProxyType(
    {
        **{name: partial(_registered, name) for name in algorithms()},
        "bspsa-measured": _measured,
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
