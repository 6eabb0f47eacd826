"""Finds the number at a location, writes numbers into a source, and verifies what has changed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches, unified_diff

from spsa.builds.sources.constant import (
    ConstantRefused,
    Element,
    Kind,
    Opaque,
    SourceConstant,
    SourceFile,
)
from spsa.builds.sources.reading import parse
from spsa.core.params import Access, Location, Number, Space, assignments
from spsa.errors import TuningError
from spsa.text import plural

_MAX_COMPARED = 5000
"""Names that a misspelt name is compared with."""

_MAX_NAMED = 10
"""Constants of one name that a message lists."""

_MAX_LISTED = 4
"""Numbers of a constant that a message lists."""


def constant(file: SourceFile, location: Location) -> SourceConstant:
    """The one constant that `location` names, whatever its value is.

    A `const` or `static` goes before a variable or a macro's entry of the same name. Raises
    ConstantRefused if it is absent, ambiguous, or only in tests.
    """
    if file.broken is not None:
        raise ConstantRefused(
            f"{file.name}:{file.broken} is not valid Rust", "correct the file; does it compile?"
        )
    found = [c for c in file.by_name.get(location.name, ()) if _matches(c, location.scope)]
    shipped = [c for c in found if not c.test_only]
    declared = [c for c in shipped if c.kind is Kind.CONSTANT]
    if len(shipped) == 1 or len(declared) == 1:
        return (declared or shipped)[0]
    raise _ambiguous(file, shipped) if shipped else _absent(file, location, found)


def element(file: SourceFile, location: Location) -> Element:
    """The number at `location`. Raises ConstantRefused when there is none to be rewritten."""
    found = written(file, location)
    first = next(iter(found.values()))
    here = first if len(found) == 1 and isinstance(first, Opaque) else found.get(location)
    if here is None:
        raise _not_one(constant(file, location), location)
    if isinstance(here, Opaque):
        raise _opaque(here)
    return here


def elements(file: SourceFile, location: Location) -> dict[Location, Element]:
    """All the numbers inside `location`, in the order they are written.

    Raises ConstantRefused when one of them is not written out as a number.
    """
    found = written(file, location)
    for one in found.values():
        if isinstance(one, Opaque):
            raise _opaque(one)
    return {place: one for place, one in found.items() if isinstance(one, Element)}


def written(file: SourceFile, location: Location) -> dict[Location, Element | Opaque]:
    """All that stands inside `location`, whether it is written out as a number or not.

    Raises ConstantRefused where there is no such place.
    """
    owner = constant(file, location)
    placed = (
        replace(one, location=replace(location, accesses=one.location.accesses))
        for one in _inside(owner, location.accesses)
    )
    if found := {one.location: one for one in placed}:
        return found
    raise _not_one(owner, location)


def _inside(owner: SourceConstant, accesses: tuple[Access, ...]) -> list[Element | Opaque]:
    """The items that these accesses lead to; also what is no number and would be entered."""
    return [
        one
        for one in owner.items
        if all(a == b for a, b in zip(one.location.accesses, accesses, strict=False))
        and (isinstance(one, Opaque) or len(one.location.accesses) >= len(accesses))
    ]


def _matches(candidate: SourceConstant, scope: tuple[str, ...]) -> bool:
    wanted = scope[1:] if scope[:1] == ("crate",) else scope
    if wanted and wanted[-1] == candidate.condition:
        wanted, scope = wanted[:-1], scope[:-1]
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
    found = f"has {several}" if inside else f"is not among the {several} of {owner.name}"
    remedy = f"name one, such as {', '.join(names[:_MAX_LISTED])}"
    return ConstantRefused(f"{location} {found}", f"{remedy}, or use array or table knobs")


def _absent(
    file: SourceFile, location: Location, found: Sequence[SourceConstant]
) -> ConstantRefused:
    if found:
        return ConstantRefused(
            f"{location} is only in tests, {file.name}:{found[0].line}",
            "name a constant that the engine itself uses",
        )
    names = {name.upper(): name for name in [*file.by_name][:_MAX_COMPARED]}
    close = get_close_matches(location.name.upper(), names, n=1)
    if elsewhere := file.by_name.get(location.name):
        remedy = f'write constant = "{elsewhere[0].path}"'
    elif close:
        remedy = f"did you mean {names[close[0]]}?"
    else:
        remedy = 'name the constant it stands for: constant = "NAME" or "path/to/file.rs::NAME"'
    return ConstantRefused(f"there is no constant {location} in {file.name}", remedy)


def _ambiguous(file: SourceFile, found: Sequence[SourceConstant]) -> ConstantRefused:
    paths = [c.path for c in found[:_MAX_NAMED]]
    distinct = len(set(paths)) == len(paths)
    remedy = f"write {' or '.join(paths)}" if distinct else "give them different names"
    lines = ", ".join(str(c.line) for c in found[:_MAX_NAMED])
    several = f"{found[0].name} is {len(found)} times in {file.name}, on lines {lines}"
    return ConstantRefused(several, remedy)


def _opaque(shape: Opaque) -> ConstantRefused:
    value = shape.text if len(shape.text) <= 60 else f"{shape.text[:57]}..."
    remedy = "only numbers that are written out can be tuned"
    if shape.names:
        remedy = f"it follows by itself: tune {', '.join(shape.names)}"
    return ConstantRefused(f"{shape.location} is not written as a number: {value}", remedy)


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
    wanted: dict[int, tuple[Element, Number]] = {}
    owners = {replace(location, accesses=()) for location in numbers}
    known = {place: one for owner in owners for place, one in written(before, owner).items()}
    for location, number in numbers.items():
        found = known.get(location)
        place = found if isinstance(found, Element) else element(before, location)
        place.check(number)
        wanted[place.start] = place, float(number) if place.real else number
    spliced = _splice(text, [wanted[start] for start in sorted(wanted)])
    _compare(before, parse(spliced, name), {at: number for at, (_, number) in wanted.items()})
    return spliced


def _splice(text: str, numbers: Sequence[tuple[Element, Number]]) -> str:
    """Tree-sitter counts bytes, so the cutting is done on them."""
    source = text.encode("utf-8", "surrogatepass")
    parts, kept = [], 0
    for place, number in numbers:
        if place.number != number:  # 0xFF stays as it is written
            new = place.notation.write(number, place.text, real=place.real)
            parts += [source[kept : place.start], new.encode()]
            kept = place.end
    return b"".join([*parts, source[kept:]]).decode("utf-8", "surrogatepass")


def _compare(before: SourceFile, after: SourceFile, wanted: Mapping[int, Number]) -> None:
    """Raise RewriteDiffers unless `after` is `before` with the wanted numbers, by their bytes."""
    if after.broken is not None:
        raise RewriteDiffers(f"{after.name}:{after.broken} cannot be parsed after rewriting")
    if before.comments != after.comments or len(before.constants) != len(after.constants):
        raise RewriteDiffers(f"{after.name}: comments or constants were lost in rewriting")
    for old, new in zip(before.constants, after.constants, strict=True):
        expected = [_content(one, wanted) for one in old.items]
        same = (old.name, old.scope, old.line) == (new.name, new.scope, new.line)
        if not same or [_content(one, {}) for one in new.items] != expected:
            raise RewriteDiffers(f"{after.name}: {old.name} reads back otherwise after rewriting")


def _content(item: Element | Opaque, wanted: Mapping[int, Number]) -> tuple[object, ...]:
    """What an item is, with the number that is wanted there."""
    if isinstance(item, Element):
        return item.location, item.type, wanted.get(item.start, item.number)
    return (item.location,)


def render(
    space: Space,
    values: Mapping[str, float],
    texts: Mapping[str, str],
    constants_file: str | None = None,
) -> dict[str, str]:
    """The sources of an engine that has `values`: file -> text, for every file of `texts`.

    `texts` are the untouched sources by path inside the tree, as `sources_of` names them; the
    constants file is the first when it is not given. Raises as `rewrite` does, and KeyError for a
    file that `texts` lacks.
    """
    usual = next(iter(texts)) if constants_file is None else constants_file
    files = {name: parse(text, name) for name, text in texts.items()}

    def current(location: Location) -> dict[Location, Number]:
        found = elements(files[location.file or usual], location)
        return {place: one.number for place, one in found.items()}

    by_file: dict[str, dict[Location, Number]] = {name: {} for name in texts}
    for location, number in assignments(space, values, current).items():
        by_file[location.file or usual][location] = number
    return {name: rewrite(texts[name], numbers, name) for name, numbers in by_file.items()}


def sources_of(space: Space, constants_file: str) -> tuple[str, ...]:
    """The files that the space's parameters stand in, the constants file first."""
    named = {p.place.location.file or constants_file for p in space.parameters}
    return (constants_file, *sorted(named - {constants_file}))


def unified_patch(before: str, after: str, name: str) -> str:
    """A unified diff of the file `name` (relative to the tree); "" when nothing changed."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}", lineterm="\n")
    marked = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    return "".join(marked)


def _lines(text: str) -> list[str]:
    """Lines with their ends. Not splitlines, which also splits at form feeds and the like."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
