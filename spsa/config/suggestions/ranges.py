"""From the numbers of one constant to parameters, each with a range and a step. Pure.

A constant does not show what a step of it is worth in Elo. A step is therefore about a tenth of
the value, and the range goes from half of it to twice it. A person edits these starts. A long
array is tuned by knobs: alone, one of its numbers hardly changes a game.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, product
from math import ceil, floor
from statistics import fmean, median

from spsa.builds.sources import ConstantRefused, Element
from spsa.config.suggestions.ranking import (
    Objection,
    objection_to_factor,
    objection_to_number,
    words,
)
from spsa.core.params import Location, Number

_PART = 0.09
_WIDEST = 0.25
"""Of the step of an amplitude: four steps from the value to either bound."""

_NEAR_ZERO = 10
"""Centipawns: the sign of what is smaller is not sure."""

_SHORTEST_TABLE = 3
_OF_SQUARES = (32, 64, 128)
"""Numbers of a table of squares: of half the board, of all of it, and in pairs."""
_SQUARES = {"PSQ", "PSQT", "PST", "SQ", "SQT", "SQUARE", "SQUARES", "TABLE"}
_MOST_OF_BIAS = 6
"""Centipawns, and a 64th of the mean: more is worth far more than three Elo."""

_MAX_ELEMENTS = 8
"""Numbers of an array that is tuned number by number."""
_MAX_ROWS = 4
_MAX_LISTED = 32
MAX_NUMBERS = 256
"""A constant of more numbers is not suggested number by number."""

_ONE_OF_MANY = Objection("one number of a table: alone it hardly changes a game", left_out=False)
_FAR = 20
_APART = Objection("far from the others of its table, as a king's value is")
_ONE_OF_VERY_MANY = Objection("one number of a long table")

Numbers = Mapping[Location, Element]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A parameter as params.toml would have it; `reason` says why it is not suggested, or "".

    `keys` are further keys of its table, such as `constant` or `knob`. `left_out` tells a number
    that is not tunable from one that a person may still want to tune. With `declared` the author of
    the engine gave the range.
    """

    name: str
    value: Number
    minimum: Number
    maximum: Number
    step: Number
    group: str = ""
    reason: str = ""
    left_out: bool = False
    declared: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)


def opposed(suggested: Suggested, objection: Objection | None) -> Suggested:
    """The same parameter with a reason against it; one that it has stays if it is as strong."""
    strong = objection is not None and objection.left_out
    if objection is None or suggested.left_out or (suggested.reason and not strong):
        return suggested
    return replace(suggested, reason=objection.reason, left_out=objection.left_out)


def around(name: str, value: Number, *, real: bool) -> Suggested:
    """A range around a number of which nothing else is known."""
    step = _PART * abs(value) if real else max(1, round(_PART * abs(value)))
    low, high = bounds(value, step, real=real)
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step or 0.1)


def of_evaluation(name: str, value: Number) -> Suggested:
    """A range around a weight in centipawns, which may change its sign if it is small."""
    size = abs(value)
    step = max(2, round(min(_PART * size, 10 + size / 64)))
    low, high = bounds(value, step, real=False)
    if size < _NEAR_ZERO:
        low, high = min(low, value - 4 * step), max(high, value + 4 * step)
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step)


def bounds(value: Number, step: Number, *, real: bool) -> tuple[Number, Number]:
    """Half to twice the value, and room for two steps either way."""
    least, most = sorted((value / 2, value * 2))
    low, high = min(least, value - 2 * step), max(most, value + 2 * step)
    if value > 0:
        low = max(low, 1 if not real and value > 1 else 0)
    return (low, high) if real else (floor(low), ceil(high))


def of_array(name: str, location: Location, found: Numbers) -> Iterator[Suggested]:
    """A few long rows are tables of their own, such as those of middle game and endgame."""
    items = [dict(own) for _, own in groupby(found.items(), lambda item: item[0].accesses[:1])]
    inner = [next(iter(item)).accesses[1:2] for item in items]
    rows = sum(bool(below) and not below[0].field for below in inner)
    pairs = any(below and below[0].field for below in inner)  # which one knob would mix
    if rows == len(items) <= _MAX_ROWS and len(found) > rows * _MAX_ELEMENTS:
        for item in items:
            place = replace(location, accesses=next(iter(item)).accesses[:1])
            yield from _of_table(name, place, item, flat=False)
    elif (
        len(found) < _SHORTEST_TABLE
        or (rows and len(found) <= rows * _MAX_ELEMENTS <= 32)
        or (pairs and len(items) <= _MAX_ELEMENTS)
    ):
        yield from of_each(name, found)
    else:
        yield from _of_table(name, location, found, flat=not any(inner))


