"""Game settings: everything on which all machines must agree, so it is in the iteration's row.

With several time controls their games are divided in whole pairs, exactly where these allow it, and
elsewhere, as in a small round of a validation, right in the mean; the seed decides who plays which.

Here are the limits, too. The whole numbers that engines print are read within bounds: an engine may
print 5,000 digits, which `int` refuses. A count outside its range is ignored, because a clamped one
would enter speeds and sums as if it were real. A score outside its range is clamped, because it
still shows which side is winning.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate, pairwise
from math import gcd, lcm
from typing import Annotated, Self

from spsa.core import derived_seed
from spsa.core.json_values import Range

MAX_NODES = 2**48  # of one move: at 10^9 nodes a second that takes 78 hours
MAX_NPS = 10**12  # nodes a second
MAX_SCALE = 1_000  # the greatest factor of a machine's times
MAX_HANDICAP = 1_000
MIN_PIECES, MAX_PIECES = 3, 7  # of a Syzygy table
# Of one side in a batch or match; larger sums stay at this value. Plus and minus together, and sums
# over a thousand batches, fit a 64-bit column, and JSON readers represent the number exactly.
MAX_NODES_OF_BATCH = 2**53 - 1
MAX_DEPTH = 1_000  # plies of one search; engines stop at 128 to 255
MATE = 100_000  # centipawns of a mate; a mate in n moves is worth n less
MAX_MATE = 999  # moves to a mate; more count as this many
MAX_SCORE = MATE - MAX_MATE - 1  # centipawns of a score that is not a mate
MAX_OPTION = 2**63  # the least and the greatest value of a spin option lie within this
MIN_SECONDS = 0.001  # of a move or a clock: the unit of UCI
MAX_SECONDS = 86_400.0  # of a move, a clock, an increment or a margin
MAX_NODES_TO_SEARCH = 10**12
MAX_MOVES = 10_000  # full moves of a game; the longest possible one has fewer than 6,000
MAX_IN_A_ROW = 1_000  # consecutive moves of an adjudication rule
MAX_PLIES = 1_000  # of an opening
MAX_OPTION_LENGTH = 10_000  # characters of the name or value of an engine's option
MAX_NELO = 200.0  # normalised Elo of a hypothesis; from about 230 on no distribution has so much
MIN_NELO_APART = 0.01  # between two hypotheses; a test with less would never end

_FINEST_SHARE = 10_000  # a share is read as a fraction with at most this denominator: 0.3 is 3/10
_DIGITS = 19  # of 2**63; a number with more digits is larger
_NUMBER = r"(\d{1,9}(?:\.\d*)?|\.\d+)"
_CLOCK = re.compile(rf"(?:(\d{{1,4}})/)?{_NUMBER}(?:\+{_NUMBER})?", re.ASCII)


class TimeKind(StrEnum):
    MOVETIME = "movetime"
    CLOCK = "clock"
    NODES = "nodes"
    DEPTH = "depth"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControl:
    """The limit of a move or a game.

    One value is drawn uniformly from [low, high] per game pair; both engines get it in both games.
    Units of low and high: seconds per move (`movetime`), seconds per side and game (`clock`, with
    `increment` seconds a move), nodes or plies of depth per move (`nodes`, `depth`). `margin` is
    the number of seconds by which an engine may exceed its clock without losing. A clock gets its
    seconds again after every `moves` moves of its side; with 0 they are for the whole game.
    """

    kind: TimeKind = TimeKind.MOVETIME
    low: float
    high: float
    increment: float = 0.0
    margin: float = 0.05
    moves: int = 0

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `10+0.1`, `40/60+0.6`, `movetime=0.5`, `nodes=5000` or `depth=8`.

        Raises ValueError for anything else, and for numbers outside the limits.
        """
        kind, equals, number = text.partition("=")
        if not equals:
            return cls._clock(text)
        if kind == TimeKind.MOVETIME and MIN_SECONDS <= float(number) <= MAX_SECONDS:
            return cls(kind=TimeKind.MOVETIME, low=float(number), high=float(number))
        most = {TimeKind.NODES: MAX_NODES_TO_SEARCH, TimeKind.DEPTH: MAX_DEPTH}
        if kind in most and 1 <= int(number) <= most[TimeKind(kind)]:
            return cls(kind=TimeKind(kind), low=int(number), high=int(number))
        raise ValueError(text)

    @classmethod
    def _clock(cls, text: str) -> Self:
        found = _CLOCK.fullmatch(text)
        if found is None:
            raise ValueError(text)
        moves, base, increment = (float(part or 0) for part in found.groups())
        if not MIN_SECONDS <= base <= MAX_SECONDS >= increment or (found[1] and not moves):
            raise ValueError(text)
        return cls(kind=TimeKind.CLOCK, low=base, high=base, increment=increment, moves=int(moves))

    def __str__(self) -> str:
        drawn = f"{self.low:g}" if self.low == self.high else f"{self.low:g}-{self.high:g}"
        if self.kind is not TimeKind.CLOCK:
            return f"{self.kind}={drawn}"
        return f"{f'{self.moves}/' if self.moves else ''}{drawn}+{self.increment:g}"

    def scaled(self, factor: float) -> "TimeControl":
        """Its times multiplied by `factor`. The margin stays, and so do nodes and depth."""
        if self.reproducible:
            return self
        times = {name: factor * getattr(self, name) for name in ("low", "high", "increment")}
        return replace(self, **times)

    @property
    def reproducible(self) -> bool:
        """Whether equal binaries, seeds and openings give equal games on any machine."""
        return self.kind in (TimeKind.NODES, TimeKind.DEPTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControlShare:
    """One of several time controls of a run.

    Its games are in proportion to `share`. `weight` is what a pair of it counts for the rule,
    relative to those of the others; None: as much as it teaches.
    """

    time_control: TimeControl
    share: float = 1.0
    weight: float | None = None

    def __str__(self) -> str:
        weight = "" if self.weight is None else f", weight {self.weight:g}"
        return f"{self.time_control}, share {self.share:g}{weight}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRule:
    """Draw when both engines' scores stay within `score` centipawns.

    It takes `count` consecutive moves of each side, none of them before full move `move_number`.
    """

    move_number: int = 34
    count: int = 8
    score: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ResignRule:
    """Resign when both engines agree on `score` centipawns for `count` consecutive moves each."""

    count: int = 3
    score: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class TablebaseRule:
    """A game ends as Syzygy tables say, when a capture or a pawn move has left few enough pieces.

    `pieces` counts the kings too. A win that takes too long under the fifty-move rule is a draw.
    `folder` is where machines find the tables that name no other.
    """

    pieces: int
    folder: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """When a game ends before the rules of chess end it; None switches a rule off.

    After `max_moves` full moves a game is a draw.
    """

    draw: DrawRule | None = field(default_factory=DrawRule)
    resign: ResignRule | None = field(default_factory=ResignRule)
    max_moves: int | None = 200
    syzygy: TablebaseRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Times are multiplied, so that every machine searches as many nodes as the target machine.

    The factor, called the scale of a machine, is `target_nps` over the machine's own nodes a
    second, those of one engine while all slots are busy. A machine whose scale is less than `least`
    or more than `most` does not play.
    """

    target_nps: int
    least: float = 0.25
    most: float = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The opening book: a name that every machine can resolve, and the hash of its content.

    `name` is "builtin" or a path; `sha256` is that of the file's bytes; `plies` limits PGN lines.
    With `chess960`, its positions and the games from them are of Chess960.
    """

    name: str = "builtin"
    sha256: str = ""
    plies: int | None = None
    chess960: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedFile:
    """A binary, or a file that engines load: a path, and the hash of the bytes there, if known."""

    path: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MinusSettings:
    """How minus plays by other settings than plus.

    Its times, nodes or depth are divided by `handicap`. A `foreign` engine is another program: of
    arguments, options and files it gets only the options of its own row.
    """

    handicap: Annotated[float, Range(1, MAX_HANDICAP)] = 1.0
    foreign: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSettings:
    """The game settings: all that decides a game besides the engines, the seed and the opening.

    Both engines are started with `engine_arguments`. `engine_files` are by the options that take
    their paths. Where there are several time controls, `time_controls` has all of them, and
    `time_control` is the first; a claim has those of its own batch alone. `minus` is None where
    both sides play by the same.
    """

    time_control: TimeControl
    adjudication: Adjudication = field(default_factory=Adjudication)
    book: Book = field(default_factory=Book)
    engine_options: Mapping[str, str] = field(default_factory=dict)
    engine_arguments: tuple[str, ...] = ()
    engine_files: Mapping[str, HashedFile] = field(default_factory=dict)
    scale: Scale | None = None
    minus: MinusSettings | None = None
    time_controls: tuple[TimeControlShare, ...] = ()

    @property
    def handicap(self) -> float:
        """By what the times, nodes or depth of minus are divided."""
        return 1.0 if self.minus is None else self.minus.handicap

    @property
    def has_foreign(self) -> bool:
        """Whether minus is another program than plus."""
        return self.minus is not None and self.minus.foreign

    @property
    def played(self) -> tuple[TimeControl, ...]:
        """All its time controls, also if that is one."""
        return tuple(one.time_control for one in self.time_controls) or (self.time_control,)

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each of them."""
        return tuple(one.share for one in self.time_controls) or (1.0,)

    @property
    def weights(self) -> tuple[float | None, ...]:
        """The weights of several time controls; none of a single one."""
        return tuple(one.weight for one in self.time_controls)

    @property
    def limits(self) -> str:
        """`10+0.1`; of several time controls `10+0.1 and 60+0.6`."""
        return " and ".join(map(str, self.played))

    def plays_as(self, other: "GameSettings") -> bool:
        """Whether both have the same time controls, and as many games of each."""
        return (self.played, self.shares) == (other.played, other.shares)

    def under(self, time_control: TimeControl) -> "GameSettings":
        """The same under one time control."""
        return replace(self, time_control=time_control, time_controls=())

    @property
    def common_options(self) -> dict[str, str]:
        """What both engines are sent on the machine that has the files at these paths."""
        files = {option: file.path for option, file in self.engine_files.items()}
        return {**self.engine_options, **files}


def clamped(text: str | bytes, most: int) -> int:
    """The number of an optional `-` and ASCII digits, clamped to -most .. most."""
    word = text.decode("ascii") if isinstance(text, bytes) else text
    sign, digits = (-1, word[1:]) if word.startswith("-") else (1, word)
    digits = digits.lstrip("0") or "0"
    return sign * (most if len(digits) > _DIGITS else min(int(digits), most))


def counted(text: str | bytes, most: int) -> int | None:
    """The number of ASCII digits; None if it is greater than `most`."""
    number = clamped(text, most + 1)
    return number if number <= most else None


def whole_parts(shares: Sequence[float]) -> tuple[int, ...]:
    """The smallest whole numbers with the ratios of these shares; at least 1 each."""
    fractions = [Fraction(share).limit_denominator(_FINEST_SHARE) for share in shares]
    common = lcm(*(one.denominator for one in fractions))
    parts = [max(1, int(one * common)) for one in fractions]
    return tuple(part // gcd(*parts) for part in parts)


def divided_by_shares(games: int, shares: Sequence[float]) -> int:
    """These games, or as few more as the shares divide in whole pairs."""
    whole = 2 * sum(whole_parts(shares))
    return -(-games // whole) * whole


def games_by_share(games: int, shares: Sequence[float], seed: int) -> list[int]:
    """How many of these games each time control gets: even numbers that add up to `games`.

    They are exact if `games` is a multiple of twice the sum of the whole parts; otherwise the seed
    decides who gets the pairs that are left.
    """
    parts = whole_parts(shares)
    whole = sum(parts)
    chance = derived_seed(seed, "left") % whole
    ends = ((games // 2 * end + chance) // whole for end in accumulate(parts, initial=0))
    return [2 * (after - before) for before, after in pairwise(ends)]


def assigned(
    batches: Sequence[int], shares: Sequence[float], seed: int
) -> Iterator[tuple[int, int]]:
    """The games of each batch, and the number of its time control from 0.

    The time controls come in a random order that the seed decides. A batch is cut in two where its
    time control has fewer games left.
    """
    left = games_by_share(sum(batches), shares, seed)
    waiting, drawn = deque(batches), 0
    while waiting:
        games, chosen = waiting.popleft(), _drawn(left, derived_seed(seed, drawn))
        played = min(games, left[chosen])
        left[chosen], drawn = left[chosen] - played, drawn + 1
        if played < games:
            waiting.appendleft(games - played)
        yield played, chosen


def _drawn(left: Sequence[int], chance: int) -> int:
    """One of them, each with a probability in proportion to what it has left."""
    at = chance % sum(left)
    return next(number for number, end in enumerate(accumulate(left)) if at < end)
