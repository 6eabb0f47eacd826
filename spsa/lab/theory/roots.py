"""Finds the root of a rising function."""

from collections.abc import Callable
from math import sqrt

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
