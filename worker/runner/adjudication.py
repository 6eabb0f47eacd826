"""Ends games early: by Syzygy tables, by the scores of both engines, or by their length."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from chess import Board, Color, popcount
from chess.syzygy import Tablebase, tablenames

from spsa.core.game_settings import Adjudication, DrawRule, ResignRule, TablebaseRule
from spsa.errors import TuningError
from spsa.text import FAILURE_LENGTH, printable
from worker.runner.position import Ending, Position, Termination, drawn, won_by

_WIN, _CURSED_WIN = 2, 1
_SHOWN = 3  # names of missing tables


class Tables(Protocol):
    """Syzygy tables, which threads may share."""

    def get_wdl(self, board: Board) -> int | None:
        """2 for a win of the side to move, 1 if the fifty-move rule spoils it, 0 for a draw.

        The negative numbers are losses; None where there is no table.
        """
        ...


def open_tables(rule: TablebaseRule, folders: Sequence[Path]) -> Tables:
    """The tables of a rule, from these folders or, without any, from that of the rule.

    Raises:
        TuningError: a table is missing, with which this machine would play other games than others.
    """
    places = folders or ([Path(rule.folder)] if rule.folder else [])
    if not places:
        raise TuningError(
            f"games end by Syzygy tables of up to {rule.pieces} pieces: "
            "name the folder of this machine's with --syzygy"
        )
    there = {file.name for place in places for file in _files(place)}
    missing = [t for t in tablenames(piece_count=rule.pieces) if f"{t}.rtbw" not in there]
    if missing:
        shown = ", ".join(f"{name}.rtbw" for name in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        where = ", ".join(str(place) for place in places)
        raise TuningError(
            printable(
                f"{where}: no {shown}{more}, of the tables of up to {rule.pieces} pieces: "
                "add them, or name their folder with --syzygy",
                FAILURE_LENGTH,
            )
        )
    tables = Tablebase()
    for place in places:
        tables.add_directory(str(place), load_dtz=False)
    return tables


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        where = printable(str(folder), FAILURE_LENGTH)
        raise TuningError(f"{where}: {error.strerror}; name a folder with --syzygy") from None


class Adjudicator:
    """Decides after every move of one game; a move without a score breaks every series."""

    def __init__(self, settings: Adjudication, tables: Tables | None = None) -> None:
        self._tables = None
        if settings.syzygy is not None and tables is not None:
            self._tables = _ByTables(settings.syzygy, tables)
        self._draw = None if settings.draw is None else _Draw(settings.draw)
        self._resign = None if settings.resign is None else _Resign(settings.resign)
        self._max_plies = None if settings.max_moves is None else 2 * settings.max_moves

    def ending(self, position: Position, score: int | None) -> Ending | None:
        """The ending after the last move; `score` is its mover's, in centipawns."""
        mover = not position.turn
        made_at = position.board.fullmove_number - (not mover)
        if self._tables is not None and (ending := self._tables.ending(position.board)) is not None:
            return ending
        if self._resign is not None and (winner := self._resign.agreed(mover, score)) is not None:
            return won_by(winner, Termination.RESIGN)
        if self._draw is not None and self._draw.agreed(made_at, score):
            return drawn(Termination.DRAW)
        if self._max_plies is not None and position.plies >= self._max_plies:
            return drawn(Termination.MAX_MOVES)
        return None


class _ByTables:
    """Looks up positions that a capture or a pawn move has just made, and without castling.

    The tables hold for those only: they know neither castling nor how many moves were made since.
    """

    def __init__(self, rule: TablebaseRule, tables: Tables) -> None:
        self._rule = rule
        self._tables = tables

    def ending(self, board: Board) -> Ending | None:
        if board.halfmove_clock or popcount(board.occupied) > self._rule.pieces:
            return None
        wdl = None if board.castling_rights else self._tables.get_wdl(board)
        if wdl is None:
            return None
        if abs(wdl) < (_WIN if self._rule.fifty_moves else _CURSED_WIN):
            return drawn(Termination.TABLES)
        return won_by(board.turn if wdl > 0 else not board.turn, Termination.TABLES)


class _Draw:
    """Counts consecutive moves within the draw score, from the rule's move number on."""

    def __init__(self, rule: DrawRule) -> None:
        self._rule = rule
        self._streak = 0

    def agreed(self, move_number: int, score: int | None) -> bool:
        rule = self._rule
        quiet = score is not None and abs(score) <= rule.score and move_number >= rule.move_number
        self._streak = self._streak + 1 if quiet else 0
        return self._streak >= 2 * rule.count


class _Resign:
    """Counts consecutive moves, of both engines, that see the same winner."""

    def __init__(self, rule: ResignRule) -> None:
        self._rule = rule
        self._winner: Color | None = None
        self._streak = 0

    def agreed(self, mover: Color, score: int | None) -> Color | None:
        winner = self._seen_by(mover, score)
        self._streak = self._streak + 1 if winner == self._winner else 1
        self._winner = winner
        return winner if self._streak >= 2 * self._rule.count else None

    def _seen_by(self, mover: Color, score: int | None) -> Color | None:
        if score is None or abs(score) < self._rule.score:
            return None
        return mover if score > 0 else not mover
