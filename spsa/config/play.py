"""The tables of config.toml that decide how games are played."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from spsa.builds.git import fault_of, split
from spsa.config.document import Found, Key, nth
from spsa.config.section import (
    FilePath,
    OptionalPath,
    OptionalText,
    OrOff,
    Section,
    Text,
    Texts,
    even,
    located,
    refusal,
)
from spsa.core import game_settings as core
from spsa.core.json_values import from_json
from spsa.core.uci_options import CHESS960
from spsa.openings import BUILTIN, BUILTIN_BOOKS, NAME_A_BOOK

_TIMES, _COUNTS = {"timelow", "timehigh"}, {"low", "high"}
_KEYS = {
    core.TimeKind.MOVETIME: _TIMES,
    core.TimeKind.CLOCK: _TIMES | {"increment", "moves", "margin"},
    core.TimeKind.NODES: _COUNTS,
    core.TimeKind.DEPTH: _COUNTS,
}
"""The keys that go with each kind."""

Seconds = Annotated[float, Field(ge=core.MIN_SECONDS, le=core.MAX_SECONDS)]
Seconds0 = Annotated[float, Field(ge=0.0, le=core.MAX_SECONDS)]
Count = Annotated[int, Field(ge=1, le=core.MAX_NODES_TO_SEARCH)]


class TimeControlSection(Section):
    """What limits a move or a game."""

    kind: Annotated[core.TimeKind, Field(strict=False)] = core.TimeKind.MOVETIME
    """what limits a move"""
    timelow: Seconds = 0.25
    """seconds: a move (`movetime`), a side's whole game (`clock`)"""
    timehigh: Seconds = Field(default_factory=lambda data: max(data["timelow"], 1.0))
    """the same; by default 1, or `timelow` if that is more"""
    increment: Seconds0 = 0.0
    """seconds added after each move (`clock`)"""
    moves: Annotated[int | None, Field(ge=1, le=core.MAX_MOVES)] = None
    """moves after which the clock gets its time again (`clock`)"""
    margin: Seconds0 = 0.05
    """seconds by which an engine may exceed its clock (`clock`)"""
    low: Count | None = None
    """nodes or depth of a move, required by `nodes` and `depth`; a depth is 1,000 at most"""
    high: Count | None = None
    """the same; by default `low`"""

    @property
    def limits(self) -> core.TimeControl:
        low, high = self._range
        return core.TimeControl(
            kind=self.kind,
            low=low,
            high=high,
            increment=self.increment,
            margin=self.margin,
            moves=self.moves or 0,
        )

    @property
    def _range(self) -> tuple[float, float]:
        if _KEYS[self.kind] is not _COUNTS:
            return self.timelow, self.timehigh
        low = self.low or 1  # one that is missing is refused
        return low, self.high or low

    def faults(self) -> Iterator[Found]:
        known = set().union(*_KEYS.values())
        for key in sorted(self.model_fields_set & known - _KEYS[self.kind]):
            needs = " or ".join(f'"{kind}"' for kind, keys in _KEYS.items() if key in keys)
            yield (key,), f'{key} does not go with kind = "{self.kind}"', f"it needs kind = {needs}"
        is_counted, (low, high) = _KEYS[self.kind] is _COUNTS, self._range
        prefix = "" if is_counted else "time"
        if is_counted and self.low is None:
            yield ("low",), "low is missing", "give it a whole number: low = 5000, say"
        elif low > high:
            found = f"{prefix}low {low:g} is more than {prefix}high {high:g}"
            yield (f"{prefix}low",), found, "exchange them"
        if self.kind is core.TimeKind.DEPTH and high > core.MAX_DEPTH:
            key = "low" if self.high is None else "high"
            yield (key,), f"{key} = {high} is too large", f"use at most {core.MAX_DEPTH}"


class SharedTimeControlSection(TimeControlSection):
    """What limits a move or a game."""

    share: Annotated[float, Field(ge=0.001, le=1000.0)] = 1.0
    """of several: their games are in proportion to it"""
    weight: Annotated[float | None, Field(ge=0.001, le=1000.0)] = None
    """of several: what a pair counts for the rule; by default as much as it teaches"""


MAX_TIME_CONTROLS = 8


def _array(written: object) -> object:
    """One table is an array of one."""
    several = written if isinstance(written, list | tuple) else [written]
    if not 1 <= len(several) <= MAX_TIME_CONTROLS:
        found, most = f"there are {len(several)} time controls", MAX_TIME_CONTROLS
        raise refusal(found, f"write at least one table and at most {most}")
    return several


TimeControls = Annotated[
    tuple[SharedTimeControlSection, ...], Field(strict=False), BeforeValidator(_array)
]


def _book(name: str, info: ValidationInfo) -> str:
    """The name of a built-in book, or the absolute path of a file."""
    if name in BUILTIN_BOOKS:
        return name
    path = located(name, info)
    if path is None:
        raise refusal("{given} names no file", NAME_A_BOOK)
    return str(path)


_MOST_GAMES = 1_000_000
Games = Annotated[int, Field(ge=2, le=_MOST_GAMES), AfterValidator(even)]


