"""The rules of chess as a runner needs them: one legality test a move, and its ending if any.

Repetitions are counted as the moves are made, and an ending is looked for only where the last move
can have brought it about. The answers are those of python-chess, which holds the board.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import NamedTuple

import chess

from worker import ordinary
from worker.openings import Opening
from worker.ordinary import SQUARES


class Termination(StrEnum):
    """Why a game ended; a void game has no termination but a reason."""

    CHECKMATE = "checkmate"
    STALEMATE = "stalemate"
    REPETITION = "threefold repetition"
    FIFTY_MOVES = "fifty-move rule"
    MATERIAL = "insufficient material"
    DRAW = "draw adjudication"
    RESIGN = "resign adjudication"
    MAX_MOVES = "maximum number of moves"
    TIME = "time forfeit"


class Ending(NamedTuple):
    """Half points of White (0, 1, 2), and why."""

    white: int
    termination: Termination


def won_by(side: chess.Color, termination: Termination) -> Ending:
    return Ending(2 if side else 0, termination)


def drawn(termination: Termination) -> Ending:
    return Ending(1, termination)


class Position:
    """A game's board from its opening on, and the `position` command that says the same."""

    def __init__(self, opening: Opening) -> None:
        self.board = chess.Board(opening.fen)
        self.board.castling_rights = self.board.clean_castling_rights()
        self.command = _command(opening.fen)
        self.plies = 0
        self._bare = True
        self._seen: dict[Hashable, int] = {}
        self._count()
        for move in opening.moves:
            if not self.make(move):
                raise ValueError(f"{move} is illegal in {self.board.fen()}")
            self.ending()
        self.plies = 0

    @property
    def turn(self) -> chess.Color:
        return self.board.turn

    def make(self, text: str) -> bool:
        """Make the move that `text` (UCI) means here; False when the rules forbid it.

        `ending` has to be asked after every move.
        """
        source, target = SQUARES.get(text[:2]), SQUARES.get(text[2:])
        made = None
        if source is not None and target is not None:
            made = ordinary.make(self.board, source, target)
        if made is None:
            made = _make_any(self.board, text)
        if made:
            self.plies += 1
            self.command += (b" moves " if self._bare else b" ") + text.encode()
            self._bare = False
        return made

    def ending(self) -> Ending | None:
        """The ending that the last move has brought about, if it has."""
        return self._without_a_move() or self._drawn(self._count())

    def _without_a_move(self) -> Ending | None:
        board = self.board
        check = _in_check(board)
        if not check and ordinary.has_free_pawn(board):
            return None
        if any(board.generate_legal_moves()):
            return None
        if check:
            return won_by(not board.turn, Termination.CHECKMATE)
        return drawn(Termination.STALEMATE)

    def _drawn(self, occurrences: int) -> Ending | None:
        if occurrences >= 3:
            return drawn(Termination.REPETITION)
        clock = self.board.halfmove_clock
        if clock >= 100:
            return drawn(Termination.FIFTY_MOVES)
        if clock == 0 and self._is_dead():
            return drawn(Termination.MATERIAL)
        return None

    def _is_dead(self) -> bool:
        board = self.board
        return not (board.pawns | board.rooks | board.queens) and board.is_insufficient_material()

    def _count(self) -> int:
        """How often this position has now stood on the board."""
        if self.board.halfmove_clock == 0:
            self._seen.clear()  # a capture or a pawn move: nothing before it can come back
        key = _identity(self.board)
        occurrences = self._seen.get(key, 0) + 1
        self._seen[key] = occurrences
        return occurrences


def _make_any(board: chess.Board, text: str) -> bool:
    try:
        move = chess.Move.from_uci(text)
    except chess.InvalidMoveError:
        return False
    if not board.is_legal(move):
        return False
    board.push(move)
    return True


def _in_check(board: chess.Board) -> bool:
    turn = board.turn
    king = (board.kings & board.occupied_co[turn]).bit_length() - 1
    return ordinary.attacked(board, king, board.occupied, board.occupied_co[not turn], turn)


def _identity(board: chess.Board) -> Hashable:
    """What makes two positions the same in the sense of the repetition rule (FIDE 9.2.3)."""
    return (
        board.pawns,
        board.knights,
        board.bishops,
        board.rooks,
        board.queens,
        board.kings,
        board.occupied_co[chess.WHITE],
        board.turn,
        board.castling_rights,
        board.ep_square if board.has_legal_en_passant() else None,
    )


def _command(fen: str) -> bytes:
    where = "startpos" if fen == chess.STARTING_FEN else f"fen {fen}"
    return f"position {where}".encode()
