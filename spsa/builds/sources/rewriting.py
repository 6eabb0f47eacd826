"""Finds the number at a location, writes numbers into a source, and verifies what has changed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import diff_bytes, unified_diff
from math import isclose
from textwrap import shorten

from spsa.builds.sources.constant import (
    ConstantRefused,
    Element,
    Kind,
    Opaque,
    SourceConstant,
    SourceFile,
)
from spsa.builds.sources.reading import parse
from spsa.core.parameter import Access, Location, Number, assignments
from spsa.core.params import Space
from spsa.errors import TuningError
from spsa.text import closest, plural

_MAX_LISTED = 4
"""Constants or numbers that a message lists."""
_SAME = 1e-13
"""Of a number, what counting in steps may change."""


def constant(file: SourceFile, location: Location) -> SourceConstant:
    """The one constant that `location` names, whatever its value is.

    A `const` or `static` goes before a variable or a macro's entry of the same name. Raises
    ConstantRefused if it is absent, ambiguous, or only in tests.
    """
    if file.broken is not None:
        raise ConstantRefused(
            f"{file.name}:{file.broken} is not valid Rust", "correct the file; does it compile?"
        )
    named = [c for c in file.by_name.get(location.name, ()) if not c.test_only]
    found = [c for c in named if _matches(c, location.scope)]
    declared = [c for c in found if c.kind is Kind.CONSTANT]
    if len(found) == 1 or len(declared) == 1:
        return (declared or found)[0]
    raise _ambiguous(file, found) if found else _absent(file, location, named)


def element(file: SourceFile, location: Location) -> Element:
    """The number at `location`. Raises ConstantRefused when there is none to be rewritten."""
    owner = constant(file, location)
    if (found := owner.by_accesses.get(location.accesses)) is not None:
        return _number(found, location)
    elements(file, location)  # refuses what is there and is no number
    raise _not_one(owner, location)


def elements(file: SourceFile, location: Location) -> dict[Location, Element]:
    """All the numbers inside `location`, in the order they are written.

    Raises ConstantRefused when one of them is not written out as a number.
    """
    owner = constant(file, location)
    found = [_number(item, location) for item in _inside(owner, location.accesses)]
    if not found:
        raise _not_one(owner, location)
    return {one.location: one for one in found}


def _inside(owner: SourceConstant, accesses: tuple[Access, ...]) -> list[Element | Opaque]:
    """The items that these accesses lead to; also what is no number and would be entered."""
    return [
        one
        for one in owner.items
        if all(a == b for a, b in zip(one.location.accesses, accesses, strict=False))
        and (isinstance(one, Opaque) or len(one.location.accesses) >= len(accesses))
    ]


def _number(item: Element | Opaque, location: Location) -> Element:
    """The item where it stands; ConstantRefused for what is no number."""
    place = replace(location, accesses=item.location.accesses)
    if isinstance(item, Element):
        return replace(item, location=place)
    raise ConstantRefused(
        f"{place} is not written as a number: {shorten(item.text, 60)}",
        "only numbers that are written out can be tuned, and what is computed from them follows",
    )


def _matches(candidate: SourceConstant, scope: tuple[str, ...]) -> bool:
    wanted = scope[1:] if scope[:1] == ("crate",) else scope
    if scope == ("crate",):
        return not candidate.scope
    return not wanted or candidate.scope[-len(wanted) :] == wanted


def _not_one(owner: SourceConstant, location: Location) -> ConstantRefused:
    """A location that names several numbers, or a place that its constant does not have."""
    inside = _inside(owner, location.accesses)
    names = [
        str(replace(location, accesses=one.location.accesses)) for one in inside or owner.items
    ]
    several = plural(len(names), "number")
    found = f"has {several}" if inside else f"is no number of {owner.name}, which has {several}"
    remedy = f"name one, such as {', '.join(names[:_MAX_LISTED])}"
    if len(names) > 2:
        remedy += ', or tune the array by knob = "base" and knob = "per_index"'
    return ConstantRefused(f"{location} {found}", remedy)


def _absent(
    file: SourceFile, location: Location, elsewhere: Sequence[SourceConstant]
) -> ConstantRefused:
    remedy = 'name the constant it stands for: constant = "NAME" or "path/to/file.rs::NAME"'
    if elsewhere:
        remedy = f'write constant = "{elsewhere[0].path}"'
    elif close := closest(location.name, [c.name for c in file.constants if not c.test_only]):
        remedy = f"did you mean {close}?"
    return ConstantRefused(f"there is no constant {location} in {file.name}", remedy)


def _ambiguous(file: SourceFile, found: Sequence[SourceConstant]) -> ConstantRefused:
    paths = [one.path for one in found]
    distinct = len(set(paths)) == len(paths)
    shown = " or ".join(paths[:_MAX_LISTED])
    remedy = f"write {shown}" if distinct else "give them different names"
    lines = ", ".join(str(one.line) for one in found[:_MAX_LISTED])
    several = f"{found[0].name} is {len(found)} times in {file.name}, on lines {lines}"
    return ConstantRefused(several, remedy)


class RewriteDiffers(TuningError):
    """A rewritten source does not read back as written: a defect of this program."""


def rewrite(text: str, numbers: Mapping[Location, Number], name: str = "the constants file") -> str:
    """`text` with each number at its location; every other byte stays.

    Raises ConstantRefused for a location that cannot take its number, and RewriteDiffers when the
    result, parsed again, holds anything but the same constants with these numbers.
    """
    if not numbers:
        return text  # also one that the parser does not understand
    before = parse(text, name)
    wanted: dict[int, Number] = {}
    source, parts, kept = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
    places = ((element(before, location), number) for location, number in numbers.items())
    for place, number in sorted(places, key=lambda pair: pair[0].start):
        place.check(number)
        if place.real and isclose(number, place.number, rel_tol=_SAME):
            number = place.number  # its digits stay
        wanted[place.start] = number
        if place.number != number:  # 0xFF stays as it is written
            new = place.notation.write(number, place.text, real=place.real)
            parts += [source[kept : place.start], new.encode()]
            kept = place.end
    after = b"".join([*parts, source[kept:]]).decode("utf-8", "surrogatepass")
    if _numbers(before, wanted) != _numbers(parse(after, name), {}):
        raise RewriteDiffers(f"{name} does not read back as it was rewritten")
    return after


def _numbers(file: SourceFile, wanted: Mapping[int, Number]) -> tuple[object, ...]:
    """All numbers of a file, some of them replaced by those `wanted` at their bytes."""
    found = (
        (one.path, one.line, number.location, wanted.get(number.start, number.number))
        for one in file.constants
        for number in one.numbers()
    )
    return (file.broken, *found)


def parsed(texts: Mapping[str, str]) -> tuple[dict[str, SourceFile], str]:
    """The files by their names, and the name of the first: where no location names a file."""
    return {name: parse(text, name) for name, text in texts.items()}, next(iter(texts))


def render(space: Space, values: Mapping[str, float], texts: Mapping[str, str]) -> dict[str, str]:
    """The sources of an engine that has `values`: file -> text, for every file of `texts`.

    `texts` are the untouched sources by path inside the tree, as `sources_of` names them. Raises as
    `rewrite` does.
    """
    files, usual = parsed(texts)

    def current(location: Location) -> dict[Location, Number]:
        found = elements(files[location.file or usual], location)
        return {place: one.number for place, one in found.items()}

    by_file: dict[str, dict[Location, Number]] = {name: {} for name in texts}
    for location, number in assignments(space.parameters, values, current).items():
        by_file[location.file or usual][location] = number
    return {name: rewrite(texts[name], numbers, name) for name, numbers in by_file.items()}


def sources_of(space: Space, constants_file: str) -> tuple[str, ...]:
    """The files that the space's parameters stand in, the constants file first."""
    named = {p.location.file or constants_file for p in space.parameters}
    return (constants_file, *sorted(named - {constants_file}))


def unified_patch(before: bytes, after: bytes, name: str) -> bytes:
    """A unified diff of the file `name` (relative to the tree); empty when nothing changed."""
    # not splitlines, which also splits at form feeds and the like
    old, new = (re.findall(rb"[^\n]*\n|[^\n]+", text) for text in (before, after))
    lines = diff_bytes(unified_diff, old, new, f"a/{name}".encode(), f"b/{name}".encode())
    end = b"\n\\ No newline at end of file\n"
    return b"".join(line if line.endswith(b"\n") else line + end for line in lines)
