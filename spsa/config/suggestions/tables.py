"""From the numbers of one constant to parameters: each number alone, or the knobs of an array."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import floor

from spsa.builds.sources import ConstantRefused, Element, Group
from spsa.config.suggestions.ranges import Suggested, bends, line, scalar
from spsa.config.suggestions.ranking import Objection, objection_to_factor, objection_to_number
from spsa.core.params import Location, Number

_SHORTEST_TABLE = 3
MAX_ELEMENTS = 8
"""An array of more numbers is tuned by knobs: alone, one of its numbers hardly changes a game."""

_MAX_ROWS = 4
MAX_NUMBERS = 256
"""A constant of more numbers is not suggested number by number."""

_ONE_OF_MANY = Objection("one number of a table: alone it hardly changes a game", left_out=False)
_ONE_OF_VERY_MANY = Objection("one number of a long table")
_MAX_LISTED = 32


def opposed(suggested: Suggested, objection: Objection) -> Suggested:
    """The same parameter with a reason against it; a stronger one that it has already stays."""
    if suggested.left_out:
        return suggested
    return replace(suggested, reason=objection.reason, left_out=objection.left_out)


def of_array(
    name: str, location: Location, group: Group, found: Mapping[Location, Element]
) -> Iterator[Suggested]:
    """A few long rows are tables of their own, such as those of middle game and endgame."""
    rows = [item for item in group.items if isinstance(item, Group) and not item.tuple_]
    if len(rows) == len(group.items) <= _MAX_ROWS and len(found) > len(rows) * MAX_ELEMENTS:
        for i in range(len(rows)):
            place = location.at(i)
            own = {at: e for at, e in found.items() if at.accesses[:1] == place.accesses}
            yield from _of_table(name, place, own, flat=False)
    elif (
        len(found) < _SHORTEST_TABLE
        or (rows and len(found) <= len(rows) * MAX_ELEMENTS <= 32)
        or (_has_pairs(group) and len(group.items) <= MAX_ELEMENTS)
    ):
        yield from of_each(name, found, computed=False, many=False)
    else:
        flat = not any(isinstance(item, Group) for item in group.items)
        yield from _of_table(name, location, found, flat=flat)


def _has_pairs(group: Group) -> bool:
    """Whether it holds numbers of middle game and endgame, which one knob would mix."""
    return any(isinstance(item, Group) and item.tuple_ for item in group.items)


def _of_table(
    name: str, location: Location, found: Mapping[Location, Element], *, flat: bool
) -> Iterator[Suggested]:
    """Knobs for an array: base and slope for a line, else amplitude and bias.

    A short array is tuned by its numbers, and so is one whose knobs would leave its type.
    """
    numbers = [element.literal.number for element in found.values()]
    knobs_name = _own_name(name, location)
    whole = all(isinstance(number, int) for number in numbers)
    fitted = line(knobs_name, numbers) if flat and whole else None
    if fitted and _all_fit(found, _filled(fitted)):
        yield from _placed(fitted, "array", location)
    elif len(found) <= MAX_ELEMENTS:
        yield from of_each(name, found, computed=False, many=False)
    elif (knobs := _fitting_bends(knobs_name, found, numbers)) is not None:
        yield from _placed(knobs, "table", location)
    elif len(found) <= MAX_NUMBERS:
        yield from of_each(name, found, computed=False, many=True)


def _own_name(name: str, place: Location) -> str:
    return "_".join((name, *(str(access.position).lower() for access in place.accesses)))


def _placed(knobs: tuple[Suggested, ...], key: str, location: Location) -> Iterator[Suggested]:
    for knob in knobs:
        yield replace(knob, keys={key: str(location), **knob.keys})


def _fitting_bends(
    name: str, found: Mapping[Location, Element], numbers: list[Number]
) -> tuple[Suggested, ...] | None:
    """Both knobs, or one, or None: whatever keeps every number within its type."""
    knobs = bends(name, numbers)
    mean = sum(numbers) / len(numbers)
    if any(element.real for element in found.values()):
        return None
    for chosen in (knobs, knobs[:1], knobs[-1:]):
        if _all_fit(found, _bent(chosen, mean)):
            return chosen
    return None


Formula = Callable[[int, Number], Iterator[float]]


def _filled(knobs: tuple[Suggested, Suggested]) -> Formula:
    base, slope = knobs

    def numbers(i: int, _: Number) -> Iterator[float]:
        for first in (base.minimum, base.maximum):
            for each in (slope.minimum, slope.maximum):
                yield first + i * each

    return numbers


def _bent(knobs: tuple[Suggested, ...], mean: float) -> Formula:
    def numbers(_: int, number: Number) -> Iterator[float]:
        bounds = {knob.keys["knob"]: (knob.minimum, knob.maximum) for knob in knobs}
        for amplitude in bounds.get("amplitude", (1.0,)):
            for bias in bounds.get("bias", (0,)):
                yield mean + amplitude * (number - mean) + bias

    return numbers


def _all_fit(found: Mapping[Location, Element], formula: Formula) -> bool:
    try:
        for i, element in enumerate(found.values()):
            for number in formula(i, element.literal.number):
                element.check(number if element.real else floor(number + 0.5))
    except ConstantRefused:
        return False
    return True


def of_each(
    name: str, found: Mapping[Location, Element], *, computed: bool, many: bool
) -> Iterator[Suggested]:
    for place, element in found.items():
        own = _own_name(name, place)
        given = {} if str(place) == own.upper() else {"constant": str(place)}
        indexed = any(not access.field for access in place.accesses)
        objection = objection_to_number(element.literal, indexed=indexed)
        objection = objection or (objection_to_factor(element.literal.number) if computed else None)
        if many and objection is None:
            objection = _ONE_OF_MANY if len(found) <= _MAX_LISTED else _ONE_OF_VERY_MANY
        suggested = replace(scalar(own, element), keys=given)
        yield suggested if objection is None else opposed(suggested, objection)
