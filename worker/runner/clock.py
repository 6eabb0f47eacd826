"""Game clocks: the `go` line and the deadline of every move, and whose flag falls.

A clock runs from the moment the runner writes `go` until it has read `bestmove`.
"""

from typing import Protocol

from chess import BLACK, WHITE, Color

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.uci.engine import Limit, UciTimeouts


class GameClock(Protocol):
    """The time of one game."""

    def limit(self, side: Color) -> Limit: ...

    def flag_falls(self, side: Color, seconds: float) -> bool:
        """Count a move of `seconds`; whether its side has lost on time."""
        ...


class EveryMove:
    """The same limit for every move: movetime, nodes or depth. No side loses on time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit

    def limit(self, side: Color) -> Limit:
        return self._limit

    def flag_falls(self, side: Color, seconds: float) -> bool:
        return False


class ChessClock:
    """Base time and increment; a side that oversteps by at most the margin does not lose.

    After such an overstep its clock is zero plus the increment. After every `control.moves` moves
    of a side its clock gets `base` seconds again. `grace` is how long a side that has lost on time
    may take to obey `stop`, all in seconds.
    """

    def __init__(self, base: float, control: TimeControl, grace: float = 0.0) -> None:
        self._base = base
        self._control = control
        self._grace = grace
        self._left = [base, base]
        self._made = [0, 0]

    def left(self, side: Color) -> float:
        return self._left[side]

    def limit(self, side: Color) -> Limit:
        white, black = (_milliseconds(self._left[s]) for s in (WHITE, BLACK))
        gain = round(self._control.increment * 1000)
        go = f"go wtime {white} btime {black} winc {gain} binc {gain}{self._to_go(side)}\n"
        return Limit(go.encode(), self._left[side] + self._control.margin, self._grace)

    def flag_falls(self, side: Color, seconds: float) -> bool:
        left = self._left[side] - seconds
        self._left[side] = max(0.0, left) + self._control.increment
        self._made[side] += 1
        if self._control.moves and self._made[side] % self._control.moves == 0:
            self._left[side] += self._base
        return left < -self._control.margin

    def _to_go(self, side: Color) -> str:
        moves = self._control.moves
        return f" movestogo {moves - self._made[side] % moves}" if moves else ""


def game_clock(control: TimeControl, value: float, timeouts: UciTimeouts) -> GameClock:
    """The clock of one game, from the value that was drawn for its pair (see TimeControl)."""
    match control.kind:
        case TimeKind.CLOCK:
            return ChessClock(value, control, timeouts.grace)
        case TimeKind.MOVETIME:
            go = f"go movetime {_milliseconds(value)}\n"
            return EveryMove(Limit(go.encode(), value + timeouts.grace))
        case TimeKind.NODES:
            seconds = value / timeouts.slowest + timeouts.grace
            return EveryMove(Limit(f"go nodes {int(value)}\n".encode(), seconds))
        case TimeKind.DEPTH:
            return EveryMove(Limit(f"go depth {int(value)}\n".encode(), timeouts.depth))


def _milliseconds(seconds: float) -> int:
    # Some engines read a zero as "no limit", some divide by it.
    return max(1, round(seconds * 1000))
