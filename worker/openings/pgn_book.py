"""PGN texts to openings. Apart, because chess.pgn takes longer to load than all the rest here."""

from collections.abc import Iterator
from io import StringIO
from itertools import islice

import chess.pgn

from spsa.errors import InvalidInput
from worker.openings.formats import Opening, fault
from worker.openings.positions import check


def read_pgn(file: str, text: str, plies: int | None) -> tuple[Opening, ...]:
    """The first `plies` plies of every game of a PGN text, or all of its moves."""
    openings, faults = [], []
    for line, game in _games(text):
        try:
            openings.append(_line(game, plies))
        except ValueError as error:
            faults.append(fault(file, line, str(error), "a game of legal moves"))
    if faults:
        raise InvalidInput(faults)
    return tuple(openings)


def _line(game: chess.pgn.Game, plies: int | None) -> Opening:
    board = game.board()
    check(board)
    start = board.fen()
    moves = []
    for move in islice(game.mainline_moves(), plies):
        moves.append(move.uci())
        board.push(move)
    # The parser stops at the first bad move; that matters only where the opening would need it.
    if game.errors and (plies is None or len(moves) < plies):
        raise ValueError(str(game.errors[0]))
    if not moves and "FEN" not in game.headers:
        raise ValueError("neither a move nor a FEN header")
    check(board)
    return Opening(start, tuple(moves))


def _games(text: str) -> Iterator[tuple[int, chess.pgn.Game]]:
    """Every game with the number of the line it begins in."""
    lines = StringIO(text)
    line, counted = 1, 0
    while True:
        _skip_blank_lines(lines)
        line += text.count("\n", counted, lines.tell())
        counted = lines.tell()
        game = chess.pgn.read_game(lines)
        if game is None:
            return
        yield line, game


def _skip_blank_lines(lines: StringIO) -> None:
    place = lines.tell()
    while (line := lines.readline()) and not line.strip():
        place = lines.tell()
    lines.seek(place)
