"""Where a rising function of one variable is 0."""

from collections.abc import Callable


def root(rising: Callable[[float], float], low: float, high: float) -> float:
    """The place between `low` and `high` where `rising` turns positive, to the bit, by halving."""
    while low < (middle := low + (high - low) / 2) < high:
        if rising(middle) > 0.0:
            high = middle
        else:
            low = middle
    return high
