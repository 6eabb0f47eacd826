"""Which numbers of an engine `init` suggests, and what the user reads about the others. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import PurePosixPath

from spsa.builds.sources.constant import ConstantRefused, Element, Kind, SourceConstant, SourceFile
from spsa.builds.sources.reading import parse_all
from spsa.builds.sources.rewriting import constant
from spsa.config.source import line_of
from spsa.config.suggestions import objections as against
from spsa.config.suggestions.evidence import Evidence, evidence_of
from spsa.config.suggestions.ranges import (
    Suggested,
    free_name,
    is_declared,
    makers_of,
    of_declaration,
    of_numbers,
    snake,
    suggest_options,
    with_bounds,
)
from spsa.core.parameter import Number

__all__ = ["Suggested", "Suggestions", "select", "suggest_options"]

DEFAULT_CONSTANTS = "src/engine_constants.rs"

_MAX_NUMBER = 1e14  # what is larger cannot be counted in steps
_MAX_IN_FUNCTIONS = 500
"""Numbers inside functions that are listed, of all files together."""
_FEW = 0.1
"""Of the numbers of a file; where so few have ranges, their author tunes the others as well."""
_LONGEST = 80
"""Characters of a line of source that are shown."""

_INDEX = re.compile(r"(\[|\.\d).*")
"""What stands behind the fields of a struct, of which each is a constant of its own."""

_Found = tuple[SourceConstant, Suggested]


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What `init` writes: the suggestions in the order of params.toml, by their file or engine.

    `functions` are lines about the numbers inside functions, by file: a search keeps many of its
    margins there, and only a person who reads the line can tell. `broken` are the places of what
    cannot be read.
    """

    constants_file: str
    suggestions: Mapping[str, tuple[Suggested, ...]]
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    broken: Sequence[str] = ()

    @property
    def active(self) -> int:
        """How many parameters are suggested to be tuned."""
        return sum(not one.reason for one in self._all)

    @property
    def commented_out(self) -> int:
        """How many parameters stand in the file as comments only."""
        return sum(one.reason in against.COMMENTED for one in self._all)

    @property
    def inside_functions(self) -> int:
        """How many numbers inside functions are listed."""
        return sum(map(len, self.functions.values()))

    @property
    def skipped(self) -> dict[str, list[str]]:
        """The names of all that is not suggested, by the reason."""
        skipped = (
            {"a whole file: not valid Rust, by this parser": [*self.broken]} if self.broken else {}
        )
        for one in self._all:
            if one.reason:
                skipped.setdefault(one.reason, []).append(one.name)
        return skipped

    @property
    def _all(self) -> Iterator[Suggested]:
        return (one for each in self.suggestions.values() for one in each)


def select(texts: Mapping[str, str]) -> Suggestions:
    """Choose from all files, the likeliest first."""
    files = with_bounds(parse_all(texts))
    told, evidence = against.told_by(files.values()), evidence_of(files.values())
    makers = makers_of(one for file in files.values() for one in file.constants)
    found = {path: [*_of_file(file, told, evidence, makers)] for path, file in files.items()}
    own = (each for each in found.values() if any(one.declared for _, one in each))
    told_of = [not _untold(*one, makers) for each in own for one in each if not one[1].reason]
    if sum(told_of) > max(2, _FEW * len(told_of)):
        for each in found.values():
            each[:] = [(one, s.opposed(_untold(one, s, makers))) for one, s in each]
    active = {path: sum(not one.reason for _, one in each) for path, each in found.items()}
    ranks = {path: against.rank_of_file(path) for path in found}
    ordered = sorted(found, key=lambda path: (-ranks[path], -active[path], path))
    main = DEFAULT_CONSTANTS
    if main not in active:
        main = max(ordered, key=lambda path: active[path], default=main)
    ordered.sort(key=lambda path: path != main)
    return Suggestions(
        main,
        _named(ordered, found, main),
        _inside_functions([files[path] for path in ordered if ranks[path] > 0], main),
        [f"{file.name}:{file.broken}" for file in files.values() if file.broken is not None],
    )


def _untold(one: SourceConstant, suggested: Suggested, makers: set[str]) -> str:
    """Why it is not suggested beside others, if its author does not show that it is to be tuned."""
    is_told = suggested.declared or any(e.maker in makers for e in one.numbers())
    return "" if is_told else against.NOT_DECLARED


def _of_file(
    file: SourceFile, told: against.Told, evidence: Evidence, makers: set[str]
) -> Iterator[_Found]:
    """All the numbers of a file."""
    rank, numbered = against.rank_of_file(file.name), _numbered(file)
    for one in file.constants:
        are_signs = not one.single and all(abs(e.number) in (0, 1) for e in one.numbers())
        guessed = (
            against.NUMBERED if id(one) in numbered else "",
            *told.against(one),
            against.to_coarse(one, _name(one)),
            against.SIGNS if are_signs else "",
            against.to_name(_name(one)),
        )
        for found in _of_constant(file, one, told, makers):
            named = against.to_name(found.name), evidence.lacks(one, found.name, rank)
            unread = evidence.unread(one) if found.declared else ""
            more = (unread,) if found.declared else (*guessed, *named)
            opposed = found.opposed(against.to_file(file.name), *more)
            yield one, replace(opposed, group=_group(file.name, one))


