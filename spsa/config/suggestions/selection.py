"""Which of all the numbers of an engine are suggested, and what the user reads about the others."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import PurePosixPath

from spsa.builds.sources import (
    ConstantRefused,
    Element,
    Kind,
    Opaque,
    SourceConstant,
    SourceFile,
    constant,
    parse_all,
    written,
)
from spsa.config.suggestions.declarations import (
    maker,
    makers_of,
    may_be_declaration,
    of_declaration,
)
from spsa.config.suggestions.functions import inside_functions
from spsa.config.suggestions.ranges import (
    MAX_NUMBERS,
    Suggested,
    fits,
    of_array,
    of_many,
    opposed,
)
from spsa.config.suggestions.ranking import (
    OF_CLOCK,
    Objection,
    are_signs,
    is_about_time,
    is_related,
    is_standard,
    objection_to_name,
    objection_to_scope,
    objection_to_use,
    rank_of_file,
    snake,
    words,
)
from spsa.core.params import Number

DEFAULT_CONSTANTS = "src/engine_constants.rs"

_MAX_PROPOSED = 1000
_MAX_NUMBER = 1e14  # what is larger cannot be counted in steps
_NUMBERED = Objection("numbered one after the other, as indexes and flags are")
_LENGTH = Objection("the length of an array")
_SIGNS = Objection("signs and directions")
_UNRELATED = Objection("neither the file nor the name speaks of search or evaluation")
_STANDARD = Objection("an option of the protocol, or of how the engine is run")
_NOT_DECLARED = Objection("the author declares the ranges of others", left_out=False)
_TOO_MANY = Objection(f"there are {_MAX_PROPOSED:,} parameters already", left_out=False)
_QUIET = ("a bool", "a character", "a string", "declared without a value", "nothing")

_Found = tuple[SourceConstant, Suggested]


@dataclass(frozen=True, slots=True)
class Selection:
    """What `init` writes: the suggestions in the order of params.toml, by their file or engine.

    `unusable` has the names of what holds no number that can be written, by the reason. `functions`
    are lines about the numbers inside functions, by file.
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


def select(texts: Mapping[str, str], constants_file: str | None = None) -> Selection:
    """Choose from all files, the likeliest first, or from `constants_file` alone."""
    files = parse_all(texts)
    lengths = frozenset(name for file in files.values() for name in file.lengths)
    named = constants_file is not None
    searched = {path: file for path, file in files.items() if constants_file in (None, path)}
    makers = makers_of(searched.values())
    found = {
        path: list(_of_file(file, lengths, makers, named=named)) for path, file in searched.items()
    }
    active = {path: sum(not one.reason for _, one in each) for path, each in found.items()}
    if sum(one.declared and not one.reason for each in found.values() for _, one in each) > 2:
        found = {path: [_after_declared(one) for one in each] for path, each in found.items()}
        active = {path: sum(not one.reason for _, one in each) for path, each in found.items()}
    ordered = sorted(found, key=lambda path: (-rank_of_file(path), -active[path], path))
    main = constants_file or _main(ordered, active)
    suggestions = _named(sorted(ordered, key=lambda path: path != main), found, main)
    functions = inside_functions({path: files[path] for path in suggestions}, main)
    return Selection(main, suggestions, functions, _unusable(searched))


def _after_declared(found: _Found) -> _Found:
    one, suggested = found
    told = suggested.declared or one.kind is Kind.MACRO
    return one, suggested if told else opposed(suggested, _NOT_DECLARED)


def _main(ordered: Sequence[str], active: Mapping[str, int]) -> str:
    if DEFAULT_CONSTANTS in active:
        return DEFAULT_CONSTANTS
    return max(ordered, key=lambda path: active[path], default=DEFAULT_CONSTANTS)


def _unusable(files: Mapping[str, SourceFile]) -> dict[str, list[str]]:
    unusable: dict[str, list[str]] = {}
    for file in files.values():
        if file.broken is not None:
            reason = "not valid Rust, by this parser"
            unusable.setdefault(reason, []).append(f"{file.name}:{file.broken}")
        for one in file.constants:
            value = one.single if one.kind is Kind.CONSTANT and not one.test_only else None
            if isinstance(value, Opaque) and value.what not in _QUIET:
                unusable.setdefault(value.what, []).append(one.name)
    return unusable


