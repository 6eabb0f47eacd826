"""Who may think how long: the `go` line and the deadline of every move, and whose flag falls.

The clock is the runner's and runs from writing `go` to having read `bestmove`.
"""

from typing import Protocol

import chess

from spsa.terms import TimeControl, TimeKind
from worker.uci import Limit, Patience


class Timekeeper(Protocol):
    """The time of one game."""

    def limit(self, side: chess.Color) -> Limit: ...

    def flag_falls(self, side: chess.Color, seconds: float) -> bool:
        """Book a move of `seconds`; whether its side has lost on time."""
        ...


class EveryMove:
    """The same allowance for every move: movetime, nodes, depth. Nobody loses on time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit

    def limit(self, side: chess.Color) -> Limit:
        return self._limit

    def flag_falls(self, side: chess.Color, seconds: float) -> bool:
        return False


class ChessClock:
    """Base time and increment; a clock may run `margin` seconds below zero without losing.

    After an overstep within the margin the next move starts from zero plus the increment.
    """

    def __init__(self, base: float, increment: float, margin: float, grace: float) -> None:
        self._left = [base, base]
        self._increment = increment
        self._margin = margin
        self._grace = grace

    def left(self, side: chess.Color) -> float:
        return self._left[side]

    def limit(self, side: chess.Color) -> Limit:
        white, black = (_milliseconds(self._left[s]) for s in (chess.WHITE, chess.BLACK))
        gain = round(self._increment * 1000)
        go = f"go wtime {white} btime {black} winc {gain} binc {gain}\n".encode()
        return Limit(go, self._left[side] + self._margin, self._grace)

    def flag_falls(self, side: chess.Color, seconds: float) -> bool:
        left = self._left[side] - seconds
        self._left[side] = max(0.0, left) + self._increment
        return left < -self._margin


def timekeeper(terms: TimeControl, value: float, patience: Patience) -> Timekeeper:
    """The clock of one game, from the value that was drawn for its pair (see TimeControl)."""
    match terms.kind:
        case TimeKind.CLOCK:
            return ChessClock(value, terms.increment, terms.margin, patience.grace)
        case TimeKind.MOVETIME:
            go = f"go movetime {_milliseconds(value)}\n"
            return EveryMove(Limit(go.encode(), value + patience.grace))
        case TimeKind.NODES:
            seconds = value / patience.slowest + patience.grace
            return EveryMove(Limit(f"go nodes {int(value)}\n".encode(), seconds))
        case TimeKind.DEPTH:
            return EveryMove(Limit(f"go depth {int(value)}\n".encode(), patience.depth))


def _milliseconds(seconds: float) -> int:
    # Engines take a zero for "no limit" or divide by it.
    return max(1, round(seconds * 1000))
