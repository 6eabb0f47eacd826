"""Who may think how long: the `go` line and the deadline of every move, and whose flag falls.

The clock is the runner's and runs from writing `go` to having read `bestmove`.
"""

from typing import Protocol

from chess import BLACK, WHITE, Color

from spsa.core.game_settings import TimeControl, TimeKind
from worker.uci.engine import Limit, UciTimeouts


class GameClock(Protocol):
    """The time of one game."""

    def limit(self, side: Color) -> Limit: ...

    def flag_falls(self, side: Color, seconds: float) -> bool:
        """Book a move of `seconds`; whether its side has lost on time."""
        ...


class EveryMove:
    """The same allowance for every move: movetime, nodes, depth. Nobody loses on time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit

    def limit(self, side: Color) -> Limit:
        return self._limit

    def flag_falls(self, side: Color, seconds: float) -> bool:
        return False


class ChessClock:
    """Base time and increment; a clock may run `margin` seconds below zero without losing.

    After an overstep within the margin the next move starts from zero plus the increment. After
    every `terms.moves` moves of a side its clock gets `base` again.
    """

    def __init__(self, base: float, terms: TimeControl, grace: float = 0.0) -> None:
        self._base = base
        self._terms = terms
        self._grace = grace
        self._left = [base, base]
        self._made = [0, 0]

    def left(self, side: Color) -> float:
        return self._left[side]

    def limit(self, side: Color) -> Limit:
        white, black = (_milliseconds(self._left[s]) for s in (WHITE, BLACK))
        gain = round(self._terms.increment * 1000)
        go = f"go wtime {white} btime {black} winc {gain} binc {gain}{self._to_go(side)}\n"
        return Limit(go.encode(), self._left[side] + self._terms.margin, self._grace)

    def flag_falls(self, side: Color, seconds: float) -> bool:
        left = self._left[side] - seconds
        self._left[side] = max(0.0, left) + self._terms.increment
        self._made[side] += 1
        if self._terms.moves and self._made[side] % self._terms.moves == 0:
            self._left[side] += self._base
        return left < -self._terms.margin

    def _to_go(self, side: Color) -> str:
        session = self._terms.moves
        return f" movestogo {session - self._made[side] % session}" if session else ""


def game_clock(terms: TimeControl, value: float, timeouts: UciTimeouts) -> GameClock:
    """The clock of one game, from the value that was drawn for its pair (see TimeControl)."""
    match terms.kind:
        case TimeKind.CLOCK:
            return ChessClock(value, terms, timeouts.grace)
        case TimeKind.MOVETIME:
            go = f"go movetime {_milliseconds(value)}\n"
            return EveryMove(Limit(go.encode(), value + timeouts.grace))
        case TimeKind.NODES:
            seconds = value / timeouts.slowest + timeouts.grace
            return EveryMove(Limit(f"go nodes {int(value)}\n".encode(), seconds))
        case TimeKind.DEPTH:
            return EveryMove(Limit(f"go depth {int(value)}\n".encode(), timeouts.depth))


def _milliseconds(seconds: float) -> int:
    # Engines take a zero for "no limit" or divide by it.
    return max(1, round(seconds * 1000))
