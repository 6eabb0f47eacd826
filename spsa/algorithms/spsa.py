"""SPSA: simultaneous perturbation stochastic approximation on Elo, in steps.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    g_i         = E / (plus_i - minus_i)            Elo per step
    theta_i    += a_k g_i,              a_k = a / (k + A)^alpha,   c_k = c / k^gamma

Spall 1998, "Implementation of the Simultaneous Perturbation Algorithm for Stochastic Optimization".

The gains follow from the budget unless they are given. c makes the last planned perturbation one
step, like Fishtest's c_end. a is such that the noise of the planned games alone would move theta by
2.5 steps (Euclidean length: 0.8 steps per parameter for 10 of them). That fixes the cost of noise,
and more games leave more for the signal. Over quadratic losses the best length hardly depends on
the number of parameters (4 to 64), of iterations (20 to 3000) or of games in each:
`tests/algorithms/test_algorithms_recovery.py` compares what other gains recover.

The steps of a short run are large: if more than 1/30 of all iterations are in flight at a time,
outdated results move theta past a steep optimum.
"""

from dataclasses import dataclass, replace
from math import fsum, sqrt

import numpy as np

from spsa.algorithms.rule import (
    Outcome,
    Perturbation,
    Problem,
    RuleEntry,
    RuleUpdate,
    State,
    Vector,
    Walk,
    WalkState,
    perturbed,
)
from spsa.algorithms.settings import ALPHA, DELAY, GAMMA, SMALL, A, Gains, Setting
from spsa.core.scoring import ELO_PER_SCORE, PRIOR_VARIANCE, PRIOR_WEIGHT

_TAU = 0.9  # assumed deviation of a pair's result: 2 (1 - d) = 0.81 at d = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Spsa(Walk):
    gains: Gains
    elo_bound: float
    name: str = "spsa"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        return perturbed(self.theta(state), rng, self.gains.a_k(k), self.gains.c_k(k))

    def tell(self, state: State, outcome: Outcome) -> tuple[WalkState, RuleUpdate]:
        limit = self.elo_bound * _null_error(outcome)
        elo, bounded = np.clip(outcome.elo, -limit, limit), np.abs(outcome.elo) > limit
        gradient = elo * outcome.inverse
        after = self.at(state.theta + outcome.a_k * gradient)
        return after, RuleUpdate(gradient=gradient, elo=elo, bounded=bounded)


def _null_error(outcome: Outcome) -> Vector:
    """The standard deviation of Elo between equal players, shape (1,).

    The error of a one-sided tally itself would be too small.
    """
    pairs = np.maximum(outcome.pairs, 1.0)
    variance = (PRIOR_WEIGHT * PRIOR_VARIANCE + outcome.squares) / (PRIOR_WEIGHT + outcome.pairs)
    return ELO_PER_SCORE * np.sqrt(variance / pairs) / 2


def _noise_walk(gains: Gains, problem: Problem) -> float:
    """How far the noise of the planned games alone moves theta, in steps (Euclidean length).

    The steps are independent, so their squares add up over iterations and parameters. Each is that
    of a result whose Elo is one standard error.
    """
    noise = ELO_PER_SCORE * _TAU / (2 * sqrt(problem.pairs))
    ks = range(1, problem.iterations + 1)
    moves = (gains.a_k(k) * noise / (2 * gains.c_k(k)) for k in ks)
    return sqrt(problem.start.shape[-1] * fsum(move * move for move in moves))


def _build(
    *,
    problem: Problem,
    a: float | None,
    noise_walk: float,
    c: float | None,
    A: float | None,
    alpha: float,
    gamma: float,
    elo_bound: float,
) -> Spsa:
    n = problem.iterations
    gains = Gains(
        a=a or 1.0,
        c=n**gamma if c is None else c,
        A=DELAY * n if A is None else A,
        alpha=alpha,
        gamma=gamma,
    )
    if not a:  # the walk is proportional to it
        gains = replace(gains, a=noise_walk / _noise_walk(gains, problem))
    return Spsa(problem=problem, gains=gains, elo_bound=elo_bound)


ENTRY = RuleEntry(
    name="spsa",
    settings=(
        Setting("a", "scale of a_k, in steps squared per Elo", default=None, most=1e12, open=True),
        Setting(
            "noise_walk",
            "steps that noise alone may carry theta in the whole run; derives a",
            default=2.5,
            open=True,
            instead_of=("a",),
        ),
        Setting("c", "perturbation of the first iteration, in steps", default=None, least=SMALL),
        A,
        ALPHA,
        GAMMA,
        Setting(
            "elo_bound",
            "standard errors of Elo beyond which a result is cut off",
            default=4.0,
            open=True,
        ),
    ),
    build=_build,
)
