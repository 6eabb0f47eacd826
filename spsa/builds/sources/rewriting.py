"""Reads a source in its language, writes numbers into it, and verifies what has changed."""

from collections.abc import Callable, Iterator, Mapping
from difflib import unified_diff

import spsa.builds.sources.literal as literal
from spsa.builds.sources.c import parse as parse_c
from spsa.builds.sources.lookup import Element, element, elements
from spsa.builds.sources.rust import parse as parse_rust
from spsa.builds.sources.shape import Opaque, SourceConstant, SourceFile, literals
from spsa.core.params import SOURCE_SUFFIXES, Location, Number, Space, assignments, target
from spsa.errors import TuningError

_PARSERS: Mapping[str, Callable[[str, str], SourceFile]] = {
    suffix: parse_rust if suffix == "rs" else parse_c for suffix in SOURCE_SUFFIXES
}


def parse(text: str, name: str = "the constants file") -> SourceFile:
    """Read a file, called `name` in messages; one whose name tells no language is Rust."""
    return _PARSERS.get(name.rpartition(".")[2], parse_rust)(text, name)


class RewriteDiffers(TuningError):
    """A rewritten source does not read back as written: a defect of this program."""


def rewrite(text: str, numbers: Mapping[Location, Number], name: str = "the constants file") -> str:
    """`text` with each number at its location; every other byte stays.

    Raises ConstantRefused for a location that cannot take its number, and RewriteDiffers when the
    result, parsed again, holds anything but the same file with these numbers.
    """
    if not numbers:
        return text  # also one that this parser does not take for Rust
    before = parse(text, name)
    places = {location: element(before, location) for location in numbers}
    for location, place in places.items():
        place.check(numbers[location])
    wanted = {place: _typed(place, numbers[location]) for location, place in places.items()}
    spliced = _splice(text, wanted)
    _compare(before, parse(spliced, name), wanted)
    return spliced


def _typed(place: Element, number: Number) -> Number:
    return float(number) if place.real else number


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
        return {place: one.literal.number for place, one in found.items()}

    by_file: dict[str, dict[Location, Number]] = {name: {} for name in texts}
    for location, number in assignments(space, values, current).items():
        by_file[location.file or usual][location] = number
    return {name: rewrite(texts[name], numbers, name) for name, numbers in by_file.items()}


def sources_of(space: Space, constants_file: str) -> tuple[str, ...]:
    """The files that the space's parameters stand in, the constants file first."""
    named = {target(p.place).file or constants_file for p in space.parameters}
    return (constants_file, *sorted(named - {constants_file}))


def _splice(text: str, numbers: Mapping[Element, Number]) -> str:
    """Tree-sitter counts bytes, so the cutting is done on them."""
    source = text.encode("utf-8", "surrogatepass")
    parts, kept = [], 0
    for place in sorted(numbers, key=lambda place: place.literal.start):
        old = place.literal
        if old.number == numbers[place]:
            continue  # 0xFF stays as it is written
        new = literal.write(numbers[place], old.text, real=place.real, notation=old.notation)
        parts += [source[kept : old.start], new.encode()]
        kept = old.end
    return b"".join([*parts, source[kept:]]).decode("utf-8", "surrogatepass")


def _compare(before: SourceFile, after: SourceFile, numbers: Mapping[Element, Number]) -> None:
    if after.broken is not None:
        raise RewriteDiffers(f"{after.name}:{after.broken} is not valid Rust after rewriting")
    if before.comments != after.comments or len(before.constants) != len(after.constants):
        raise RewriteDiffers(f"{after.name}: comments or constants were lost in rewriting")
    wanted = {place.literal: number for place, number in numbers.items()}
    for old, new in zip(before.constants, after.constants, strict=True):
        _compare_constant(after.name, old, new, wanted)


def _compare_constant(
    file: str, old: SourceConstant, new: SourceConstant, wanted: Mapping[literal.Literal, Number]
) -> None:
    olds, news = tuple(literals(old.value)), tuple(literals(new.value))
    # what an untouched block computes may hold constants of its own that are touched
    kept = not isinstance(old.value, Opaque) and not any(one in wanted for one in olds)
    expected = [wanted.get(one, one.number) for one in olds]
    same = (old.name, old.scope, old.type) == (new.name, new.scope, new.type)
    if not same or [n.number for n in news] != expected or (kept and old.text != new.text):
        raise RewriteDiffers(f"{file}: {old.name} reads back as {new.text!r} after rewriting")


def unified_patch(before: str, after: str, name: str) -> str:
    """A unified diff of the file `name` (relative to the tree); "" when nothing changed."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}", lineterm="\n")
    return "".join(_marked(lines))


def _lines(text: str) -> list[str]:
    """Lines with their ends. Not splitlines, which also splits at form feeds and the like."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
