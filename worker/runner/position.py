"""A game's position, by the rules of python-chess, and the ending that its last move made.

After each move only the cheapest question that can settle a matter is asked.
"""

from enum import StrEnum
from typing import NamedTuple

import chess

from spsa.openings.book import Opening

_FIFTY_MOVES = 100  # plies
_SHORTEST_REPETITION = 8  # plies from the first to the third occurrence


class Termination(StrEnum):
    """Why a game ended; a void game has no termination but a reason."""

    CHECKMATE = "checkmate"
    STALEMATE = "stalemate"
    REPETITION = "threefold repetition"
    FIFTY_MOVES = "fifty-move rule"
    MATERIAL = "insufficient material"
    DRAW = "draw adjudication"
    RESIGN = "resign adjudication"
    TABLES = "tablebase adjudication"
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
    """A game's board from its opening on, and the UCI `position` command that describes it."""

    def __init__(self, opening: Opening) -> None:
        """ValueError when a move of the opening is illegal."""
        self.board = opening.start_board()
        start = "startpos" if opening.fen == chess.STARTING_FEN else f"fen {opening.fen}"
        self.command = f"position {start}".encode()
        self._before_move = b" moves "
        for move in opening.moves:
            if not self.make(move):
                raise ValueError(f"{move} is illegal in {self.board.fen()}")
        self._opening_plies = len(opening.moves)

    @property
    def turn(self) -> chess.Color:
        return self.board.turn

    @property
    def plies(self) -> int:
        """Moves of both sides since the opening."""
        return len(self.board.move_stack) - self._opening_plies

    def make(self, text: str) -> bool:
        """Make the move that `text` (UCI) names; False, and no change, when it is illegal."""
        try:
            move = chess.Move.from_uci(text)
        except chess.InvalidMoveError:
            return False
        # python-chess always reads a king's move to its own rook as castling, UCI in Chess960 only.
        own = self.board.occupied_co[self.board.turn]
        takes_own = bool(own & chess.BB_SQUARES[move.to_square])
        if (takes_own and not self.board.chess960) or not self.board.is_legal(move):
            return False
        self.board.push(move)
        self.command += self._before_move + text.encode()
        self._before_move = b" "
        return True

    def ending(self) -> Ending | None:
        """The ending that the last move made, if it made one."""
        board = self.board
        if not any(board.generate_legal_moves()):
            if board.is_check():
                return won_by(not board.turn, Termination.CHECKMATE)
            return drawn(Termination.STALEMATE)
        quiet_plies = board.halfmove_clock
        if quiet_plies >= _SHORTEST_REPETITION and board.is_repetition(3):
            return drawn(Termination.REPETITION)
        if quiet_plies >= _FIFTY_MOVES:
            return drawn(Termination.FIFTY_MOVES)
        if quiet_plies == 0 and board.is_insufficient_material():
            return drawn(Termination.MATERIAL)
        return None
