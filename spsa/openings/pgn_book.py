"""Games of PGN texts, in a module of their own because chess.pgn is slow to import.

An illegal move in the main line is a fault, as is a game of another variant than the run's.
"""

import re
from io import StringIO
from itertools import islice

import chess.pgn

from spsa.core.game_settings import MAX_PLIES

_HEADERS = re.compile(r"(?:^\[\w.*\n?)+", re.MULTILINE)
_TEXT = re.compile(r"^(?![%;]).*\S", re.MULTILINE)  # neither blank nor a remark


class _MainLine(chess.pgn.GameBuilder[chess.pgn.Game]):
    """Skips variations, logs nothing, and limits the length of a game."""

    def begin_game(self) -> None:
        super().begin_game()
        self._plies = 0

    def begin_variation(self) -> chess.pgn.SkipType:  # type: ignore[override]
        return chess.pgn.SKIP

    def end_variation(self) -> None:
        pass  # the base class would close a variation that was not opened

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        self._plies += 1
        if self._plies > MAX_PLIES:
            raise ValueError(f"a game of more than {MAX_PLIES:,} plies")
        if not move:
            self.handle_error(ValueError("a null move"))
        super().visit_move(board, move)

    def handle_error(self, error: Exception) -> None:
        self.game.errors.append(error)


def starts(text: str) -> list[int]:
    """Where the games of a text begin: with their headers, the first perhaps with its moves."""
    first = _TEXT.search(text)
    own = [] if first is None else [first.start()]
    return sorted({*own, *(found.start() for found in _HEADERS.finditer(text))})


def line(
    text: str, plies: int | None, *, chess960: bool
) -> tuple[chess.Board, tuple[str, ...], chess.Board]:
    """The first `plies` plies of a game, or all its moves; ValueError says why it is none.

    With the position before them, and the one after.
    """
    rest = StringIO(text)
    game = chess.pgn.read_game(rest, Visitor=_MainLine)
    if game is None or _TEXT.search(rest.read()):
        raise ValueError("behind its moves is more text, as a game without headers")
    if game.errors:
        raise ValueError(str(game.errors[0]))
    board = game.board()
    if type(board) is not chess.Board or board.chess960 != chess960:
        usual = "Chess960" if board.chess960 else "standard chess"
        raise ValueError(f"a game of {game.headers.get('Variant', usual)}")
    start, moves = board.copy(), []
    for move in islice(game.mainline_moves(), plies):
        moves.append(move.uci())
        board.push(move)
    if not moves and "FEN" not in game.headers:
        raise ValueError("neither a move nor a FEN header")
    return start, tuple(moves), board
