"""Simultaneous perturbation stochastic approximation (Spall 1998, "An overview of the simultaneous
perturbation method"), on Elo, in units of each parameter's step.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    g_i         = E / (plus_i - minus_i)            Elo per step
    theta_i    += a_k g_i,              a_k = a / (k + A)^alpha,   c_k = c / k^gamma
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.method import Method
from spsa.algorithms.rule import Move, Outcome, Perturbation, Problem, State, Vector
from spsa.algorithms.settings import Setting
from spsa.scoring import ELO_PER_SCORE, Tally, elo, null_error

_SETTINGS = (
    Setting(name="a", meaning="gain of the first move, steps squared per Elo", default=None),
    Setting(name="c", meaning="perturbation at k = 1, in steps", default=1.0, open=True),
    Setting(name="A", meaning="iterations by which the decay of a_k is delayed", default=None),
    Setting(name="alpha", meaning="decay of a_k", default=0.602, most=1.0),
    Setting(name="gamma", meaning="decay of c_k", default=0.101, most=0.5),
    Setting(
        name="elo_bound",
        meaning="standard errors beyond which a result is cut off",
        default=4.0,
        open=True,
    ),
)

_DELAY = 0.1  # A as a part of the planned iterations: Spall's 10%
_RANDOM_WALK = 0.3  # steps that pure noise should have moved a parameter by the end
_TAU = 0.9  # deviation of a pair's result, for planning before any is known


@dataclass(frozen=True, slots=True)
class Position:
    """The state: theta is all that is remembered."""

    theta: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spsa:
    problem: Problem
    a: float
    c: float
    A: float
    alpha: float
    gamma: float
    elo_bound: float
    name: str = "spsa"

    def start(self) -> Position:
        return self._at(self.problem.start)

    def theta(self, state: State) -> Vector:
        return np.array(state.theta, dtype=np.float64)

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        c_k = self.c / k**self.gamma
        delta = 2.0 * rng.integers(0, 2, size=len(state.theta)) - 1.0
        return Perturbation(centre=self.theta(state), offset=c_k * delta, a_k=self._a(k), c_k=c_k)

    def tell(self, state: State, outcome: Outcome) -> tuple[Position, Move]:
        found, bounded = bounded_elo(outcome.tally, self.elo_bound)
        gradient = found * inverse(outcome.difference, 2 * outcome.c_k)
        after = self._at(self.theta(state) + outcome.a_k * gradient)
        return after, Move(theta=self.theta(after), gradient=gradient, elo=found, bounded=bounded)

    def dump(self, state: State) -> dict[str, Any]:
        return {"theta": list(state.theta)}

    def load(self, data: Mapping[str, Any]) -> Position:
        return Position(tuple(data["theta"]))

    def _a(self, k: int) -> float:
        return float(self.a / (k + self.A) ** self.alpha)

    def _at(self, theta: Vector) -> Position:
        inside = np.clip(theta, self.problem.lower, self.problem.upper)
        return Position(tuple(inside.tolist()))


def bounded_elo(tally: Tally, bound: float) -> tuple[float, bool]:
    """Elo kept within `bound` standard errors of 0, and whether that changed it.

    The error is that of equal players: it does not shrink for the one-sided tallies which have to
    be bounded.
    """
    found = elo(tally).value
    if not tally.pairs:
        return found, False
    limit = bound * null_error(tally)
    return float(np.clip(found, -limit, limit)), abs(found) > limit


def inverse(difference: Vector, wanted: float) -> Vector:
    """1 / difference, but never larger than 1 / wanted and 0 where there is no difference.

    A difference that bounds or constraints have shortened would otherwise magnify the noise.
    """
    return difference / np.maximum(difference**2, wanted**2)


def derived_gain(problem: Problem, c: float, A: float, alpha: float) -> float:
    """The `a` with which the noise alone moves a parameter by `_RANDOM_WALK` steps in the run."""
    noise = ELO_PER_SCORE * _TAU / (2 * problem.pairs**0.5) / (2 * c)
    k = np.arange(1, problem.iterations + 1, dtype=np.float64)
    return float(_RANDOM_WALK / (noise * np.sqrt(np.sum((k + A) ** (-2 * alpha)))))


def _build(problem: Problem, given: Mapping[str, float | None]) -> Spsa:
    chosen = {name: value for name, value in given.items() if value is not None}
    c, alpha = chosen["c"], chosen["alpha"]
    A = chosen.get("A", _DELAY * problem.iterations)
    return Spsa(
        problem=problem,
        a=chosen.get("a", derived_gain(problem, c, A, alpha)),
        c=c,
        A=A,
        alpha=alpha,
        gamma=chosen["gamma"],
        elo_bound=chosen["elo_bound"],
    )


METHOD = Method(
    name="spsa",
    summary="Spall's SPSA on Elo, with `a` derived from the budget unless given",
    settings=_SETTINGS,
    build=_build,
)
