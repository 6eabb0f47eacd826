"""Which of all the numbers of an engine are suggested, and what the user reads about the others."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from spsa.builds.sources import Kind, Opaque, SourceFile, parse
from spsa.builds.sources.literal import ValueType
from spsa.config.suggestions.constants import Source, suggest_from
from spsa.config.suggestions.ranges import Suggested
from spsa.config.suggestions.ranking import (
    OF_CLOCK,
    Objection,
    is_about_time,
    rank_of_file,
    rank_of_name,
)
from spsa.config.suggestions.tables import opposed

DEFAULT_CONSTANTS = "src/engine_constants.rs"

_MAX_PROPOSED = 1000
_UNRELATED = Objection("neither the file nor the name speaks of search or evaluation")
_TOO_MANY = Objection(f"there are {_MAX_PROPOSED:,} parameters already", left_out=False)
_QUIET = ("a bool", "a character", "a string", "declared without a value", "nothing")


@dataclass(frozen=True, slots=True)
class Selection:
    """What `init` writes: the suggestions in the order of params.toml, by their file or engine.

    `unusable` has the names of what holds no number that can be written, by the reason.
    """

    constants_file: str
    suggestions: Mapping[str, tuple[Suggested, ...]]
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
    files = _parsed(texts)
    lengths = frozenset(name for file in files.values() for name in file.lengths)
    unusable: dict[str, list[str]] = {}
    chosen: dict[str, tuple[Suggested, ...]] = {}
    for path, file in files.items():
        if constants_file in (None, path):
            _note_unusable(file, unusable)
            named = constants_file is not None
            chosen[path] = tuple(_of_file(Source(file, lengths, path), path, named=named))
    ordered = sorted(chosen, key=lambda path: (-rank_of_file(path), -_active(chosen[path]), path))
    main = constants_file or _main(ordered, chosen)
    renamed = _renamed(sorted(ordered, key=lambda path: path != main), chosen)
    final = {path: tuple(_local(one, main) for one in each) for path, each in renamed.items()}
    return Selection(main, final, unusable)


def _parsed(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Every file, with the types of all of them: one file's alias is declared in another."""
    files = {path: parse(text, path) for path, text in texts.items()}
    meanings: dict[str, set[ValueType]] = {}
    for file in files.values():
        for name, kind in file.aliases.items():
            meanings.setdefault(name, set()).add(kind)
    known = {name: kinds.pop() for name, kinds in meanings.items() if len(kinds) == 1}
    return {path: replace(file, aliases=known | dict(file.aliases)) for path, file in files.items()}


def _note_unusable(file: SourceFile, unusable: dict[str, list[str]]) -> None:
    if file.broken is not None:
        reason = "not valid Rust, by this parser"
        unusable.setdefault(reason, []).append(f"{file.name}:{file.broken}")
    for one in file.constants:
        value = one.value if one.kind is Kind.CONSTANT and not one.test_only else None
        if isinstance(value, Opaque) and value.what not in _QUIET:
            unusable.setdefault(value.what, []).append(one.name)


def _of_file(source: Source, path: str, *, named: bool) -> Iterator[Suggested]:
    """A file that a person named needs no rank; what is no constant has to have both."""
    rank = 1 if named else rank_of_file(path)
    of_clock = is_about_time(path) and not named
    for one, suggested in suggest_from(source):
        least = 2 if one.kind in (Kind.CONST_FUNCTION, Kind.VARIABLE) else 1
        related = rank + rank_of_name("_".join((*one.scope, one.name))) >= least
        timed = suggested if suggested.reason or not of_clock else opposed(suggested, OF_CLOCK)
        yield timed if related else opposed(timed, _UNRELATED)


def _active(suggestions: Iterable[Suggested]) -> int:
    return sum(not one.reason for one in suggestions)


def _main(ordered: list[str], chosen: Mapping[str, tuple[Suggested, ...]]) -> str:
    if DEFAULT_CONSTANTS in chosen:
        return DEFAULT_CONSTANTS
    return max(ordered, key=lambda path: _active(chosen[path]), default=DEFAULT_CONSTANTS)


def _renamed(
    ordered: list[str], chosen: Mapping[str, tuple[Suggested, ...]]
) -> dict[str, tuple[Suggested, ...]]:
    """The suggestions with names that no two files share, and no more than can be tuned."""
    taken: set[str] = set()
    renamed: dict[str, tuple[Suggested, ...]] = {}
    active = 0
    for path in ordered:
        found = []
        for one in chosen[path]:
            name = one.name if one.left_out else _free_name(one.name, path, taken)
            taken.add(name)
            active += not one.reason
            kept = replace(one, name=name)
            found.append(opposed(kept, _TOO_MANY) if active > _MAX_PROPOSED else kept)
        renamed[path] = tuple(found)
    return renamed


def _free_name(name: str, path: str, taken: set[str]) -> str:
    folders = [part for part in PurePosixPath(path).with_suffix("").parts if part.isidentifier()]
    wider = ("_".join((*folders[-n:], name)).lower() for n in range(1, len(folders) + 1))
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *wider, *numbered) if each not in taken)


def _local(one: Suggested, main: str) -> Suggested:
    """Without the file's name for what stands in the constants file."""
    keys = {key: text.removeprefix(f"{main}::") for key, text in one.keys.items()}
    if keys.get("constant") == one.name.upper():
        del keys["constant"]
    return replace(one, keys=keys)