class GamesSection(Section):
    """How games are divided into iterations and batches, and where they start."""

    games_per_iteration: Games = 150
    """even: games come in pairs, colours swapped; the default is rounded up to fit the shares"""
    batch_size: Games = Field(default_factory=lambda data: min(10, data["games_per_iteration"]))
    """even: games that a slot claims at a time; by default 10, or `games_per_iteration` if less"""
    iterations_in_flight: Annotated[int, Field(ge=1, le=1000)] | Literal["auto"] = "auto"
    """iterations open at a time; `"auto"`: as many as keep all workers busy"""
    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    """machines that may fail a batch before the run pauses"""
    book: Annotated[str, AfterValidator(_book)] = BUILTIN
    """`"builtin"`, `"builtin:unbalanced"`, or the path of an EPD, FEN or PGN file, also in a zip"""
    chess960: bool = False
    """the positions of the book and their games are of Chess960"""
    plies: Annotated[int | None, Field(ge=1, le=core.MAX_PLIES)] = None
    """how far into each game of a PGN book to play"""
    target_nps: Annotated[int | None, Field(ge=1, le=core.MAX_NPS)] = None
    """machines multiply times to search as many nodes as one with this many a second, per slot"""

    def faults(self) -> Iterator[Found]:
        size, most = self.batch_size, self.games_per_iteration
        if size > most:
            found = f"batch_size {size} is more than games_per_iteration {most}"
            yield ("batch_size",), found, f"use at most {most}"
        if self.chess960 and self.book in BUILTIN_BOOKS:
            found = "the built-in books have no positions of Chess960"
            yield ("chess960",), found, 'name a file of Chess960 positions: book = "..."'


def time_control_faults(
    several: Sequence[SharedTimeControlSection], games: GamesSection | None
) -> Iterator[Found]:
    """What is wrong between them, by paths that begin at the file; `games` if those are right."""
    at: list[Key] = [("time_control", nth(i)) for i in range(len(several))]
    limits = [one.limits for one in several]
    for i, same in enumerate(limits):
        if same in limits[:i]:
            yield at[i], f"{same} is there twice", "remove one, and give the other its share"
    weighed = [one.weight is not None for one in several]
    if any(weighed) and not all(weighed):
        found = "weight is missing, and another time control has one"
        yield at[weighed.index(False)], found, "give all a weight, or none"
    if games is not None:
        wrote = "games_per_iteration" in games.model_fields_set
        place: Key = ("games", "games_per_iteration") if wrote else at[0]
        shares, written = [one.share for one in several], games.games_per_iteration
        most = written if wrote else _MOST_GAMES  # a default is rounded up
        if core.divided_by_shares(written, shares) > most:
            whole = core.divided_by_shares(1, shares)
            found = (
                f"games_per_iteration = {written} cannot be divided by the shares in whole pairs"
            )
            yield place, found, f"use a multiple of {whole} in [games], or other shares, as 1 and 2"


def _option(name: str) -> str:
    if name.lower() == CHESS960.lower():
        remedy = "remove it, and write chess960 = true in [games] to play Chess960"
        raise refusal("{key} follows chess960 of [games]", remedy)
    return name


def _option_value(value: object) -> object:
    """Numbers and booleans as UCI sends them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


OptionName = Annotated[Text, AfterValidator(_option)]


class EngineSection(Section):
    """How both engines are started."""

    source: OptionalText = None
    """ADDRESS[@REF] of its repository, in which `source_path` is then a folder, by default `.`"""
    arguments: Texts = ()
    """arguments that both engines are started with"""
    options: dict[OptionName, Annotated[Text, BeforeValidator(_option_value)]] = Field(
        default_factory=dict
    )
    """UCI options that both engines get, as `Hash = 16`"""
    files: dict[OptionName, FilePath] = Field(default_factory=dict)
    """UCI options that take the path of a file"""

    def faults(self) -> Iterator[Found]:
        if self.source is not None and (told := fault_of(*split(self.source))):
            yield ("source",), *told
        for name in self.files.keys() & self.options.keys():
            found = f"{name} is in [engine.options] too"
            yield ("files", name), found, "keep it in [engine.files], which sends its path"


_DRAW, _RESIGN = core.DrawRule(), core.ResignRule()
InARow = Annotated[int, Field(ge=1, le=core.MAX_IN_A_ROW)]


class DrawSection(Section):
    """A draw, when the scores of both engines stay this close to zero."""

    move_number: Annotated[int, Field(ge=0, le=core.MAX_MOVES)] = _DRAW.move_number
    """first full move that counts"""
    count: InARow = _DRAW.count
    """consecutive moves of each side"""
    score: Annotated[int, Field(ge=0, le=core.MAX_SCORE)] = _DRAW.score
    """centipawns"""


class ResignSection(Section):
    """A win, when both engines agree on the winner."""

    count: InARow = _RESIGN.count
    """consecutive moves of each side"""
    score: Annotated[int, Field(ge=1, le=core.MAX_SCORE)] = _RESIGN.score
    """centipawns"""


class SyzygySection(Section):
    """Tables that decide a game."""

    pieces: Annotated[int, Field(ge=core.MIN_PIECES, le=core.MAX_PIECES)]
    """pieces on the board, kings included"""
    folder: OptionalPath = None
    """where machines find the tables, unless their command line names another"""


class AdjudicationSection(Section):
    """When a game ends before the rules of chess end it."""

    max_moves: Annotated[Annotated[int, Field(ge=1, le=core.MAX_MOVES)] | None, OrOff] = (
        core.Adjudication().max_moves
    )
    """full moves after which a game is a draw; `false` switches it off"""
    draw: Annotated[DrawSection | None, OrOff] = DrawSection()
    resign: Annotated[ResignSection | None, OrOff] = ResignSection()
    syzygy: Annotated[SyzygySection | None, OrOff] = None

    @property
    def rules(self) -> core.Adjudication:
        rules = self.model_dump(mode="json")
        if self.syzygy is not None and self.syzygy.folder is None:
            rules["syzygy"]["folder"] = ""
        return from_json(core.Adjudication, rules)
