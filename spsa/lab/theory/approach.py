"""The fastest way to a wanted loss if the loss at the start is known: section 2.4, (2.8).

If all parameters have the same time constant, the mean loss after so many games depends on the gain
only by R and T,

    exp(-R T) + R (1 - exp(-R T)) = p
    R = r n C s / (8 p_0),   p = wanted loss / p_0,   T proportional to the games

with p_0 the loss at the start. R is the final loss caused by noise, divided by p_0. Small gains
take long, and gains with R > p never reach the goal. In between there is an R with the smallest T.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, sqrt

_TOLERANCE = 4e-16  # about two ulps


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
        if abs(found - before) <= _TOLERANCE * abs(found):
            break
        for x, at in ((middle, at_middle), (found, rising(found))):
            if at < 0.0 and x > low:
                low, at_low = x, at
            elif at >= 0.0 and x < high:
                high, at_high = x, at
    return found


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
