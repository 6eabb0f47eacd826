"""Ends games early: on time, by Syzygy tables, by the scores of both engines, or by their length.

A clock runs from the moment the runner writes `go` until it has read `bestmove`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from chess import BLACK, WHITE, Board, Color, popcount
from chess.syzygy import Tablebase, tablenames

from spsa.core.game_settings import (
    Adjudication,
    DrawRule,
    ResignRule,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.errors import TuningError
from spsa.text import printable
from spsa.uci.engine import Limit, clock_line, fixed_limit
from spsa.uci.spawning import EngineLimits
from worker.runner.position import Ending, Position, Termination, drawn, won_by

_WIN = 2  # what tables say; 1 is a win that the fifty-move rule makes a draw
_SHOWN = 3  # names of missing tables


@cache
def open_tables(rule: TablebaseRule | None, folders: tuple[Path, ...]) -> Tablebase | None:
    """The tables of a rule, if there is one: from these folders, or else from that of the rule.

    They are opened once, and stay open. Raises TuningError: a table is missing, without which this
    machine would play other games than others.
    """
    if rule is None:
        return None
    places = folders or ([Path(rule.folder)] if rule.folder else [])
    tables, asked = Tablebase(), f"games end by Syzygy tables of up to {rule.pieces} pieces"
    for place in places:
        if not place.is_dir():
            raise TuningError(f"{asked}: {printable(str(place), 500)} is no folder")
        tables.add_directory(str(place))
    missing = [name for name in tablenames(piece_count=rule.pieces) if name not in tables.wdl]
    if missing:
        shown = ", ".join(f"{name}.rtbw" for name in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise TuningError(f"{asked}: no {shown}{more}: name the folders of all with --syzygy")
    return tables


@dataclass(slots=True)
class Adjudicator:
    """Decides after every move of one game; a move without a score breaks every series."""

    rules: Adjudication
    tables: Tablebase | None = None
    _quiet: int = field(init=False, default=0)  # consecutive moves within the draw score
    _winner: Color | None = field(init=False, default=None)  # as the last moves of both see it
    _agreed: int = field(init=False, default=0)

    def ending(self, position: Position, score: int | None) -> Ending | None:
        """The ending after the last move; `score` is its mover's, in centipawns."""
        rules, mover = self.rules, not position.turn
        if rules.syzygy is not None and self.tables is not None:
            ending = _by_tables(rules.syzygy, self.tables, position.board)
            if ending is not None:
                return ending
        if rules.resign is not None and self._is_resigned(rules.resign, mover, score):
            return won_by(bool(self._winner), Termination.RESIGN)
        made_at = position.board.fullmove_number - (not mover)
        if rules.draw is not None and self._is_agreed_drawn(rules.draw, made_at, score):
            return drawn(Termination.DRAW)
        if rules.max_moves is not None and position.plies >= 2 * rules.max_moves:
            return drawn(Termination.MAX_MOVES)
        return None

    def _is_resigned(self, rule: ResignRule, mover: Color, score: int | None) -> bool:
        winner = None
        if score is not None and abs(score) >= rule.score:
            winner = mover if score > 0 else not mover
        self._agreed = self._agreed + 1 if winner == self._winner else 1
        self._winner = winner
        return winner is not None and self._agreed >= 2 * rule.count

    def _is_agreed_drawn(self, rule: DrawRule, move_number: int, score: int | None) -> bool:
        quiet = score is not None and abs(score) <= rule.score and move_number >= rule.move_number
        self._quiet = self._quiet + 1 if quiet else 0
        return self._quiet >= 2 * rule.count


def _by_tables(rule: TablebaseRule, tables: Tablebase, board: Board) -> Ending | None:
    """The ending of a position that a capture or a pawn move has just made, without castling.

    The tables know neither castling nor how many moves were made since.
    """
    if board.halfmove_clock or popcount(board.occupied) > rule.pieces:
        return None
    wdl = None if board.castling_rights else tables.get_wdl(board)
    if wdl is None:
        return None
    if abs(wdl) < _WIN:
        return drawn(Termination.TABLES)
    return won_by(board.turn if wdl > 0 else not board.turn, Termination.TABLES)


class GameClock:
    """The clock of one game, from the value that was drawn for its pair (see TimeControl).

    With base time and increment a side that oversteps by at most the margin does not lose: its
    clock is then zero plus the increment. After every `control.moves` moves of a side its clock
    gets the base time again. Other limits are the same for every move, and no side loses on time.
    What a side with a handicap gets is divided by that.
    """

    def __init__(
        self,
        control: TimeControl,
        value: float,
        limits: EngineLimits,
        handicaps: Mapping[Color, float] = MappingProxyType({}),
    ) -> None:
        divisors = [handicaps.get(side, 1.0) for side in (BLACK, WHITE)]  # indexed by the colour
        self._control = control
        self._bases = [value / divisor for divisor in divisors]
        self._gains = [control.increment / divisor for divisor in divisors]
        self._grace = limits.grace
        self._left = list(self._bases)
        self._made = [0, 0]
        kind = control.kind
        fixed = [] if kind is TimeKind.CLOCK else self._bases
        self._fixed = [fixed_limit(kind, base, limits) for base in fixed]

    def limit(self, side: Color) -> Limit:
        """What the engine of this side is told, and how long it is waited for."""
        if self._fixed:
            return self._fixed[side]
        control = self._control
        moves = control.moves and control.moves - self._made[side] % control.moves
        go = clock_line(self._left, self._gains, moves)
        return Limit(go, self._left[side] + control.margin, self._grace)

    def flag_falls(self, side: Color, seconds: float) -> bool:
        """Count a move of `seconds`; whether its side has lost on time."""
        if self._fixed:
            return False
        left = self._left[side] - seconds
        self._left[side] = max(0.0, left) + self._gains[side]
        self._made[side] += 1
        if self._control.moves and self._made[side] % self._control.moves == 0:
            self._left[side] += self._bases[side]
        return left < -self._control.margin
