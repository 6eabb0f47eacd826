"""SPSA as in Fishtest and OpenBench, after Joona Kiiski's tuner: on results, not on Elo.

    plus, minus = theta +- c_k delta,   delta_i = +-1
    theta_i    += R_k c_k delta_i W,    R_k = a_k / c_k^2

W is wins - losses of plus. (17) of Ivec & Vojnovic 2022, "Bayesian statistics approach to chess
engines optimization", has a_k and c_k; both are set by their values after N iterations:

    c = c_end N^gamma,   a_end = r_end c_end^2,   a = a_end (A + N)^alpha

R_k is a learning rate in units of c_k^2: one game moves theta by at most R_k perturbations,
whatever the parameters are. It is r_end at the last planned iteration.

If another tuner has `played` iterations, the run goes on at the next one, and N counts them too.

The c_k delta of the update is half the played difference, which is c_k delta unless bounds or
rounding changed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.gains import ALPHA, C_END, GAMMA, A, Gains, delay
from spsa.algorithms.outcome_elo import reported
from spsa.algorithms.rule import Outcome, Perturbation, Problem, RuleEntry, RuleUpdate, State, signs
from spsa.algorithms.settings import SMALL, Setting
from spsa.algorithms.walk import Walk, WalkState

_SETTINGS = (
    Setting(
        name="r_end",
        meaning="R_k of the last planned iteration: perturbations moved by one win",
        default=0.002,
        least=SMALL,
    ),
    C_END,
    A,
    ALPHA,
    GAMMA,
    Setting(
        name="played",
        meaning="iterations that another tuner has played; N counts them too",
        default=0.0,
        most=1e12,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fishtest(Walk):
    gains: Gains
    played: float = 0.0
    name: str = "fishtest"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        a_k, c_k = self.gains.a_k(self.played + k), self.gains.c_k(self.played + k)  # (17)
        centre = self.theta(state)
        return Perturbation(centre=centre, offset=c_k * signs(rng, centre.shape), a_k=a_k, c_k=c_k)

    def tell(self, state: State, outcome: Outcome) -> tuple[WalkState, RuleUpdate]:
        r_k = outcome.a_k / outcome.c_k**2
        c_k_delta = outcome.difference / 2
        after = self.at(state.theta + r_k * outcome.result * c_k_delta)
        return after, reported(outcome)


def _build(problem: Problem, given: Mapping[str, Any]) -> Fishtest:
    n, c_end = problem.iterations + given["played"], given["c_end"]
    after = delay(n) if given["A"] is None else given["A"]
    a_end = given["r_end"] * c_end**2
    gains = Gains(
        a=a_end * (after + n) ** given["alpha"],
        c=c_end * n ** given["gamma"],
        A=after,
        alpha=given["alpha"],
        gamma=given["gamma"],
    )
    return Fishtest(problem=problem, gains=gains, played=given["played"])


ENTRY = RuleEntry(
    name="fishtest",
    summary="SPSA on results, as Fishtest and OpenBench run it",
    settings=_SETTINGS,
    build=_build,
)
