"""SPSA: simultaneous perturbation stochastic approximation on Elo, in steps.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    g_i         = E / (plus_i - minus_i)            Elo per step
    theta_i    += a_k g_i,              a_k = a / (k + A)^alpha,   c_k = c / k^gamma

Spall 1998, "Implementation of the Simultaneous Perturbation Algorithm for Stochastic Optimization".

The gains follow from the budget unless they are given. c makes the last planned perturbation one
step, like Fishtest's c_end. a is such that the noise of the planned games alone would move theta by
2.5 steps (Euclidean length: 0.8 steps per parameter for 10 of them). That fixes the cost of noise,
and more games leave more for the signal. Over quadratic losses the best length hardly depends on
the number of parameters (4 to 64), of iterations (20 to 3000) or of games in each. The recovered
part of the Elo to gain, by tests/algorithms/test_algorithms_recovery.py, which describes the cases:

                                  demo       focused      moderate comprehensive         hasty
    default                       0.93          0.93          0.91          0.78          0.48
    noise_walk = 1.25             0.86          0.93          0.88          0.63          0.36
    noise_walk = 5                0.82          0.86          0.87          0.85          0.42
    c = 1                         0.90          0.86          0.81          0.54          0.35
    r_end = 0.002                 0.39          0.92          0.91          0.83          0.28
    a = 1, c = 1, A = 50         -2.38         -0.27         -0.90         -2.51         -4.17

The steps of a short run are large: if more than 1/30 of all iterations are in flight at a time,
outdated results move theta past a steep optimum.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import fsum, sqrt
from types import MappingProxyType
from typing import Any

import numpy as np

from spsa.algorithms.gains import ALPHA, GAMMA, A, Gains, delay
from spsa.algorithms.outcome_elo import bounded_elo, inverse
from spsa.algorithms.rule import Outcome, Perturbation, Problem, RuleEntry, RuleUpdate, State, signs
from spsa.algorithms.settings import SMALL, Setting
from spsa.algorithms.walk import Walk, WalkState
from spsa.core.scoring import ELO_PER_SCORE

_SETTINGS = (
    Setting(
        name="a",
        meaning="scale of a_k, in steps squared per Elo",
        default=None,
        most=1e12,
        open=True,
    ),
    Setting(
        name="noise_walk",
        meaning="steps that noise alone may carry theta in the whole run; derives a",
        default=2.5,
        open=True,
        instead_of=("a",),
    ),
    Setting(
        name="first_move",
        meaning="steps that the first result moves a parameter by if it is one standard error; "
        "derives a",
        default=None,
        open=True,
        instead_of=("a", "noise_walk"),
    ),
    Setting(
        name="last_move",
        meaning="the same of the last planned result; derives a",
        default=None,
        open=True,
        instead_of=("a", "noise_walk", "first_move"),
    ),
    Setting(
        name="c",
        meaning="perturbation of the first iteration, in steps",
        default=None,
        least=SMALL,
    ),
    A,
    ALPHA,
    GAMMA,
    Setting(
        name="elo_bound",
        meaning="standard errors of Elo beyond which a result is cut off",
        default=4.0,
        open=True,
    ),
)

_TAU = 0.9  # assumed deviation of a pair's result: 2 (1 - d) = 0.81 at d = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spsa(Walk):
    gains: Gains
    elo_bound: float
    name: str = "spsa"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        c_k = self.gains.c_k(k)
        return Perturbation(
            centre=self.theta(state),
            offset=c_k * signs(rng, state.theta.shape),
            a_k=self.gains.a_k(k),
            c_k=c_k,
        )

    def tell(self, state: State, outcome: Outcome) -> tuple[WalkState, RuleUpdate]:
        found, bounded = bounded_elo(outcome, self.elo_bound)
        gradient = found * inverse(outcome.difference, 2 * outcome.c_k)
        after = self.at(state.theta + outcome.a_k * gradient)
        return after, RuleUpdate(gradient=gradient, elo=found, bounded=bounded)


def noise_move(gains: Gains, problem: Problem, k: int) -> float:
    """How far result k moves a parameter, in steps, if its Elo is one standard error."""
    noise = ELO_PER_SCORE * _TAU / (2 * sqrt(problem.pairs))
    return gains.a_k(k) * noise / (2 * gains.c_k(k))


def noise_walk(gains: Gains, problem: Problem) -> float:
    """How far the noise of the planned games alone moves theta, in steps (Euclidean length).

    The steps are independent, so their squares add up over iterations and parameters.
    """
    moves = (noise_move(gains, problem, k) for k in range(1, problem.iterations + 1))
    return sqrt(problem.start.shape[-1] * fsum(move * move for move in moves))


def first_move(gains: Gains, problem: Problem) -> float:
    return noise_move(gains, problem, 1)


def last_move(gains: Gains, problem: Problem) -> float:
    return noise_move(gains, problem, problem.iterations)


_SIZES: Mapping[str, Callable[[Gains, Problem], float]] = MappingProxyType(
    {"first_move": first_move, "last_move": last_move, "noise_walk": noise_walk}
)  # noise_walk has a default, so it comes last


def _build(problem: Problem, given: Mapping[str, Any]) -> Spsa:
    return Spsa(problem=problem, gains=_gains(problem, given), elo_bound=given["elo_bound"])


def _gains(problem: Problem, given: Mapping[str, Any]) -> Gains:
    n, gamma = problem.iterations, given["gamma"]
    gains = Gains(
        a=given["a"] or 1.0,
        c=n**gamma if given["c"] is None else given["c"],
        A=delay(n) if given["A"] is None else given["A"],
        alpha=given["alpha"],
        gamma=gamma,
    )
    if given["a"]:
        return gains
    # All sizes are proportional to a.
    wanted = next(name for name in _SIZES if given[name] is not None)
    return replace(gains, a=given[wanted] / _SIZES[wanted](gains, problem))


ENTRY = RuleEntry(
    name="spsa",
    summary="Spall's SPSA on Elo, its gains derived from the budget unless given",
    settings=_SETTINGS,
    build=_build,
)
