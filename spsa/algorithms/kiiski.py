"""Joona Kiiski's method of 2011: Gaussian perturbations, and constant gain towards the winner.

    plus, minus = theta +- delta,   delta_i ~ N(0, sd^2)
    theta_i    += apply_factor delta_i W

W is wins - losses of plus; Kiiski played one game at a time. "Stockfish's
Tuning Method", Chess Programming Wiki, October 2011.

Nothing decays. Important parameters improve, and unimportant ones walk at random: the strength
rises, stalls and falls again, so a run has to be stopped in time. The values of a table are best
moved together, by an amplitude and a bias, as params.toml allows.

The delta of the update is half the played difference, which is delta unless bounds or rounding
changed it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.outcome_elo import reported
from spsa.algorithms.rule import Outcome, Perturbation, Problem, RuleEntry, RuleUpdate, State
from spsa.algorithms.settings import SMALL, Setting
from spsa.algorithms.walk import Walk, WalkState

_SETTINGS = (
    Setting(
        name="sd",
        meaning="standard deviation of the perturbation, in steps",
        default=1.0,
        least=SMALL,
    ),
    Setting(
        name="apply_factor",
        meaning="part of the perturbation that one win moves theta by",
        default=0.002,
        least=SMALL,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kiiski(Walk):
    sd: float
    apply_factor: float
    name: str = "kiiski"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        delta = self.sd * rng.standard_normal(centre.shape)
        return Perturbation(centre=centre, offset=delta, a_k=self.apply_factor, c_k=self.sd)

    def tell(self, state: State, outcome: Outcome) -> tuple[WalkState, RuleUpdate]:
        delta = outcome.difference / 2
        after = self.at(state.theta + outcome.a_k * outcome.result * delta)
        return after, reported(outcome)


def _build(problem: Problem, given: Mapping[str, Any]) -> Kiiski:
    return Kiiski(problem=problem, sd=given["sd"], apply_factor=given["apply_factor"])


ENTRY = RuleEntry(
    name="kiiski",
    summary="Kiiski's first tuner: Gaussian perturbations, constant gain towards the winner",
    settings=_SETTINGS,
    build=_build,
)
