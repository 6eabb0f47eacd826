"""The gain and the number of games for a wanted precision, with constant gains.

Both methods of van den Bergh's simulator. `cautious` waits until the influence of the start is
gone, so it does not need the loss at the start: r by (2.2), games by (2.6). `direct` uses the loss
at the start and takes the fastest way by (2.8); it needs fewer games, but depends on that loss.

Section 2.4: if all parameters have the same time constant, the mean loss after so many games
depends on the gain only by R and T,

    exp(-R T) + R (1 - exp(-R T)) = p
    R = r n C s / (8 p_0),   p = wanted loss / p_0,   T proportional to the games

with p_0 the loss at the start. R is the final loss caused by noise, divided by p_0. Small gains
take long, and gains with R > p never reach the goal. In between there is an R with the smallest T.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from spsa.algorithms import Vector
from spsa.lab.theory.process import ConstantGainProcess
from spsa.lab.theory.squares import SumOfSquares, root

FORGOTTEN = 3.0
"""Time constants after which the influence of the start is gone: e^-6 of its loss is left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A final loss of at most `precision` > 0 Elo, with `confidence`, 0 to 1."""

    precision: float
    confidence: float = 0.95

    def mean_loss(self, parameters: int) -> float:
        """The mean final loss, in Elo, of a process that just meets the goal."""
        z = SumOfSquares.chi_square(parameters).quantile(self.confidence)
        return self.precision * parameters / z


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Landscape:
    """Assumptions about the engine and its games.

    `loss`, e_i > 0, is the Elo lost one unit from the best value of parameter i, and `moment`
    is E(c_i^2) of one game in squared units (`at_once` or `in_turn` of the c_i); shape (n,) each,
    in any unit, steps for example. `noise` is `noise_of_game`.
    """

    loss: Vector
    moment: Vector
    noise: float

    def process(self, r: float) -> ConstantGainProcess:
        return ConstantGainProcess(loss=self.loss, moment=self.moment, r=r, noise=self.noise)

    @property
    def slowness(self) -> float:
        """The longest time constant, in games, for r = 1."""
        return float(self.process(1.0).time_constants.max())

    def gain(self, mean_loss: float) -> float:
        """The r whose mean final loss is `mean_loss` Elo, by (2.1)."""
        return mean_loss / self.process(1.0).mean_loss


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GainDesign:
    """A run of `games`, each of which moves theta by `r` times its perturbation."""

    r: float
    games: int
    process: ConstantGainProcess

    def success(self, goal: Goal, start: Vector) -> float:
        """The probability of being within the goal's precision after the games.

        `start` is relative to the best values, in the landscape's units; shape (n,).
        """
        return self.process.losses(start, self.games).cdf(goal.precision)


def cautious(goal: Goal, landscape: Landscape, time_constants: float = FORGOTTEN) -> GainDesign:
    """The design that meets the goal from any start, after `time_constants` of the slowest."""
    r = landscape.gain(goal.mean_loss(landscape.loss.size))
    return _designed(landscape, r, time_constants * landscape.slowness / r)


def direct(goal: Goal, landscape: Landscape, start_loss: float) -> GainDesign:
    """The fewest games that reduce the mean loss from `start_loss` Elo until the goal is met.

    Raises ValueError if the start meets the goal.
    """
    wanted = goal.mean_loss(landscape.loss.size)
    if start_loss <= wanted:
        raise ValueError(f"a start that loses {start_loss:g} Elo is within {wanted:.3g} already")
    way = fastest(wanted / start_loss)
    r = landscape.gain(way.R * start_loss)
    return _designed(landscape, r, way.R * way.T * landscape.slowness / (2 * r))


def guessed_loss(elo: Vector | float, width: Vector) -> Vector:
    """e_i of parameters that lose `elo` at half their `width` from the best value."""
    return elo / np.square(width / 2)


def _designed(landscape: Landscape, r: float, games: float) -> GainDesign:
    return GainDesign(r=r, games=round(games), process=landscape.process(r))


@dataclass(frozen=True, slots=True)
class Approach:
    """A point of the universal curve; R and T as above."""

    R: float
    T: float


def time_needed(R: float, p: float) -> float:
    """T by (2.8), for 0 < R < p < 1."""
    if not 0.0 < R < p < 1.0:
        raise ValueError(f"0 < R < p < 1 is needed, not R = {R:g} and p = {p:g}")
    return log((1 - R) / (p - R)) / R


def fastest(p: float) -> Approach:
    """The R with the smallest T to reduce a loss by the factor p, 0 < p < 1."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"the factor has to be between 0 and 1, not {p:g}")

    def slope(R: float) -> float:  # of T, times R^2
        return R * (1 - p) / ((1 - R) * (p - R)) - log((1 - R) / (p - R))

    most = p * (1 - 1e-9)
    R = root(slope, 0.0, most)
    return Approach(R, time_needed(R, p))
