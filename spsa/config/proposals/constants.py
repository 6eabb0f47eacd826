"""From one Rust file to the parameters that its numbers could be. Pure."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor

from spsa.builds.rust import (
    ConstantRefused,
    Element,
    Group,
    Kind,
    Literal,
    Opaque,
    RustConstant,
    RustFile,
    constant,
    written,
)
from spsa.config.proposals.ranges import Proposed, bends, line, scalar
from spsa.config.proposals.ranking import (
    Objection,
    objection_to_factor,
    objection_to_name,
    objection_to_number,
)
from spsa.core.params import Location, Number

_SHORTEST_TABLE = 3
_MOST_ELEMENTS = 8
"""An array of more numbers is tuned by knobs: alone, one of its numbers hardly changes a game."""

_MOST_ROWS = 4
_MOST_NUMBERS = 256
"""A constant of more numbers is not proposed number by number."""

_MOST = 1e14  # what is larger cannot be counted in steps

_ONE_OF_MANY = Objection("one number of a table: alone it hardly changes a game", left_out=False)
_ONE_OF_VERY_MANY = Objection("one number of a long table")
_MOST_LISTED = 32
_NUMBERED = Objection("numbered one after the other, as indexes and flags are")


@dataclass(frozen=True, slots=True)
class Source:
    """A file with what is known of all the files of its crate.

    `lengths` are the constants that give arrays their lengths. `prefix` is the file as locations
    name it, None for the constants file.
    """

    file: RustFile
    lengths: frozenset[str] = frozenset()
    prefix: str | None = None


def propose(file: RustFile) -> tuple[Proposed, ...]:
    """Parameters for all numbers of a file that can be rewritten, in its order."""
    return tuple(proposed for _, proposed in propose_from(Source(file, file.lengths)))


def propose_from(source: Source) -> Iterator[tuple[RustConstant, Proposed]]:
    """The parameters of each constant, under names that are this file's own."""
    groups, numbered = _groups(source.file), _numbered(source.file)
    taken: set[str] = set()
    for one in source.file.constants:
        objection = _NUMBERED if one in numbered else _objection(source, one)
        for proposed in _of_constant(source, one, objection):
            name = _free_name(proposed.name, one, taken)
            if name.isascii() and name.isidentifier():  # as the names of parameters are
                taken.add(name)
                place = {} if name == proposed.name else {"constant": proposed.name.upper()}
                keys = place if not proposed.keys else proposed.keys
                group = groups.get(one.line, "")
                yield one, replace(proposed, name=name, group=group, keys=keys)


def _free_name(name: str, one: RustConstant, taken: set[str]) -> str:
    wider = ("_".join((*one.scope[-n:], name)).lower() for n in range(1, len(one.scope) + 1))
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *wider, *numbered) if each not in taken)


def _numbered(file: RustFile) -> set[RustConstant]:
    """Constants that count up, or double, one after the other: indexes and flags."""
    found: set[RustConstant] = set()
    run: list[tuple[RustConstant, Number]] = []
    for one in file.constants:
        if one.kind is not Kind.CONSTANT or not isinstance(one.value, Literal):
            continue
        number = one.value.number
        if run and number - run[-1][1] not in (1, run[-1][1] or 1):
            run = []
        run.append((one, number))
        if len(run) >= (3 if run[0][1] in (0, 1) else 5):
            found.update(each for each, _ in run)
    return found


def _of_constant(
    source: Source, one: RustConstant, objection: Objection | None
) -> Iterator[Proposed]:
    location = _location(source, one)
    try:
        if one.test_only or not _is_settled(one):
            return
        if constant(source.file, location) is not one:
            return
        found = written(source.file, location)
    except ConstantRefused:
        return  # ambiguous, or the file is no Rust: nothing to be tuned
    for proposed in _of_value(location, one, found):
        yield proposed if objection is None else opposed(proposed, objection)


def opposed(proposed: Proposed, objection: Objection) -> Proposed:
    """The same parameter with a reason against it; a stronger one that it has already stays."""
    if proposed.left_out:
        return proposed
    return replace(proposed, reason=objection.reason, left_out=objection.left_out)


def _is_settled(one: RustConstant) -> bool:
    """A value written out, or what a `const fn` computes: other numbers in functions are code."""
    if one.kind is Kind.FUNCTION:
        struct = isinstance(one.value, Group) and bool(one.value.names)
        return struct or isinstance(one.value, Literal)
    return one.kind is not Kind.LOCAL


def _objection(source: Source, one: RustConstant) -> Objection | None:
    if one.name in source.lengths:
        return Objection("the length of an array")
    return objection_to_name(_name(one))


def _location(source: Source, one: RustConstant) -> Location:
    alone = len(source.file.by_name[one.name]) == 1
    scope = one.scope or (() if alone else ("crate",))
    scope = (*scope, one.condition) if one.condition and not alone else scope
    return Location(one.name, scope=scope, file=source.prefix)


def _name(one: RustConstant) -> str:
    """What a constant's parameters are called; a `default` is named by its type."""
    if one.name in ("default", "new") and one.scope:
        return one.scope[-1]
    inner = one.kind is Kind.CONST_FUNCTION and isinstance(one.value, Group)
    if one.scope and (inner or one.kind is Kind.MACRO):
        return f"{one.scope[-1]}_{one.name}"
    return one.name


