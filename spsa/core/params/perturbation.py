"""From a centre and an offset to the two points that can be played: arrays in, arrays out.

Everything is in steps. A continuous parameter has unit 0 and is not rounded.
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
    """The points centre + offset and centre - offset, made playable and kept symmetric.

    An offset that is not zero is magnified to half a unit, without which both sides may round to
    the same number. Where a side would leave the bounds the centre gives way, not the difference;
    only a range narrower than twice the offset shortens it.
    """
    reach = np.maximum(np.abs(offset), grid.unit / 2)
    reach = np.where(offset == 0.0, 0.0, np.minimum(reach, (grid.upper - grid.lower) / 2))
    middle = np.clip(centre, grid.lower + reach, grid.upper - reach)
    signed = np.copysign(reach, offset)
    return middle + signed, middle - signed


def round_together(
    grid: Grid, plus: Vector, minus: Vector, uniform: Vector
) -> tuple[Vector, Vector]:
    """Both points in whole units (steps where continuous), by one shared draw a parameter.

    floor(v + U) is v on average. Sharing U keeps the difference within one unit of the wanted
    one and never turns it round; at half a unit each side it is never 0 either.
    """
    unit = np.where(grid.unit > 0.0, grid.unit, 1.0)
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    first, last = np.rint(grid.lower / unit), np.rint(grid.upper / unit)
    # A wanted difference of one unit must not become 0 or 2 by a hair of floating point.
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
