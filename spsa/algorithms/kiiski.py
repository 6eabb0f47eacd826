"""Joona Kiiski's method of 2011: Gaussian perturbations, and constant gain towards the winner.

    plus, minus = theta +- delta,   delta_i ~ N(0, sd^2)
    theta_i    += apply_factor delta_i W

W is wins - losses of plus; Kiiski played one game at a time. "Stockfish's Tuning Method", Chess
Programming Wiki, October 2011.

Nothing decays. Important parameters improve, and unimportant ones walk at random: the strength
rises, stalls and falls again, so a run has to be stopped in time.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from spsa.algorithms.rule import Perturbation, State, Walk
from spsa.algorithms.settings import SMALL, PartMoved, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Kiiski(Walk):
    name = "kiiski"
    sd: Annotated[
        float, Setting("standard deviation of the perturbation, in steps", least=SMALL)
    ] = 1.0
    apply_factor: PartMoved = 0.002

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        delta = self.sd * rng.standard_normal(centre.shape)
        return Perturbation(centre=centre, offset=delta, a_k=self.apply_factor, c_k=self.sd)