def _of_value(
    location: Location, one: RustConstant, found: Mapping[Location, Element | Opaque]
) -> Iterator[Proposed]:
    numbers = {place: e for place, e in found.items() if isinstance(e, Element) and _is_usable(e)}
    if not numbers or (len(numbers) > _MOST_NUMBERS and len(numbers) < len(found)):
        return
    name = _name(one).lower()
    if isinstance(one.value, Group) and not one.value.tuple_ and len(numbers) == len(found):
        yield from _of_array(name, location, one.value, numbers)
    else:
        yield from _each(name, numbers, computed=_computed(one), many=len(numbers) > _MOST_ELEMENTS)


def _computed(one: RustConstant) -> bool:
    return isinstance(one.value, Group) and one.value.computed


def _is_usable(element: Element) -> bool:
    try:
        element.check(element.literal.number)
    except ConstantRefused:
        return False
    return abs(element.literal.number) <= _MOST


def _of_array(
    name: str, location: Location, group: Group, found: Mapping[Location, Element]
) -> Iterator[Proposed]:
    """A few long rows are tables of their own, such as those of middle game and endgame."""
    rows = [item for item in group.items if isinstance(item, Group) and not item.tuple_]
    if len(rows) == len(group.items) <= _MOST_ROWS and len(found) > len(rows) * _MOST_ELEMENTS:
        for i in range(len(rows)):
            place = location.at(i)
            own = {at: e for at, e in found.items() if at.accesses[:1] == place.accesses}
            yield from _of_table(name, place, own, flat=False)
    elif len(found) < _SHORTEST_TABLE or (rows and len(found) <= len(rows) * _MOST_ELEMENTS <= 32):
        yield from _each(name, found, computed=False, many=False)
    else:
        flat = not any(isinstance(item, Group) for item in group.items)
        yield from _of_table(name, location, found, flat=flat)


def _of_table(
    name: str, location: Location, found: Mapping[Location, Element], *, flat: bool
) -> Iterator[Proposed]:
    """Knobs for an array: base and slope for a line, else amplitude and bias.

    A short array is tuned by its numbers, and so is one whose knobs would leave its type.
    """
    numbers = [element.literal.number for element in found.values()]
    knobs_name = _own_name(name, location)
    whole = all(isinstance(number, int) for number in numbers)
    fitted = line(knobs_name, numbers) if flat and whole else None
    if fitted and _all_fit(found, _filled(fitted)):
        yield from _placed(fitted, "array", location)
    elif len(found) <= _MOST_ELEMENTS:
        yield from _each(name, found, computed=False, many=False)
    elif (knobs := _fitting_bends(knobs_name, found, numbers)) is not None:
        yield from _placed(knobs, "table", location)
    elif len(found) <= _MOST_NUMBERS:
        yield from _each(name, found, computed=False, many=True)


def _own_name(name: str, place: Location) -> str:
    return "_".join((name, *(str(access.position).lower() for access in place.accesses)))


def _placed(knobs: tuple[Proposed, ...], key: str, location: Location) -> Iterator[Proposed]:
    for knob in knobs:
        yield replace(knob, keys={key: str(location), **knob.keys})


def _fitting_bends(
    name: str, found: Mapping[Location, Element], numbers: list[Number]
) -> tuple[Proposed, ...] | None:
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


def _filled(knobs: tuple[Proposed, Proposed]) -> Formula:
    base, slope = knobs

    def numbers(i: int, _: Number) -> Iterator[float]:
        for first in (base.minimum, base.maximum):
            for each in (slope.minimum, slope.maximum):
                yield first + i * each

    return numbers


def _bent(knobs: tuple[Proposed, ...], mean: float) -> Formula:
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


def _each(
    name: str, found: Mapping[Location, Element], *, computed: bool, many: bool
) -> Iterator[Proposed]:
    for place, element in found.items():
        own = _own_name(name, place)
        given = {} if str(place) == own.upper() else {"constant": str(place)}
        indexed = any(not access.field for access in place.accesses)
        objection = objection_to_number(element.literal, indexed=indexed)
        objection = objection or (objection_to_factor(element.literal.number) if computed else None)
        if many and objection is None:
            objection = _ONE_OF_MANY if len(found) <= _MOST_LISTED else _ONE_OF_VERY_MANY
        proposed = replace(scalar(own, element), keys=given)
        yield proposed if objection is None else opposed(proposed, objection)


def _groups(file: RustFile) -> dict[int, str]:
    """For each constant's line the heading above it: a comment alone between blank lines."""
    lines = [line.strip() for line in file.text.split("\n")]
    headings = {c.line: _slug(c.text) for c in file.headings if _stands_alone(lines, c.line)}
    groups: dict[int, str] = {}
    above = sorted(headings)
    for one in file.constants:
        before = bisect_left(above, one.line)
        groups[one.line] = headings[above[before - 1]] if before else ""
    return groups


def _stands_alone(lines: list[str], line: int) -> bool:
    before = lines[line - 2] if line >= 2 else ""
    after = lines[line] if line < len(lines) else ""
    return not before and not after


def _slug(heading: str) -> str:
    """At most four words of a heading, as a group's name."""
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower())[:4])