def _of_table(name: str, location: Location, found: Numbers, *, flat: bool) -> Iterator[Suggested]:
    """Knobs for an array: base and slope for a line, else amplitude and bias.

    A short array is tuned by its numbers, and so is one whose knobs would leave its type.
    """
    numbers = [element.number for element in found.values()]
    whole = not any(element.real for element in found.values())
    own = own_name(name, location)
    line = _line(own, numbers) if flat and whole else ()
    if line and _fit(line, found):
        yield from (replace(k, keys={"array": str(location), **k.keys}) for k in line)
    elif len(found) <= _MAX_ELEMENTS:
        yield from of_each(name, found)
    else:
        bends = _bends(own, numbers)
        choices = (bends, bends[:1], bends[-1:]) if whole else ()
        knobs = next((choice for choice in choices if _fit(choice, found)), ())
        yield from (replace(k, keys={"table": str(location), **k.keys}) for k in knobs)
        if not knobs and len(found) <= MAX_NUMBERS:
            yield from of_many(name, found)


def _line(name: str, numbers: Sequence[Number]) -> tuple[Suggested, ...]:
    """Base and slope for an array that is a line; nothing for any other."""
    slope = numbers[1] - numbers[0]
    if slope == 0 or any(numbers[0] + i * slope != number for i, number in enumerate(numbers)):
        return ()
    base = around(f"{name}_base", numbers[0], real=False)
    per_index = around(f"{name}_per_index", slope, real=False)
    return replace(base, keys={"knob": "base"}), replace(per_index, keys={"knob": "per_index"})


def _bends(name: str, numbers: Sequence[Number]) -> tuple[Suggested, ...]:
    """Amplitude and bias for a table; a step of each changes at least one entry.

    Each side has one king, so the bias of a king's squares cancels.
    """
    mean = fmean(numbers)
    deviation = max(abs(number - mean) for number in numbers)
    usual = _PART * max(abs(mean), 2 * deviation)
    step = max(1, round(min(usual, _MOST_OF_BIAS + abs(mean) / 64)))
    bias = Suggested(
        name=f"{name}_bias",
        value=0,
        minimum=-5 * step,
        maximum=5 * step,
        step=step,
        keys={"knob": "bias"},
    )
    least = ceil(100 / deviation) / 100 if deviation else 1.0
    told = {word.rstrip("0123456789") for word in words(name)}
    of_king = "KING" in told and not told.isdisjoint(_SQUARES)
    biases = () if of_king and len(numbers) in _OF_SQUARES else (bias,)
    if least > _WIDEST:
        return biases
    amplitude = Suggested(
        name=f"{name}_amplitude",
        value=1.0,
        minimum=0.5,
        maximum=1.5,
        step=max(0.1, least),
        keys={"knob": "amplitude"},
    )
    return amplitude, *biases


def _fit(knobs: Sequence[Suggested], found: Numbers) -> bool:
    """Whether every number stays within its type at the corners of the knobs' ranges."""
    mean = fmean(element.number for element in found.values())
    for corner in product(*((knob.minimum, knob.maximum) for knob in knobs)):
        at = dict(zip((knob.keys["knob"] for knob in knobs), corner, strict=True))
        for i, element in enumerate(found.values()):
            if "base" in at:
                number = at["base"] + i * at["per_index"]
            else:
                spread = at.get("amplitude", 1.0) * (element.number - mean)
                number = mean + spread + at.get("bias", 0)
            if not fits(element, floor(number + 0.5)):
                return False
    return True


def fits(element: Element, number: Number) -> bool:
    """Whether a number can stand in the place of an element."""
    try:
        element.check(number)
    except ConstantRefused:
        return False
    return True


def of_many(name: str, found: Numbers, *, computed: bool = False) -> Iterator[Suggested]:
    """Each number alone, with what is to be said against one of many."""
    many = _ONE_OF_MANY if len(found) <= _MAX_LISTED else _ONE_OF_VERY_MANY
    for suggested in of_each(name, found, computed=computed):
        yield opposed(suggested, many if len(found) > _MAX_ELEMENTS else None)


def of_each(name: str, found: Numbers, *, computed: bool = False) -> Iterator[Suggested]:
    """Each number alone; of an expression if `computed`."""
    usual = median(abs(element.number) for element in found.values())
    for place, element in found.items():
        indexed = any(not access.field for access in place.accesses)
        objection = objection_to_number(element, indexed=indexed)
        objection = objection or (objection_to_factor(element.number) if computed else None)
        if len(found) > 3 and abs(element.number) > max(5000, _FAR * usual):
            objection = _APART
        suggested = replace(_scalar(own_name(name, place), element), keys={"constant": str(place)})
        yield opposed(suggested, objection)


def _scalar(name: str, element: Element) -> Suggested:
    """A range that the type of the number can hold."""
    last = element.location.accesses[-1:]
    in_pair = any(access.field and access.position in (0, 1) for access in last)
    guess = of_evaluation if in_pair and not element.real else partial(around, real=element.real)
    found = guess(name, element.number)
    low, high = element.limits or (found.minimum, found.maximum)
    return replace(found, minimum=max(found.minimum, low), maximum=min(found.maximum, high))


def own_name(name: str, place: Location) -> str:
    return "_".join((name, *(str(access.position).lower() for access in place.accesses)))
