"""SPSA: simultaneous perturbation stochastic approximation on Elo, in units of each one's step.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    g_i         = E / (plus_i - minus_i)            Elo per step
    theta_i    += a_k g_i,              a_k = a / (k + A)^alpha,   c_k = c / k^gamma

Spall 1998, "Implementation of the Simultaneous Perturbation Algorithm for Stochastic Optimization".

The gains follow from the budget unless they are given. c makes the last planned perturbation one
step, as Fishtest's c_end does. a is what lets the noise of the planned games, by itself, carry
theta 2.5 steps in all (Euclidean length: 0.8 steps a parameter for 10 of them). That fixes what
noise may cost, and leaves more for the signal the more games there are; over quadratic losses the
best such length hardly depends on the parameters (4 to 64), the iterations (20 to 3000) or the
games in each. Part of the Elo at stake that is recovered, by tests/test_algorithms_recovery.py,
where the cases are described:

                                  demo       focused      moderate comprehensive         hasty
    default                       0.93          0.93          0.91          0.78          0.48
    noise_walk = 1.25             0.86          0.93          0.88          0.63          0.36
    noise_walk = 5                0.82          0.86          0.87          0.85          0.42
    c = 1                         0.90          0.86          0.81          0.54          0.35
    r_end = 0.002                 0.39          0.92          0.91          0.83          0.28
    a = 1, c = 1, A = 50         -2.38         -0.27         -0.90         -2.51         -4.17

The moves of a short run are large: when more than 1/30 of all iterations are in flight at a time,
results that are out of date carry theta past a steep optimum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import Any

import numpy as np

from spsa.algorithms.evidence import bounded_elo
from spsa.algorithms.memory import Position
from spsa.algorithms.method import Method
from spsa.algorithms.perturbing import signs
from spsa.algorithms.rule import Move, Outcome, Perturbation, Problem, State, Vector
from spsa.algorithms.settings import Setting
from spsa.scoring import ELO_PER_SCORE

_SETTINGS = (
    Setting(name="a", meaning="scale of a_k, in steps squared per Elo", default=None, open=True),
    Setting(
        name="noise_walk",
        meaning="steps that noise alone may carry theta in the whole run; derives a",
        default=2.5,
        open=True,
        instead_of="a",
    ),
    Setting(
        name="c",
        meaning="perturbation of the first iteration, in steps",
        default=None,
        open=True,
    ),
    Setting(name="A", meaning="iterations by which the decay of a_k is delayed", default=None),
    Setting(name="alpha", meaning="exponent of the decay of a_k", default=0.602, most=1.0),
    Setting(name="gamma", meaning="exponent of the decay of c_k", default=0.101, most=0.5),
    Setting(
        name="elo_bound",
        meaning="standard errors of Elo beyond which a result is cut off",
        default=4.0,
        open=True,
    ),
)

_DELAY = 0.1  # A as a part of the planned iterations (Spall 1998, III.B.4)
_TAU = 0.9  # deviation of a pair's result, 2 (1 - d) = 0.81 at d = 0.6, as long as none was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains:
    """The two sequences. a_k is in steps squared per Elo, c_k in steps; k counts from 1."""

    a: float
    c: float
    A: float
    alpha: float
    gamma: float

    def a_k(self, k: int) -> float:
        return float(self.a / (k + self.A) ** self.alpha)

    def c_k(self, k: int) -> float:
        return float(self.c / k**self.gamma)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spsa:
    problem: Problem
    gains: Gains
    elo_bound: float
    name: str = "spsa"

    def start(self) -> Position:
        return self._at(self.problem.start)

    def theta(self, state: State) -> Vector:
        return np.array(state.theta, dtype=np.float64)

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        c_k = self.gains.c_k(k)
        return Perturbation(
            centre=self.theta(state),
            offset=c_k * signs(rng, state.theta.shape),
            a_k=self.gains.a_k(k),
            c_k=c_k,
        )

    def tell(self, state: State, outcome: Outcome) -> tuple[Position, Move]:
        found, bounded = bounded_elo(outcome, self.elo_bound)
        gradient = found * inverse(outcome.difference, 2 * outcome.c_k)
        after = self._at(state.theta + outcome.a_k * gradient)
        return after, Move(theta=after.theta, gradient=gradient, elo=found, bounded=bounded)

    def belief(self, state: State) -> None:
        return None

    def dump(self, state: State) -> dict[str, Any]:
        return Position.dump(state)

    def load(self, data: Mapping[str, Any]) -> Position:
        return Position.load(data)

    def _at(self, theta: Vector) -> Position:
        return Position(np.clip(theta, self.problem.lower, self.problem.upper))


def inverse(difference: Vector, wanted: float) -> Vector:
    """1 / difference, but never larger than 1 / wanted and 0 where there is no difference.

    A difference that bounds or constraints have shortened would otherwise magnify the noise.
    """
    return difference / np.maximum(difference**2, wanted**2)


def noise_walk(gains: Gains, problem: Problem) -> float:
    """How far the noise of the planned games alone carries theta, in steps (Euclidean length).

    The moves are independent, so their squares add up over iterations and parameters.
    """
    noise = ELO_PER_SCORE * _TAU / (2 * sqrt(problem.pairs))
    moves = (gains.a_k(k) * noise / (2 * gains.c_k(k)) for k in range(1, problem.iterations + 1))
    return sqrt(problem.start.shape[-1] * fsum(move * move for move in moves))


def _build(problem: Problem, given: Mapping[str, float | None]) -> Spsa:
    chosen = {name: value for name, value in given.items() if value is not None}
    return Spsa(problem=problem, gains=_gains(problem, chosen), elo_bound=chosen["elo_bound"])


def _gains(problem: Problem, chosen: Mapping[str, float]) -> Gains:
    gains = Gains(
        a=chosen.get("a", 1.0),
        c=chosen.get("c", problem.iterations ** chosen["gamma"]),
        A=chosen.get("A", _DELAY * problem.iterations),
        alpha=chosen["alpha"],
        gamma=chosen["gamma"],
    )
    if "a" in chosen:
        return gains
    return replace(gains, a=chosen["noise_walk"] / noise_walk(gains, problem))


METHOD = Method(
    name="spsa",
    summary="Spall's SPSA on Elo, its gains derived from the budget unless given",
    settings=_SETTINGS,
    build=_build,
)
