"""SPSA as in Fishtest and OpenBench, after Joona Kiiski's tuner: on results, not on Elo.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    theta_i    += R_k c_k delta_i W,    R_k = a_k / c_k^2

W is wins - losses of plus. (17) of Ivec & Vojnovic 2022, "Bayesian statistics approach to chess
engines optimization", has a_k and c_k; both are set by their values after N iterations:

    c = c_end N^gamma,   a_end = r_end c_end^2,   a = a_end (A + N)^alpha

R_k is a learning rate in units of c_k^2: one game moves theta by at most R_k perturbations,
whatever the parameters are. It is r_end at the last planned iteration.

If another tuner has `played` iterations, the run goes on at the next one, and N counts them too.
"""

from dataclasses import dataclass

import numpy as np

from spsa.algorithms.rule import (
    Outcome,
    Perturbation,
    Problem,
    RuleEntry,
    State,
    Vector,
    Walk,
    perturbed,
)
from spsa.algorithms.settings import ALPHA, C_END, DELAY, GAMMA, SMALL, A, Gains, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Fishtest(Walk):
    gains: Gains
    played: float
    name: str = "fishtest"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        at, gains = self.played + k, self.gains
        return perturbed(self.theta(state), rng, gains.a_k(at), gains.c_k(at))  # (17)

    def rate(self, outcome: Outcome) -> float | Vector:
        return outcome.a_k / outcome.c_k**2


def _build(
    *,
    problem: Problem,
    r_end: float,
    c_end: float,
    A: float | None,
    alpha: float,
    gamma: float,
    played: float,
) -> Fishtest:
    n = problem.iterations + played
    after = DELAY * n if A is None else A
    a_end = r_end * c_end**2
    gains = Gains(
        a=a_end * (after + n) ** alpha, c=c_end * n**gamma, A=after, alpha=alpha, gamma=gamma
    )
    return Fishtest(problem=problem, gains=gains, played=played)


ENTRY = RuleEntry(
    name="fishtest",
    settings=(
        Setting(
            "r_end",
            "R_k of the last planned iteration: perturbations moved by one win",
            default=0.002,
            least=SMALL,
        ),
        C_END,
        A,
        ALPHA,
        GAMMA,
        Setting(
            "played",
            "iterations that another tuner has played; N counts them too",
            default=0.0,
            most=1e12,
        ),
    ),
    build=_build,
)
