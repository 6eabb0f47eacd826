"""SPSA and FDSA with constant gains, whose precision is known in closed form.

Van den Bergh, "The SPSA process": a game of theta + c against theta - c moves theta by

    theta += r c    after a win,   theta -= r c    after a loss                         (1.1)

so a number of games with W = wins - losses moves theta by r c W. The vector c_i of game i from 0 is

    c e_j, j = i mod n            one parameter at a time: a variant of FDSA   (Example 1.1)
    c (delta_1, ..., delta_n)     delta = +-1, all at once: SPSA               (Example 1.2)

with the same c for all parameters, each in its own steps.

Theta ends in a normal distribution about the optimum. Its width depends on r, and the time until
then on r c^2: `benches.papers.constant_gains` has the formulas.
Two formulas of the paper need corrections: (2.4) has to read sigma^2 = 1 - d, and (2.6)
lambda_j = C / (4 r e_j c_j^2).

The c_i of the update is half the played difference, which is c_i unless bounds or rounding changed
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.outcome_elo import reported
from spsa.algorithms.rule import (
    Outcome,
    Perturbation,
    Problem,
    RuleEntry,
    RuleUpdate,
    State,
    Vector,
    signs,
    unit,
)
from spsa.algorithms.settings import SMALL, Setting
from spsa.algorithms.walk import Walk, WalkState

_SETTINGS = (
    Setting(
        name="r",
        meaning="part of the perturbation that one win moves theta by",
        default=0.002,
        least=SMALL,
    ),
    Setting(name="c", meaning="perturbation, in steps", default=1.0, least=SMALL),
    Setting(
        name="perturbation",
        meaning="which parameters are perturbed in an iteration, all or one",
        default="spsa",
        choices=("spsa", "fdsa"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantGain(Walk):
    r: float
    c: float
    fdsa: bool
    name: str = "constant"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        offset = self.c * self._direction(k, centre.shape, rng)
        return Perturbation(centre=centre, offset=offset, a_k=self.r, c_k=self.c)

    def tell(self, state: State, outcome: Outcome) -> tuple[WalkState, RuleUpdate]:
        c = outcome.difference / 2
        after = self.at(state.theta + outcome.a_k * outcome.result * c)  # (1.1)
        return after, reported(outcome)

    def _direction(self, k: int, shape: tuple[int, ...], rng: np.random.Generator) -> Vector:
        if self.fdsa:
            return unit(k - 1, shape)  # Example 1.1
        return signs(rng, shape)  # Example 1.2


def _build(problem: Problem, given: Mapping[str, Any]) -> ConstantGain:
    fdsa = given["perturbation"] == "fdsa"
    return ConstantGain(problem=problem, r=given["r"], c=given["c"], fdsa=fdsa)


ENTRY = RuleEntry(
    name="constant",
    summary="SPSA or FDSA with constant gains, whose precision is known in theory",
    settings=_SETTINGS,
    build=_build,
)
