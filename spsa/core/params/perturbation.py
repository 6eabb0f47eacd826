"""From a centre and an offset to two points that can be played, as arrays in steps.

A continuous parameter has unit 0 and is not rounded.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The range and the unit of every active parameter, in steps; shape (n,) each.

    `lower` and `upper` are whole multiples of `unit`, and lie at least one unit apart.
    """

    lower: Vector
    upper: Vector
    unit: Vector


def straddle(grid: Grid, centre: Vector, offset: Vector) -> tuple[Vector, Vector]:
    """The points centre + offset and centre - offset, inside the bounds and still symmetric.

    An offset that is not zero is at least half a unit, because both sides might round to the same
    number otherwise. If a side would leave the bounds, the centre moves and the difference stays;
    only a range narrower than twice the offset shortens the difference.
    """
    reach = np.maximum(np.abs(offset), grid.unit / 2)
    reach = np.where(offset == 0.0, 0.0, np.minimum(reach, (grid.upper - grid.lower) / 2))
    middle = np.clip(centre, grid.lower + reach, grid.upper - reach)
    signed = np.copysign(reach, offset)
    return middle + signed, middle - signed


def round_together(
    grid: Grid, plus: Vector, minus: Vector, uniform: Vector
) -> tuple[Vector, Vector]:
    """Both points in whole units (steps if continuous), with one shared draw for each parameter.

    The mean of floor(v + U) is v. With the same U for both, the difference is within one unit of
    the wanted one and keeps its sign; with offsets of at least half a unit it is never 0.
    """
    unit = np.where(grid.unit > 0.0, grid.unit, 1.0)
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    first, last = np.rint(grid.lower / unit), np.rint(grid.upper / unit)
    # A rounding error must not turn a wanted difference of one unit into 0 or 2.
    apart = np.round((high - low) / unit, 9)
    least = (apart >= 1.0).astype(np.float64)
    drawn = low / unit + uniform
    below = np.clip(np.floor(drawn), first, last - least)
    above = np.clip(below + np.floor(drawn % 1.0 + apart), first, last)
    below, above = (
        np.where(grid.unit > 0.0, units, exact) for units, exact in ((below, low), (above, high))
    )
    rising = plus >= minus
    return np.where(rising, above, below), np.where(rising, below, above)