def _numbered(file: SourceFile) -> set[int]:
    """The ids of constants that count up or down, or double."""
    alone = [
        (id(one), one.single)
        for one in file.constants
        if one.kind is Kind.CONSTANT and isinstance(one.single, Element)
    ]
    found = set[int]()
    for factor, more in ((1, 1), (1, -1), (2, 0)):
        run: list[tuple[int, Number]] = []
        for one, element in alone:
            if run and element.number != factor * run[-1][1] + more:
                run = []
            run.append((one, element.number))
            first = run[0][1]
            least = 3 if first in (0, 1) or element.number == 0 else 4 if first > 10 else 6
            if len(run) >= (2 if 1000 <= first < 10_000 and more else least):
                found.update(each for each, _ in run)
    return found


def _of_constant(
    file: SourceFile, one: SourceConstant, told: against.Told, makers: set[str]
) -> Iterator[Suggested]:
    """Parameters with the ranges that the author declared, else with guessed ones."""
    if one.test_only or not _is_settled(one) or not _is_found(file, one):
        return
    location, name = file.location_of(one), _name(one)
    numbers = {
        replace(location, accesses=e.location.accesses): e for e in one.numbers() if _fits(file, e)
    }
    declared = {place: e for place, e in numbers.items() if is_declared(one, e, makers)}
    if declared:
        own = name if one.name in ("default", "new") else one.name
        for place, e in declared.items():
            left_out = against.LEFT_OUT if against.switch(file, e) in told.left_out else ""
            yield of_declaration(snake(own), place, e).opposed(left_out)
    elif numbers:
        for _, each in groupby(numbers.items(), key=lambda item: _INDEX.sub("", str(item[0]))):
            yield from of_numbers(snake(name), dict(each), computed=one.computed)


def _is_settled(one: SourceConstant) -> bool:
    """A value written out, or what a `const fn` computes: other numbers in functions are code."""
    if one.kind is Kind.FUNCTION:
        first = one.items[0].location.accesses
        struct = bool(first) and isinstance(first[0].position, str)
        return struct or isinstance(one.single, Element)
    return one.kind is not Kind.LOCAL


def _is_found(file: SourceFile, one: SourceConstant) -> bool:
    """Whether a location can name it among others of its name, in a file that can be read."""
    try:
        return constant(file, file.location_of(one)) is one
    except ConstantRefused:
        return False


def _fits(file: SourceFile, element: Element) -> bool:
    """Whether its type, as far as the file tells, can hold what it has, and no bits are counted."""
    near = file.content[max(0, element.start - 3) : element.start]
    bits = near.rstrip().endswith((b"<<", b">>"))
    low, high = element.limits or (-_MAX_NUMBER, _MAX_NUMBER)
    return low <= element.number <= high and abs(element.number) <= _MAX_NUMBER and not bits


def _name(one: SourceConstant) -> str:
    """What a constant's parameters are called; a `default` is named by its type."""
    if one.name in ("default", "new") and one.scope:
        return one.scope[-1]
    inner = one.kind is Kind.CONST_FUNCTION and one.single is None
    if one.scope and (inner or one.kind is Kind.MACRO):
        return f"{one.scope[-1]}_{one.name}"
    return one.name


def _group(path: str, one: SourceConstant) -> str:
    """What declares it: a class, a module, a function or a block of a macro; else its file."""
    file = PurePosixPath(path)
    named = file.parent.name if file.stem in ("lib", "main", "mod") else file.stem
    return "-".join(against.words(one.scope[-1] if one.scope else named)).lower()


def _named(
    ordered: Sequence[str], found: Mapping[str, Sequence[_Found]], main: str
) -> dict[str, tuple[Suggested, ...]]:
    """The suggestions with names of their own, and with the place that the name does not say."""
    taken: set[str] = set()
    named: dict[str, tuple[Suggested, ...]] = {}
    for path in ordered:
        parts = PurePosixPath(path).with_suffix("").parts
        folders = [part for part in parts if part.isidentifier()]
        kept = []
        for one, suggested in found[path]:
            name = free_name(suggested.name, (*folders, *one.scope), taken)
            if name.isascii() and name.isidentifier():  # as the names of parameters are
                taken |= set() if suggested.left_out else {name}
                place = ("" if path == main else f"{path}::") + suggested.keys["constant"]
                keys = {**suggested.keys, "constant": place}
                if place == name.upper():
                    del keys["constant"]
                kept.append(replace(suggested, name=name, keys=keys))
        named[path] = tuple(kept)
    return named


def _inside_functions(files: Iterable[SourceFile], main: str) -> dict[str, tuple[str, ...]]:
    """The lines that list the numbers inside functions, by file, in the order of the text.

    A location names its file unless that is `main`.
    """
    found = (
        (file.name, line)
        for file in files
        for line in _listed(file, None if file.name == main else file.name)
    )
    by_file = groupby(islice(found, _MAX_IN_FUNCTIONS), lambda item: item[0])
    return {path: tuple(line for _, line in each) for path, each in by_file}


def _listed(file: SourceFile, prefix: str | None) -> Iterator[str]:
    """Those that may be strengths; not what a unit, a position or a bit pattern is made of."""
    numbers = [
        replace(number, location=replace(file.location_of(one), accesses=number.location.accesses))
        for one in file.constants
        if one.kind in (Kind.FUNCTION, Kind.LOCAL) and not one.test_only and _is_found(file, one)
        for number in one.numbers()
        if not against.to_number(number, computed=True)
    ]
    for number in sorted(numbers, key=lambda number: number.start):
        row, source = line_of(file, number)
        shown = source if len(source) <= _LONGEST else f"{source[: _LONGEST - 3]}..."
        yield f"{replace(number.location, file=prefix)} = {number.text} in line {row}: {shown}"