def _of_file(
    file: SourceFile, lengths: Collection[str], makers: Collection[str], *, named: bool
) -> Iterator[_Found]:
    """All the numbers of a file; one that a person named needs no rank."""
    rank = 1 if named else rank_of_file(file.name)
    of_clock = OF_CLOCK if is_about_time(file.name) and not named else None
    numbered = _numbered(file)
    for one in file.constants:
        objections = (
            _NUMBERED if id(one) in numbered else None,
            _LENGTH if one.name in lengths else None,
            _SIGNS if are_signs(one) else None,
            objection_to_name(_name(one)),
            objection_to_scope(one.scope),
            of_clock,
            None if is_related(one, rank) else _UNRELATED,
        )
        for suggested in _of_constant(file, one, makers):
            of_field = objection_to_name(_called(one, suggested))
            guessed = (*objections, of_field)
            told = _objections_to_declared(suggested) if suggested.declared else guessed
            group = _group(file.name, one)
            yield one, replace(reduce(opposed, told, suggested), group=group)


def _called(one: SourceConstant, suggested: Suggested) -> str:
    """The name with those of the fields that lead to one of its numbers."""
    place = suggested.keys.get("constant", "").rpartition("::")[2]
    return "_".join((_name(one), *re.findall(r"\.([^\W\d]\w*)", place)))


def _objections_to_declared(suggested: Suggested) -> tuple[Objection | None, ...]:
    """What its author declares may be tuned, but not an option that every engine has."""
    standard = _STANDARD if is_standard(suggested.name) else None
    return standard, objection_to_use(suggested.name)


def _numbered(file: SourceFile) -> set[int]:
    """The ids of constants that count up, or double, one after the other: indexes and flags."""
    found: set[int] = set()
    run: list[tuple[SourceConstant, Number]] = []
    for one in file.constants:
        if one.kind is not Kind.CONSTANT or not isinstance(one.single, Element):
            continue
        number = one.single.number
        if run and number - run[-1][1] not in (1, run[-1][1] or 1):
            run = []
        run.append((one, number))
        if len(run) >= (3 if run[0][1] in (0, 1) else 5):
            found.update(id(each) for each, _ in run)
    return found


def _of_constant(
    file: SourceFile, one: SourceConstant, makers: Collection[str]
) -> Iterator[Suggested]:
    """Parameters with the ranges that the author declared, else with guessed ones."""
    location = file.location_of(one)
    try:
        if one.test_only or not _is_settled(one) or constant(file, location) is not one:
            return
        found = written(file, location)
    except ConstantRefused:
        return  # ambiguous, or the file is no Rust: nothing to be tuned
    name, inside = snake(_name(one)), next(iter(found)).accesses
    numbers = {place: e for place, e in found.items() if isinstance(e, Element) and _is_usable(e)}
    declared = {
        place: e
        for place, e in numbers.items()
        if may_be_declaration(e) and maker(one, e) in makers
    }
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
        field = one.items[0].location.accesses[:1]
        struct = bool(field) and isinstance(field[0].position, str)
        return struct or isinstance(one.single, Element)
    return one.kind is not Kind.LOCAL


def _is_usable(element: Element) -> bool:
    return fits(element, element.number) and abs(element.number) <= _MAX_NUMBER


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
    """The suggestions with names of their own, and no more than can be tuned."""
    taken: set[str] = set()
    named: dict[str, tuple[Suggested, ...]] = {}
    active = 0
    for path in ordered:
        folders = [
            part for part in PurePosixPath(path).with_suffix("").parts if part.isidentifier()
        ]
        kept = []
        for one, suggested in found[path]:
            name = _free_name(suggested.name, (*folders, *one.scope, one.condition), taken)
            if not (name.isascii() and name.isidentifier()):
                continue  # as the names of parameters are
            taken |= set() if suggested.left_out else {name}
            active += not suggested.reason
            over = _TOO_MANY if active > _MAX_PROPOSED else None
            keys = _keys(suggested, name, "" if path == main else f"{path}::")
            kept.append(opposed(replace(suggested, name=name, keys=keys), over))
        named[path] = tuple(kept)
    return named


def _free_name(name: str, around: Sequence[str], taken: Collection[str]) -> str:
    named = [part for part in around if part]
    wider = ("_".join((*named[-n:], name)).lower() for n in range(1, len(named) + 1))
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *wider, *numbered) if each not in taken)


def _keys(one: Suggested, name: str, file: str) -> dict[str, str]:
    """Where it stands, without what its name says."""
    places = {key: one.keys[key] for key in ("constant", "array", "table") if key in one.keys}
    keys = {**{key: file + place for key, place in places.items()}}
    keys |= {key: text for key, text in one.keys.items() if key not in places}
    return {key: text for key, text in keys.items() if (key, text) != ("constant", name.upper())}
