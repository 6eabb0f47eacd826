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
from functools import cached_property
from typing import Annotated

import numpy as np

from spsa.algorithms.rule import Outcome, Perturbation, State, Vector, Walk, perturbed
from spsa.algorithms.settings import DELAY, SMALL, Alpha, Delay, Gains, Gamma, LastWidth, Setting


@dataclass(frozen=True, kw_only=True)  # no slots: the gains are computed once
class Fishtest(Walk):
    name = "fishtest"
    r_end: Annotated[
        float,
        Setting("R_k of the last planned iteration: perturbations moved by one win", least=SMALL),
    ] = 0.002
    c_end: LastWidth = 1.0
    A: Delay = None
    alpha: Alpha = 0.602
    gamma: Gamma = 0.101
    played: Annotated[
        float,
        Setting(
            "iterations that another tuner has played; N counts them too", most=1e12, whole=True
        ),
    ] = 0.0

    @cached_property
    def gains(self) -> Gains:
        n = self.problem.iterations + self.played
        after = DELAY * n if self.A is None else self.A
        a_end = self.r_end * self.c_end**2
        return Gains(
            a=a_end * (after + n) ** self.alpha,
            c=self.c_end * n**self.gamma,
            A=after,
            alpha=self.alpha,
            gamma=self.gamma,
        )

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        at, gains = self.played + k, self.gains
        return perturbed(self.theta(state), rng, gains.a_k(at), gains.c_k(at))  # (17)

    def rate(self, outcome: Outcome) -> float | Vector:
        return outcome.a_k / outcome.c_k**2
