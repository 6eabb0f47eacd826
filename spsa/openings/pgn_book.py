"""Games of PGN texts, in a module of their own because chess.pgn is slow to import.

An illegal move in the main line is a fault, as is a game of another variant than the run's.
"""

import re
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import islice

import chess.pgn

from spsa.core.game_settings import MAX_PLIES

_LINE = re.compile(r"^.*\S", re.MULTILINE)  # not blank

Line = tuple[chess.Board, tuple[str, ...]]
"""A position, and the moves (UCI) from it."""


def lines(
    text: str, plies: int | None, check: Callable[[chess.Board], None], *, chess960: bool = False
) -> Iterator[tuple[int, Line | ValueError]]:
    """The first `plies` plies of every game of a PGN text, or all of its moves, or its fault.

    Each with the number of the line in which the game begins. `check` raises ValueError where a
    game could not begin.
    """
    for number, game in _games(text):
        try:
            if isinstance(game, ValueError):
                raise game
            yield number, _line(game, plies, check, chess960=chess960)
        except ValueError as error:
            yield number, error


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


def _line(
    game: chess.pgn.Game, plies: int | None, check: Callable[[chess.Board], None], *, chess960: bool
) -> Line:
    if game.errors:
        raise ValueError(str(game.errors[0]))
    board = game.board()
    if type(board) is not chess.Board or board.chess960 != chess960:
        usual = "Chess960" if board.chess960 else "standard chess"
        raise ValueError(f"a game of {game.headers.get('Variant', usual)}")
    check(board)
    start, moves = board.copy(), []
    for move in islice(game.mainline_moves(), plies):
        moves.append(move.uci())
        board.push(move)
    if not moves and "FEN" not in game.headers:
        raise ValueError("neither a move nor a FEN header")
    check(board)
    return start, tuple(moves)


def _games(text: str) -> Iterator[tuple[int, chess.pgn.Game | ValueError]]:
    """Every game with the number of the line it begins in.

    After a ValueError the rest of the file cannot be told apart from that game.
    """
    lines, line, counted = StringIO(text), 1, 0
    while (found := _LINE.search(text, lines.tell())) is not None:
        begin = lines.seek(found.start())
        line += text.count("\n", counted, begin)
        counted = begin
        try:
            game = chess.pgn.read_game(lines, Visitor=_MainLine)
        except ValueError as error:
            yield line, error
            return
        if game is None:
            return
        yield line, game
