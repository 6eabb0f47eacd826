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
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from spsa.algorithms.rule import Perturbation, State, Walk, signs
from spsa.algorithms.settings import SMALL, PartMoved, Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantGain(Walk):
    name = "constant"
    r: PartMoved = 0.002
    c: Annotated[float, Setting("perturbation, in steps", least=SMALL)] = 1.0
    perturbation: Annotated[
        str,
        Setting(
            "which parameters are perturbed in an iteration, all or one", choices=("spsa", "fdsa")
        ),
    ] = "spsa"

    def ask(self, state: State, k: int, rng: np.random.Generator) -> Perturbation:
        centre = self.theta(state)
        if self.perturbation == "spsa":
            direction = signs(rng, centre.shape)  # Example 1.2
        else:
            direction = np.zeros(centre.shape)  # Example 1.1
            direction[..., (k - 1) % centre.shape[-1]] = 1.0
        return Perturbation(centre=centre, offset=self.c * direction, a_k=self.r, c_k=self.c)
