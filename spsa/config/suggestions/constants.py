"""From one Rust file to the parameters that its numbers could be. Pure."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from spsa.builds.sources import (
    ConstantRefused,
    Element,
    Group,
    Kind,
    Literal,
    Opaque,
    SourceConstant,
    SourceFile,
    constant,
    written,
)
from spsa.config.suggestions.ranges import Suggested
from spsa.config.suggestions.ranking import Objection, objection_to_name, snake
from spsa.config.suggestions.tables import (
    MAX_ELEMENTS,
    MAX_NUMBERS,
    of_array,
    of_each,
    opposed,
)
from spsa.core.params import Location, Number

_MAX_NUMBER = 1e14  # what is larger cannot be counted in steps

_NUMBERED = Objection("numbered one after the other, as indexes and flags are")


@dataclass(frozen=True, slots=True)
class Source:
    """A file with what is known of all the files of its crate.

    `lengths` are the constants that give arrays their lengths. `prefix` is the file as locations
    name it, None for the constants file.
    """

    file: SourceFile
    lengths: frozenset[str] = frozenset()
    prefix: str | None = None


def suggest(file: SourceFile) -> tuple[Suggested, ...]:
    """Parameters for all numbers of a file that can be rewritten, in its order."""
    return tuple(suggested for _, suggested in suggest_from(Source(file, file.lengths)))


def suggest_from(source: Source) -> Iterator[tuple[SourceConstant, Suggested]]:
    """The parameters of each constant, under names that are this file's own."""
    groups, numbered = _groups(source.file), _numbered(source.file)
    taken: set[str] = set()
    for one in source.file.constants:
        objection = _NUMBERED if one in numbered else _objection(source, one)
        for suggested in _of_constant(source, one, objection):
            name = _free_name(suggested.name, one, taken)
            if name.isascii() and name.isidentifier():  # as the names of parameters are
                taken.add(name)
                place = {} if name == suggested.name else {"constant": suggested.name.upper()}
                keys = place if not suggested.keys else suggested.keys
                group = groups.get(one.line, "")
                yield one, replace(suggested, name=name, group=group, keys=keys)


def _free_name(name: str, one: SourceConstant, taken: set[str]) -> str:
    wider = ("_".join((*one.scope[-n:], name)).lower() for n in range(1, len(one.scope) + 1))
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *wider, *numbered) if each not in taken)


def _numbered(file: SourceFile) -> set[SourceConstant]:
    """Constants that count up, or double, one after the other: indexes and flags."""
    found: set[SourceConstant] = set()
    run: list[tuple[SourceConstant, Number]] = []
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
    source: Source, one: SourceConstant, objection: Objection | None
) -> Iterator[Suggested]:
    location = _location(source, one)
    try:
        if one.test_only or not _is_settled(one):
            return
        if constant(source.file, location) is not one:
            return
        found = written(source.file, location)
    except ConstantRefused:
        return  # ambiguous, or the file is no Rust: nothing to be tuned
    for suggested in _of_value(location, one, found):
        yield suggested if objection is None else opposed(suggested, objection)


def _is_settled(one: SourceConstant) -> bool:
    """A value written out, or what a `const fn` computes: other numbers in functions are code."""
    if one.kind is Kind.FUNCTION:
        struct = isinstance(one.value, Group) and bool(one.value.names)
        return struct or isinstance(one.value, Literal)
    return one.kind is not Kind.LOCAL


def _objection(source: Source, one: SourceConstant) -> Objection | None:
    if one.name in source.lengths:
        return Objection("the length of an array")
    return objection_to_name(_name(one))


def _location(source: Source, one: SourceConstant) -> Location:
    alone = len(source.file.by_name[one.name]) == 1
    scope = one.scope or (() if alone else ("crate",))
    scope = (*scope, one.condition) if one.condition and not alone else scope
    return Location(one.name, scope=scope, file=source.prefix)


def _name(one: SourceConstant) -> str:
    """What a constant's parameters are called; a `default` is named by its type."""
    if one.name in ("default", "new") and one.scope:
        return one.scope[-1]
    inner = one.kind is Kind.CONST_FUNCTION and isinstance(one.value, Group)
    if one.scope and (inner or one.kind is Kind.MACRO):
        return f"{one.scope[-1]}_{one.name}"
    return one.name


def _of_value(
    location: Location, one: SourceConstant, found: Mapping[Location, Element | Opaque]
) -> Iterator[Suggested]:
    numbers = {place: e for place, e in found.items() if isinstance(e, Element) and _is_usable(e)}
    if not numbers or (len(numbers) > MAX_NUMBERS and len(numbers) < len(found)):
        return
    name = snake(_name(one))
    if isinstance(one.value, Group) and not one.value.tuple_ and len(numbers) == len(found):
        yield from of_array(name, location, one.value, numbers)
    else:
        yield from of_each(name, numbers, computed=_computed(one), many=len(numbers) > MAX_ELEMENTS)


def _computed(one: SourceConstant) -> bool:
    return isinstance(one.value, Group) and one.value.computed


def _is_usable(element: Element) -> bool:
    try:
        element.check(element.literal.number)
    except ConstantRefused:
        return False
    return abs(element.literal.number) <= _MAX_NUMBER


def _groups(file: SourceFile) -> dict[int, str]:
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
