"""Game clocks: the `go` line and the deadline of every move, and whose flag falls.

A clock runs from the moment the runner writes `go` until it has read `bestmove`.
"""

from chess import BLACK, WHITE, Color

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.uci.engine import Limit
from spsa.uci.spawning import EngineLimits


class GameClock:
    """The clock of one game: the same limit for every move, with which no side loses on time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit

    def limit(self, side: Color) -> Limit:
        return self._limit

    def flag_falls(self, side: Color, seconds: float) -> bool:
        """Count a move of `seconds`; whether its side has lost on time."""
        return False


class ChessClock(GameClock):
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

    def limit(self, side: Color) -> Limit:
        control = self._control
        white, black = (_milliseconds(self._left[s]) for s in (WHITE, BLACK))
        gain = round(control.increment * 1000)
        go = f"go wtime {white} btime {black} winc {gain} binc {gain}"
        if control.moves:
            go += f" movestogo {control.moves - self._made[side] % control.moves}"
        return Limit(f"{go}\n".encode(), self._left[side] + control.margin, self._grace)

    def flag_falls(self, side: Color, seconds: float) -> bool:
        left = self._left[side] - seconds
        self._left[side] = max(0.0, left) + self._control.increment
        self._made[side] += 1
        if self._control.moves and self._made[side] % self._control.moves == 0:
            self._left[side] += self._base
        return left < -self._control.margin


def game_clock(control: TimeControl, value: float, limits: EngineLimits) -> GameClock:
    """The clock of one game, from the value that was drawn for its pair (see TimeControl)."""
    match control.kind:
        case TimeKind.CLOCK:
            return ChessClock(value, control, limits.grace)
        case TimeKind.MOVETIME:
            go, seconds = f"go movetime {_milliseconds(value)}", value + limits.grace
        case TimeKind.NODES:
            go, seconds = f"go nodes {int(value)}", value / limits.slowest + limits.grace
        case TimeKind.DEPTH:
            go, seconds = f"go depth {int(value)}", limits.depth
    return GameClock(Limit(f"{go}\n".encode(), seconds))


def _milliseconds(seconds: float) -> int:
    # Some engines read a zero as "no limit", some divide by it.
    return max(1, round(seconds * 1000))
