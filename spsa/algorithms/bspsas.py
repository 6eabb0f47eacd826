"""BSPSAS: a Bayesian filter that keeps the parameters independent.

Ivec & Vojnovic 2022, "Bayesian statistics approach to chess engines optimization", (9) and (10),
here for B pairs at once; `spsa.algorithms.bayes` has A_i and the innovation nu, which is W with
one iteration open:

    theta_i += A_i s_i^2 nu / (B A_i^2 s_i^2 + tau^2)             (9)
    s_i^2    = s_i^2 tau^2 / (B A_i^2 s_i^2 + tau^2)              (10)

The printed (9) has another sum, over the theta_j of the other parameters, which is left out here.
Of the two sums over j that should cancel under (8), the printed derivation halves one. The rest
depends on the origin of theta, and vanishes if the model is linearised about theta_k, like (3).
With it, a shift of all values would change a run, and for the worse.

`bspsa` keeps the correlations; this costs less for many parameters and loses little.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spsa.algorithms.bayes import SETTINGS, Bayesian, Prior
from spsa.algorithms.carrying import Carry
from spsa.algorithms.rule import Outcome, Problem, RuleEntry, State, Vector
from spsa.algorithms.state_json import restored, shapes


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Independent:
    """The state: theta_i is N(mean_i, variance_i), shape (n,) each; the moments of w, (1,) each."""

    mean: Vector
    variance: Vector
    squares: Vector
    pairs: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Bspsas(Bayesian):
    name: str = "bspsas"

    def start(self) -> Independent:
        start = self.problem.start
        none = np.zeros((*start.shape[:-1], 1))
        return Independent(
            mean=start,
            variance=np.broadcast_to(np.square(self.prior.distance), start.shape),
            squares=none,
            pairs=none,
        )

    def variance(self, state: State) -> Vector:
        variance: Vector = state.variance
        return variance

    def posterior(self, state: State, outcome: Outcome) -> Independent:
        seen = self.seen(state, outcome)
        reach = seen.slope * state.variance
        certain = seen.slope * reach + seen.noise
        return Independent(
            mean=state.mean + reach / certain * seen.innovation,  # (9)
            variance=state.variance * (seen.noise / certain),  # (10)
            squares=state.squares + outcome.squares,
            pairs=state.pairs + outcome.pairs,
        )

    def carried(self, state: State, carry: Carry) -> Independent:
        return Independent(
            mean=carry.positions(state.mean),
            variance=carry.variances(state.variance, self.start().variance),
            squares=state.squares,
            pairs=state.pairs,
        )

    def dump(self, state: State) -> dict[str, Any]:
        return {name: getattr(state, name).tolist() for name in Independent.__slots__}

    def load(self, data: Mapping[str, Any]) -> Independent:
        return Independent(**restored(self.name, data, shapes(self.start())))


def _build(problem: Problem, given: Mapping[str, Any]) -> Bspsas:
    return Bspsas(problem=problem, prior=Prior.given(given))


ENTRY = RuleEntry(
    name="bspsas",
    summary="Bayesian filter with given curvature and distance, parameters independent",
    settings=SETTINGS,
    build=_build,
)
