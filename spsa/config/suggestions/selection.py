"""Which numbers of an engine are suggested, and what the user reads about the others. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from spsa.builds.sources.constant import Element, Kind, SourceConstant, SourceFile
from spsa.builds.sources.reading import parse_all
from spsa.config.suggestions.declared import is_declared, makers_of, of_declaration
from spsa.config.suggestions.functions import inside_functions, is_found
from spsa.config.suggestions.objections import (
    NOT_DECLARED,
    Objection,
    free_name,
    is_related,
    rank_of_file,
    snake,
    to_declared,
    to_file,
    to_name,
    to_scope,
    words,
)
from spsa.config.suggestions.ranges import MAX_NUMBERS, Suggested, fits, of_array, of_many
from spsa.core.params import Number

DEFAULT_CONSTANTS = "src/engine_constants.rs"

_MAX_NUMBER = 1e14  # what is larger cannot be counted in steps
_NUMBERED = Objection("numbered one after the other, as indexes and flags are")
_LENGTH = Objection("the length of an array")
_INDEX = Objection("an index of an array")
_SUBSCRIPT = re.compile(r"\[\s*(?:\w+(?:::|\.))*([A-Za-z_]\w*)\s*\]")
_SIGNS = Objection("signs and directions")
_UNRELATED = Objection("neither the file nor the name speaks of search or evaluation")

_Found = tuple[SourceConstant, Suggested]
_Run = list[tuple[SourceConstant, Number]]


@dataclass(frozen=True, slots=True)
class Selection:
    """What `init` writes: the suggestions in the order of params.toml, by their file or engine.

    `functions` are lines about the numbers inside functions, by file. `unusable` has the
    places of what cannot be read, by the reason.
    """

    constants_file: str
    suggestions: Mapping[str, tuple[Suggested, ...]]
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unusable: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def active(self) -> int:
        """How many parameters are suggested to be tuned."""
        return sum(not one.reason for one in self._all)

    @property
    def commented_out(self) -> int:
        """How many parameters stand in the file as comments only."""
        return sum(bool(one.reason) and not one.left_out for one in self._all)

    @property
    def skipped(self) -> dict[str, list[str]]:
        """The names of all that is not suggested, by the reason."""
        skipped = {reason: list(names) for reason, names in self.unusable.items()}
        for one in self._all:
            if one.reason:
                skipped.setdefault(one.reason, []).append(one.name)
        return skipped

    @property
    def _all(self) -> Iterator[Suggested]:
        return (one for each in self.suggestions.values() for one in each)


def select(texts: Mapping[str, str]) -> Selection:
    """Choose from all files, the likeliest first."""
    files = parse_all(texts)
    lengths = frozenset(name for file in files.values() for name in file.lengths)
    makers = makers_of(one for file in files.values() for one in file.constants)
    indexes = (name for text in texts.values() for name in _SUBSCRIPT.findall(text))
    uses = dict.fromkeys(indexes, _INDEX) | dict.fromkeys(lengths, _LENGTH)
    found = {path: [*_of_file(file, uses, makers)] for path, file in files.items()}
    each = [one for several in found.values() for _, one in several]
    if sum(one.declared and not one.reason for one in each) > 2:
        found = {
            path: [_after_declared(*one) for one in several] for path, several in found.items()
        }
    active = {path: sum(not one.reason for _, one in several) for path, several in found.items()}
    ordered = sorted(found, key=lambda path: (-rank_of_file(path), -active[path], path))
    main = DEFAULT_CONSTANTS
    if main not in active:
        main = max(ordered, key=lambda path: active[path], default=main)
    ordered.sort(key=lambda path: path != main)
    return Selection(
        main,
        _named(ordered, found, main),
        inside_functions({path: files[path] for path in ordered}, main),
        _unusable(files),
    )


def _after_declared(one: SourceConstant, suggested: Suggested) -> _Found:
    is_told = suggested.declared or one.kind is Kind.MACRO
    return one, suggested if is_told else suggested.opposed([NOT_DECLARED])


def _unusable(files: Mapping[str, SourceFile]) -> dict[str, list[str]]:
    broken = [f"{file.name}:{file.broken}" for file in files.values() if file.broken is not None]
    return {"not valid Rust, by this parser": broken} if broken else {}


def _of_file(file: SourceFile, uses: Mapping[str, Objection], makers: set[str]) -> Iterator[_Found]:
    """All the numbers of a file."""
    rank = rank_of_file(file.name)
    numbered = _numbered(file)
    for one in file.constants:
        guessed = (
            _NUMBERED if id(one) in numbered else None,
            uses.get(one.name),
            _SIGNS if _are_signs(one) else None,
            to_name(_name(one)),
            to_scope(one.scope),
            to_file(file.name),
            None if is_related(one, rank) else _UNRELATED,
        )
        for suggested in _of_constant(file, one, makers):
            declared = to_declared(suggested.name) if suggested.declared else None
            told = (
                (declared,) if suggested.declared else (*guessed, to_name(_called(one, suggested)))
            )
            yield one, replace(suggested.opposed(told), group=_group(file.name, one))


def _are_signs(one: SourceConstant) -> bool:
    """Whether it is a list of 1 and -1, such as the directions of the sides."""
    return not one.single and all(abs(e.number) in (0, 1) for e in one.numbers())


def _called(one: SourceConstant, suggested: Suggested) -> str:
    """The name with those of the fields that lead to one of its numbers."""
    place = suggested.keys.get("constant", "").rpartition("::")[2]
    return "_".join((_name(one), *re.findall(r"\.([^\W\d]\w*)", place)))


def _numbered(file: SourceFile) -> set[int]:
    """The ids of constants that count up, or double, one after the other: indexes and flags."""
    found: set[int] = set()
    run: _Run = []
    for one in file.constants:
        if one.kind is not Kind.CONSTANT or not isinstance(one.single, Element):
            continue
        number = one.single.number
        if run and number - run[-1][1] not in _next_steps(run):
            run = []
        run.append((one, number))
        if len(run) >= _few(run):
            found.update(id(each) for each, _ in run)
    return found


def _next_steps(run: _Run) -> tuple[Number, ...]:
    """By what the next number of a run may differ: it counts up, doubles, or counts down."""
    last = run[-1][1]
    if len(run) == 1:
        return (1, -1, last or 1)
    step = last - run[-2][1]
    return (step,) if step == -1 else (1, last or 1)


def _few(run: _Run) -> int:
    """How many numbers make a run that hardly comes by chance."""
    if len(run) > 1 and run[1][1] < run[0][1]:
        return 4 if run[0][1] > 10 else 6
    return 3 if run[0][1] in (0, 1) else 5


def _of_constant(file: SourceFile, one: SourceConstant, makers: set[str]) -> Iterator[Suggested]:
    """Parameters with the ranges that the author declared, else with guessed ones."""
    location = file.location_of(one)
    if one.test_only or not _is_settled(one) or not is_found(file, one):
        return
    found = {replace(location, accesses=item.location.accesses): item for item in one.items}
    name, inside = snake(_name(one)), next(iter(found)).accesses
    numbers = {
        place: e
        for place, e in found.items()
        if isinstance(e, Element) and fits(e, e.number) and abs(e.number) <= _MAX_NUMBER
    }
    declared = {place: e for place, e in numbers.items() if is_declared(one, e, makers)}
    if declared:
        own = one.scope[-1] if one.name in ("default", "new") and one.scope else one.name
        yield from (of_declaration(snake(own), place, e) for place, e in declared.items())
    elif not numbers or (len(numbers) > MAX_NUMBERS and len(numbers) < len(found)):
        return
    elif inside and not inside[0].field and len(numbers) == len(found):
        yield from of_array(name, location, numbers)
    else:
        yield from of_many(name, numbers, computed=one.computed)


def _is_settled(one: SourceConstant) -> bool:
    """A value written out, or what a `const fn` computes: other numbers in functions are code."""
    if one.kind is Kind.FUNCTION:
        first = one.items[0].location.accesses[:1]
        struct = bool(first) and isinstance(first[0].position, str)
        return struct or isinstance(one.single, Element)
    return one.kind is not Kind.LOCAL


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
    return "-".join(words(one.scope[-1] if one.scope else named)).lower()


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
            name = free_name(suggested.name, (*folders, *one.scope, one.condition), taken)
            if name.isascii() and name.isidentifier():  # as the names of parameters are
                taken |= set() if suggested.left_out else {name}
                keys = _keys(suggested, name, "" if path == main else f"{path}::")
                kept.append(replace(suggested, name=name, keys=keys))
        named[path] = tuple(kept)
    return named


def _keys(one: Suggested, name: str, file: str) -> dict[str, str]:
    """Where it stands, without what its name says."""
    keys = {
        key: file + text if key in ("constant", "array", "table") else text
        for key, text in one.keys.items()
    }
    return {key: text for key, text in keys.items() if (key, text) != ("constant", name.upper())}
