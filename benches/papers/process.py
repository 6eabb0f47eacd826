"""SPSA with constant gains: its final distribution, its speed, and its loss at any time.

Van den Bergh, "A chess oriented version of SPSA", sections 2.1 to 2.3. Every game is played between
theta + c and theta - c with a random c, and moves theta by r c towards the winner. Near the best
values an engine loses sum_i e_i (theta_i - best_i)^2 Elo. The formulas approximate small steps by a
continuous motion with noise,

    theta_i(t) normal,  mean     = exp(-t / lambda_i) theta_i(0)
                        variance = r C s / (8 e_i) (1 - exp(-2 t / lambda_i))
    lambda_i = C / (4 r e_i E(c_i^2))

in which s is the variance of a game's result (win 1, draw 0, loss -1) and theta is relative to the
best values. Two corrections to the paper: (2.4) has sigma instead of sigma^2 = 1 - d, which is s
here, and (2.6) has e_i instead of e_j.

All losses are Elo and positive, times are numbers of games.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from benches.papers.constant_gains import Landscape
from benches.papers.squares import SumOfSquares
from spsa.core.params import Vector
from spsa.core.scoring import ELO_PER_SCORE


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConstantGainProcess:
    """Constant gains on a quadratic loss.

    `loss`, e_i >= 0, is in Elo per squared unit of parameter i and `moment`, E(c_i^2) > 0, in
    squared units; shape (n,) each. `r` is how far one win moves theta, in perturbations. `noise` is
    s, the variance of a game's result.
    """

    loss: Vector
    moment: Vector
    r: float
    noise: float

    @classmethod
    def of(cls, landscape: Landscape, r: float) -> "ConstantGainProcess":
        """The process with this gain on what was assumed."""
        return cls(loss=landscape.loss, moment=landscape.moment, r=r, noise=landscape.noise)

    @property
    def per_parameter(self) -> float:
        """r C s / 8: the final loss by noise for every parameter, in Elo."""
        return self.r * ELO_PER_SCORE * self.noise / 8

    @property
    def mean_loss(self) -> float:
        """(2.1): the mean final loss, in Elo."""
        return self.loss.size * self.per_parameter

    def loss_quantile(self, probability: float) -> float:
        """(2.2): the final loss, in Elo, that is not exceeded with this probability, 0..1."""
        return self.per_parameter * SumOfSquares.chi_square(self.loss.size).quantile(probability)

    @property
    def time_constants(self) -> Vector:
        """(2.6): lambda_i, in which the distance to the best value shrinks by e; shape (n,)."""
        with np.errstate(divide="ignore"):  # a parameter without loss never converges
            return ELO_PER_SCORE / (4 * self.r * self.loss * self.moment)

    @property
    def half_lives(self) -> Vector:
        """The games in which the loss halves without noise; shape (n,)."""
        lives: Vector = self.time_constants * (log(2) / 2)
        return lives

    def mean(self, start: Vector, games: float) -> Vector:
        """The expectation of theta after `games`, relative to the best values like `start`."""
        mean: Vector = start * np.exp(-games / self.time_constants)
        return mean

    def variance(self, games: float) -> Vector:
        """The variance of theta after `games`, shape (n,), in squared units."""
        walked = games * self.r**2 * self.noise * self.moment  # of a random walk
        pull = 2 * games / self.time_constants
        nonzero = np.where(pull > 0.0, pull, 1.0)
        variance: Vector = walked * np.where(pull > 0.0, -np.expm1(-nonzero) / nonzero, 1.0)
        return variance

    def losses(self, start: Vector, games: float) -> SumOfSquares:
        """The distribution of the loss after `games`, in Elo."""
        decay = np.exp(-2 * games / self.time_constants)
        return SumOfSquares(self.per_parameter * (1 - decay), self.loss * start**2 * decay)

    def scale(self, start: Vector, games: float) -> float:
        """The mean loss after `games`, divided by the final one; it scales quantiles too."""
        return self.losses(start, games).mean / self.mean_loss
