"""The gain and the number of games for a wanted precision, with constant gains.

Van den Bergh, "A chess oriented version of SPSA". Every game is played between theta + c and
theta - c with a random c, and moves theta by r c towards the winner. Near the best values an engine
loses sum_i e_i (theta_i - best_i)^2 Elo; s is the variance of a game's result (win 1, draw 0, loss
-1), n the number of parameters and C the Elo of a unit of score. Then

    mean final loss   n r C s / 8                    (2.1); of chi-square distribution (2.2)
    time constants    C / (4 r e_i E(c_i^2))         (2.6), in games

Both methods of his simulator choose r and the games. `cautious` waits until the influence of the
start is gone, so it does not need the loss at the start. `direct` uses the loss at the start and
takes the fastest way; it needs fewer games, but depends on that loss. If all parameters have the
same time constant, the mean loss after so many games depends on the gain only by R and T (2.4),

    exp(-R T) + R (1 - exp(-R T)) = p
    R = r n C s / (8 p_0),   p = wanted loss / p_0,   T proportional to the games

with p_0 the loss at the start. R is the final loss caused by noise, divided by p_0. Small gains
take long, and gains with R > p never reach the goal. In between there is an R with the smallest T.

Two corrections to the paper: (2.4) has sigma instead of sigma^2 = 1 - d, which is s here, and (2.6)
has e_i instead of e_j. All losses are Elo and positive.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt

import numpy as np

from spsa.core.params import Vector
from spsa.core.scoring import ELO_PER_SCORE

FORGOTTEN = 3.0
"""Time constants after which the influence of the start is gone: e^-6 of its loss is left."""


def noise_of_game(draw_rate: float, bias: float = 0.0) -> float:
    """s: the variance of a game's result between equals, 1 - d - 4 b^2.

    `bias` is the root mean square by which the openings shift the score (0..1) of a side. It
    reduces the noise, because every opening is played with both colours. Raises ValueError if no
    variance is left.
    """
    noise = 1 - draw_rate - 4 * bias**2
    if not 0.0 < noise <= 1.0:
        raise ValueError(f"draw rate {draw_rate:g} and bias {bias:g} leave a variance of {noise:g}")
    return noise


def at_once(c: Vector) -> Vector:
    """E(c_i^2) if every game perturbs all parameters by +-c_i (SPSA, example 1.2)."""
    return np.square(c)


def in_turn(c: Vector) -> Vector:
    """E(c_i^2) if every game perturbs one of the n parameters by c_i (FDSA, example 1.1)."""
    return np.square(c) / c.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A final loss of at most `precision` > 0 Elo, with `confidence`, 0 to 1."""

    precision: float
    confidence: float = 0.95

    def mean_loss(self, parameters: int) -> float:
        """The mean final loss, in Elo, of a process that just meets the goal, by (2.2)."""
        return self.precision * parameters / chi_square_quantile(parameters, self.confidence)


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

    @property
    def slowness(self) -> float:
        """The longest time constant, in games, for r = 1, by (2.6)."""
        return float((ELO_PER_SCORE / (4 * self.loss * self.moment)).max())

    def gain(self, mean_loss: float) -> float:
        """The r whose mean final loss is `mean_loss` Elo, by (2.1)."""
        return mean_loss / (self.loss.size * (ELO_PER_SCORE * self.noise / 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class GainDesign:
    """A run of `games`, each of which moves theta by `r` times its perturbation."""

    r: float
    games: int


def cautious(goal: Goal, landscape: Landscape, time_constants: float = FORGOTTEN) -> GainDesign:
    """The design that meets the goal from any start, after `time_constants` of the slowest."""
    r = landscape.gain(goal.mean_loss(landscape.loss.size))
    return GainDesign(r=r, games=round(time_constants * landscape.slowness / r))


def direct(goal: Goal, landscape: Landscape, start_loss: float) -> GainDesign:
    """The fewest games that reduce the mean loss from `start_loss` Elo until the goal is met.

    Raises ValueError if the start meets the goal.
    """
    wanted = goal.mean_loss(landscape.loss.size)
    if start_loss <= wanted:
        raise ValueError(f"a start that loses {start_loss:g} Elo is within {wanted:.3g} already")
    R, T = fastest(wanted / start_loss)
    r = landscape.gain(R * start_loss)
    return GainDesign(r=r, games=round(R * T * landscape.slowness / (2 * r)))


def time_needed(R: float, p: float) -> float:
    """T by (2.8), for 0 < R < p < 1."""
    if not 0.0 < R < p < 1.0:
        raise ValueError(f"0 < R < p < 1 is needed, not R = {R:g} and p = {p:g}")
    return log((1 - R) / (p - R)) / R


def fastest(p: float) -> tuple[float, float]:
    """R and T, with the smallest T to reduce a loss by the factor p, 0 < p < 1."""
    if not 0.0 < p < 1.0:
        raise ValueError(f"the factor has to be between 0 and 1, not {p:g}")

    def slope(R: float) -> float:  # of T, times R^2
        return R * (1 - p) / ((1 - R) * (p - R)) - log((1 - R) / (p - R))

    R = root(slope, 0.0, p * (1 - 1e-9))
    return R, time_needed(R, p)


def chi_square_quantile(degrees: int, probability: float) -> float:
    """The x that chi^2 does not exceed with this probability, 0 < probability < 1."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"the probability has to be between 0 and 1, not {probability!r}")
    t = -log(1 - probability)
    high = degrees + 2 * sqrt(degrees * t) + 2 * t  # Laurent and Massart 2000, lemma 1
    return root(lambda x: _chi_square_cdf(degrees, x) - probability, 0.0, high)


def _chi_square_cdf(degrees: int, x: float) -> float:
    """The lower incomplete gamma function P(n / 2, x / 2) by its power series."""
    if x <= 0.0:
        return 0.0
    a, half = degrees / 2, x / 2
    term = total = exp(a * log(half) - half - lgamma(a + 1))
    while term > 1e-17 * total or half > a:
        a += 1
        term *= half / a
        total += term
    return total


_ROOT_TOLERANCE = 4e-16  # about two ulps


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """The root between `low` and `high`, or the end that is nearer to it.

    Ridders 1979, "A new algorithm for computing a single root of a real continuous function": the
    bracket is at least halved in every step, and converges quadratically.
    """
    at_low, at_high, found = rising(low), rising(high), high
    if at_low >= 0.0 or at_high <= 0.0:
        return low if at_low >= 0.0 else high
    while low < (middle := low + (high - low) / 2) < high:
        before, at_middle = found, rising(middle)
        if at_middle == 0.0:
            return middle
        found = middle - (middle - low) * at_middle / sqrt(at_middle**2 - at_low * at_high)
        if abs(found - before) <= _ROOT_TOLERANCE * abs(found):
            break
        for x, at in ((middle, at_middle), (found, rising(found))):
            if at < 0.0 and x > low:
                low, at_low = x, at
            elif at >= 0.0 and x < high:
                high, at_high = x, at
    return found
