"""From the numbers of one constant to parameters, each with a range and a step. Pure.

A constant does not show what a step of it is worth in Elo. A step is therefore about a tenth of
the value, and the range goes from half of it to twice it. A person edits these starts. A long
array is tuned by knobs: alone, one of its numbers hardly changes a game.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from math import ceil, floor
from statistics import fmean, median

from spsa.builds.sources.constant import ConstantRefused, Element
from spsa.config.suggestions.objections import Objection, to_number, words
from spsa.core.params import Location, Number

_PART = 0.09
_WIDEST = 0.25
"""Of the step of an amplitude: four steps from the value to either bound."""
_OF_SQUARES = (32, 64, 128)
"""Numbers of a table of squares: of half the board, of all of it, and in pairs."""
_SQUARES = {"PSQ", "PSQT", "PST", "SQ", "SQT", "SQUARE", "SQUARES", "TABLE"}

_MAX_ELEMENTS = 8
"""Numbers of an array that is tuned number by number."""
_MAX_ROWS = 4
_MAX_LISTED = 32
MAX_NUMBERS = 256
"""A constant of more numbers is not suggested number by number."""

_ONE_OF_MANY = Objection("one number of a table: alone it hardly changes a game", left_out=False)
_ONE_OF_VERY_MANY = Objection("one number of a long table")
_APART = Objection("far from the others of its table, as a king's value is")

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

    def opposed(self, objections: Iterable[Objection | None]) -> "Suggested":
        """The same with a reason against it: the first that leaves it out, else the first."""
        own = [Objection(self.reason, self.left_out)] if self.reason else []
        found = [*own, *(one for one in objections if one is not None)]
        if not found:
            return self
        chosen = next((one for one in found if one.left_out), found[0])
        return replace(self, reason=chosen.reason, left_out=chosen.left_out)


def around(
    name: str, value: Number, *, real: bool = False, centipawns: bool = False, **keys: str
) -> Suggested:
    """A range around a number of which nothing else is known.

    A small weight in centipawns may change its sign, and a large one has a smaller step.
    """
    size = abs(value)
    step = _PART * size if real else max(1, round(_PART * size))
    if centipawns:
        step = max(2, round(min(_PART * size, 10 + size / 64)))
    low, high = bounds(value, step, real=real)
    if centipawns and size < 10:
        low, high = min(low, value - 4 * step), max(high, value + 4 * step)
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step or 0.1, keys=keys)


def bounds(value: Number, step: Number, *, real: bool) -> tuple[Number, Number]:
    """Half to twice the value, and room for two steps either way."""
    least, most = sorted((value / 2, value * 2))
    low, high = min(least, value - 2 * step), max(most, value + 2 * step)
    if value > 0:
        low = max(low, 1 if not real and value > 1 else 0)
    return (low, high) if real else (floor(low), ceil(high))


def within(found: Suggested, element: Element) -> Suggested:
    """With a range that the type of the number can hold."""
    least, most = element.limits or (found.minimum, found.maximum)
    return replace(found, minimum=max(found.minimum, least), maximum=min(found.maximum, most))


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
        len(found) < 3
        or (rows and len(found) <= rows * _MAX_ELEMENTS <= 32)
        or (pairs and len(items) <= _MAX_ELEMENTS)
    ):
        yield from _of_each(name, found)
    else:
        yield from _of_table(name, location, found, flat=not any(inner))


def _of_table(name: str, location: Location, found: Numbers, *, flat: bool) -> Iterator[Suggested]:
    """Knobs for an array: base and slope for a line, else amplitude and bias.

    A short array is tuned by its numbers, and so is one whose knobs would leave its type.
    """
    numbers = [element.number for element in found.values()]
    whole = not any(element.real for element in found.values())
    own = own_name(name, location)
    line = _line(own, numbers, str(location)) if flat and whole else ()
    if line and _fit(line, found):
        yield from line
    elif len(found) <= _MAX_ELEMENTS:
        yield from _of_each(name, found)
    else:
        bends = _bends(own, numbers, str(location)) if whole else ()
        knobs = next((k for k in (bends, bends[:1], bends[-1:]) if k and _fit(k, found)), ())
        yield from knobs
        if not knobs and len(found) <= MAX_NUMBERS:
            yield from of_many(name, found)


def _line(name: str, numbers: Sequence[Number], array: str) -> Sequence[Suggested]:
    """Base and slope for an array that is a line; nothing for any other."""
    slope = numbers[1] - numbers[0]
    if slope == 0 or any(numbers[0] + i * slope != number for i, number in enumerate(numbers)):
        return ()
    knobs = {"base": numbers[0], "per_index": slope}
    return [around(f"{name}_{k}", number, array=array, knob=k) for k, number in knobs.items()]


def _bends(name: str, numbers: Sequence[Number], table: str) -> Sequence[Suggested]:
    """Amplitude and bias for a table; a step of each changes at least one entry.

    A step of the bias is a few centipawns: more is worth far more than three Elo. Each side has one
    king, so the bias of a king's squares cancels.
    """
    mean = fmean(numbers)
    deviation = max(abs(number - mean) for number in numbers)
    least = ceil(100 / deviation) / 100 if deviation else 1.0
    usual = _PART * max(abs(mean), 2 * deviation)
    by = max(1, round(min(usual, 6 + abs(mean) / 64)))
    told = {word.rstrip("0123456789") for word in words(name)}
    of_king = "KING" in told and not told.isdisjoint(_SQUARES) and len(numbers) in _OF_SQUARES
    ranges: dict[str, tuple[Number, ...]] = {}
    if least <= _WIDEST:
        ranges["amplitude"] = (1.0, 0.5, 1.5, max(0.1, least))
    if not of_king:
        ranges["bias"] = (0, -5 * by, 5 * by, by)
    return [
        Suggested(
            name=f"{name}_{knob}",
            value=value,
            minimum=low,
            maximum=high,
            step=step,
            keys={"table": table, "knob": knob},
        )
        for knob, (value, low, high, step) in ranges.items()
    ]


def _fit(knobs: Sequence[Suggested], found: Numbers) -> bool:
    """Whether every number stays within its type at the corners of the knobs' ranges."""
    mean = fmean(element.number for element in found.values())
    for corner in product(*((knob.minimum, knob.maximum) for knob in knobs)):
        at = dict(zip((knob.keys["knob"] for knob in knobs), corner, strict=True))
        for i, element in enumerate(found.values()):
            spread = at.get("amplitude", 1.0) * (element.number - mean)
            bent = mean + spread + at.get("bias", 0)
            number = at["base"] + i * at["per_index"] if "base" in at else bent
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
    for suggested in _of_each(name, found, computed=computed):
        yield suggested.opposed([many if len(found) > _MAX_ELEMENTS else None])


def _of_each(name: str, found: Numbers, *, computed: bool = False) -> Iterator[Suggested]:
    """Each number alone; of an expression if `computed`."""
    far = max(5000, 20 * median(abs(element.number) for element in found.values()))
    for place, element in found.items():
        last = place.accesses[-1:]
        in_pair = any(access.field and access.position in (0, 1) for access in last)
        guess = around(
            own_name(name, place),
            element.number,
            real=element.real,
            centipawns=in_pair and not element.real,
            constant=str(place),
        )
        is_far = len(found) > 3 and abs(element.number) > far
        objection = _APART if is_far else to_number(element, computed=computed)
        yield within(guess, element).opposed([objection])


def own_name(name: str, place: Location) -> str:
    return "_".join((name, *(str(access.position).lower() for access in place.accesses)))
