"""A range and a step for a number, from the number and its type alone.

A constant does not show what a step of it is worth in Elo. A step is therefore about a tenth of
the value, and the range goes from half of it to twice it. A person edits these starts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from statistics import fmean

from spsa.builds.sources import INTEGERS, Element
from spsa.core.params import Number

_PART = 0.09


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A parameter as params.toml would have it; `reason` says why it is not suggested, or "".

    `keys` are further keys of its table, such as `constant` or `knob`. `left_out` tells a number
    that is not tunable from one that a person may still want to tune.
    """

    name: str
    value: Number
    minimum: Number
    maximum: Number
    step: Number
    group: str = ""
    reason: str = ""
    left_out: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)


def scalar(name: str, element: Element) -> Suggested:
    """A range that the type of the number can hold."""
    found = around(name, element.literal.number, real=element.real)
    if (limits := INTEGERS.get(element.type or "")) is None:
        return found
    low, high = max(found.minimum, limits[0]), min(found.maximum, limits[1])
    return replace(found, minimum=low, maximum=high)


def around(name: str, value: Number, *, real: bool) -> Suggested:
    """A range around a number of which nothing else is known."""
    step = _PART * abs(value) if real else _whole_step(value)
    low, high = bounds(value, step, real=real)
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step or 0.1)


def line(name: str, numbers: Sequence[Number]) -> tuple[Suggested, Suggested] | None:
    """Base and slope for an array that is a line of whole numbers; None for any other."""
    slope = numbers[1] - numbers[0]
    if slope == 0 or any(numbers[0] + i * slope != number for i, number in enumerate(numbers)):
        return None
    return (
        _knob(f"{name}_base", numbers[0], "base"),
        _knob(f"{name}_per_index", slope, "per_index"),
    )


def bends(name: str, numbers: Sequence[Number]) -> tuple[Suggested, ...]:
    """Amplitude and bias for a table; a step of each changes at least one entry."""
    mean = fmean(numbers)
    deviation = max(abs(number - mean) for number in numbers)
    step = max(1, round(_PART * max(abs(mean), 2 * deviation)))
    bias = Suggested(
        name=f"{name}_bias",
        value=0,
        minimum=-5 * step,
        maximum=5 * step,
        step=step,
        keys={"knob": "bias"},
    )
    least = ceil(100 / deviation) / 100 if deviation else 1.0
    if least > _WIDEST:
        return (bias,)
    amplitude = Suggested(
        name=f"{name}_amplitude",
        value=1.0,
        minimum=0.5,
        maximum=1.5,
        step=max(0.1, least),
        keys={"knob": "amplitude"},
    )
    return amplitude, bias


_WIDEST = 0.25  # of an amplitude's step: four steps from the value to either bound


def _knob(name: str, value: Number, role: str) -> Suggested:
    step = _whole_step(value)
    low, high = bounds(value, step, real=False)
    keys = {"knob": role}
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step, keys=keys)


def _whole_step(value: Number) -> int:
    return max(1, round(_PART * abs(value)))


def bounds(value: Number, step: Number, *, real: bool) -> tuple[Number, Number]:
    """Half to twice the value, and room for two steps either way."""
    least, most = sorted((value / 2, value * 2))
    low, high = min(least, value - 2 * step), max(most, value + 2 * step)
    if value > 0:
        low = max(low, 1 if not real and value > 1 else 0)
    return (low, high) if real else (floor(low), ceil(high))
