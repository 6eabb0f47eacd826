"""The terms a game is played under: what every box must agree on, and therefore is in the row.

Pure values with an exact JSON form; who reads them from files or plays by them is elsewhere.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self

from spsa.core.stored_json import as_written, built


class TimeKind(StrEnum):
    MOVETIME = "movetime"
    CLOCK = "clock"
    NODES = "nodes"
    DEPTH = "depth"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControl:
    """What an engine gets for a move or a game.

    One value is drawn uniformly from [low, high] per game pair and holds for both engines and both
    games. Units of low and high: seconds per move (`movetime`), seconds per side and game (`clock`,
    with `increment` seconds a move), nodes or plies of depth per move (`nodes`, `depth`).
    `margin` is the number of seconds by which a clock may be overstepped without losing. A clock
    gets its seconds again after every `moves` moves of its side; 0 is once, for the whole game.
    """

    kind: TimeKind = TimeKind.MOVETIME
    low: float
    high: float
    increment: float = 0.0
    margin: float = 0.05
    moves: int = 0

    @property
    def reproducible(self) -> bool:
        """Whether equal binaries, seeds and openings give equal games on any machine."""
        return self.kind in (TimeKind.NODES, TimeKind.DEPTH)


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
    """Resign when both engines agree for `count` consecutive moves each on `score` centipawns."""

    count: int = 3
    score: int = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjudication:
    """When a game ends before the rules of chess end it; None is off.

    `max_moves` full moves make a draw.
    """

    draw: DrawRule | None = field(default_factory=DrawRule)
    resign: ResignRule | None = field(default_factory=ResignRule)
    max_moves: int | None = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Which openings are played: a name every box can resolve, and the hash they must agree on.

    `name` is "builtin" or a path; `sha256` is that of the file's bytes; `plies` limits PGN lines.
    """

    name: str = "builtin"
    sha256: str = ""
    plies: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Everything that decides a game besides the two engines, the seed and the opening's number."""

    time_control: TimeControl
    adjudication: Adjudication = field(default_factory=Adjudication)
    book: Book = field(default_factory=Book)
    engine_options: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `to_json` gave; UnusableState where it is anything else."""
        with as_written("a column `terms`"):
            adjudication = dict(data["adjudication"])
            time_control = dict(data["time_control"])
            kind = TimeKind(time_control.pop("kind"))
            draw, resign = adjudication.pop("draw"), adjudication.pop("resign")
            return cls(
                time_control=built(TimeControl, time_control, kind=kind),
                adjudication=built(
                    Adjudication,
                    adjudication,
                    draw=None if draw is None else built(DrawRule, draw),
                    resign=None if resign is None else built(ResignRule, resign),
                ),
                book=built(Book, data["book"]),
                engine_options=dict(data["engine_options"]),
            )
