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
from functools import cached_property
from math import fsum, sqrt
from typing import Annotated

import numpy as np

from spsa.algorithms.rule import (
    Outcome,
    Perturbation,
    Problem,
    State,
    Vector,
    Walk,
    WalkState,
    perturbed,
)
from spsa.algorithms.settings import DELAY, SMALL, Alpha, Delay, Gains, Gamma, Setting
from spsa.core.scoring import ELO_PER_SCORE, PRIOR_VARIANCE, PRIOR_WEIGHT

_TAU = 0.9  # assumed deviation of a pair's result: 2 (1 - d) = 0.81 at d = 0.6


@dataclass(frozen=True, kw_only=True)  # no slots: the gains are computed once
class Spsa(Walk):
    name = "spsa"
    a: Annotated[
        float | None, Setting("scale of a_k, in steps squared per Elo", most=1e12, open=True)
    ] = None
    noise_walk: Annotated[
        float,
        Setting(
            "steps that noise alone may carry theta in the whole run; derives a",
            open=True,
            instead_of=("a",),
        ),
    ] = 2.5
    c: Annotated[
        float | None, Setting("perturbation of the first iteration, in steps", least=SMALL)
    ] = None
    A: Delay = None
    alpha: Alpha = 0.602
    gamma: Gamma = 0.101
    elo_bound: Annotated[
        float, Setting("standard errors of Elo beyond which a result is cut off", open=True)
    ] = 4.0

    @cached_property
    def gains(self) -> Gains:
        n = self.problem.iterations
        gains = Gains(
            a=1.0 if self.a is None else self.a,
            c=n**self.gamma if self.c is None else self.c,
            A=DELAY * n if self.A is None else self.A,
            alpha=self.alpha,
            gamma=self.gamma,
        )
        if self.a is not None:
            return gains
        # the walk is proportional to a
        return replace(gains, a=self.noise_walk / _noise_walk(gains, self.problem))

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        return perturbed(self.theta(state), rng, self.gains.a_k(k), self.gains.c_k(k))

    def tell(self, state: State, outcome: Outcome) -> WalkState:
        gradient = self.counted_elo(outcome) * outcome.inverse
        return self.at(state.theta + outcome.a_k * gradient)

    def counted_elo(self, outcome: Outcome) -> Vector:
        limit = self.elo_bound * _null_error(outcome)
        return np.clip(outcome.elo, -limit, limit)


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
