"""EPD, FEN and PGN texts to openings, and every fault in them with its line."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import islice

import chess
import chess.pgn

from spsa.errors import Fault, InvalidInput


@dataclass(frozen=True, slots=True)
class Opening:
    """A position, and the moves (UCI) played from it before the engines take over."""

    fen: str
    moves: tuple[str, ...] = ()


def read_positions(file: str, text: str) -> tuple[Opening, ...]:
    """The openings of an EPD or FEN text, one a line; blank lines and `#` lines say nothing."""
    openings, faults = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            openings.append(_position(line.strip()))
        except ValueError as error:
            faults.append(_fault(file, number, str(error), "a legal position in EPD or FEN"))
    return _unless(faults, openings)


def read_pgn(file: str, text: str, plies: int | None) -> tuple[Opening, ...]:
    """The first `plies` plies of every game of a PGN text, or all of its moves."""
    openings, faults = [], []
    for line, game in _games(text):
        try:
            openings.append(_line(game, plies))
        except ValueError as error:
            faults.append(_fault(file, line, str(error), "a game of legal moves"))
    return _unless(faults, openings)


def _position(line: str) -> Opening:
    words = line.split()
    board = chess.Board()
    if len(words) >= 6 and words[4].isdigit() and words[5].rstrip(";").isdigit():
        board.set_fen(" ".join([*words[:5], words[5].rstrip(";")]))
    else:
        board.set_epd(line)
    _check(board)
    return Opening(board.fen())


def _line(game: chess.pgn.Game, plies: int | None) -> Opening:
    board = game.board()
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
    _check(board)
    return Opening(start, tuple(moves))


def _check(board: chess.Board) -> None:
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name or status}")
    if board.is_game_over():
        raise ValueError("the game is over before it begins")


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


def _fault(file: str, line: int, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=line, name="opening", found=found, remedy=remedy)


def _unless(faults: list[Fault], openings: list[Opening]) -> tuple[Opening, ...]:
    if faults:
        raise InvalidInput(faults)
    return tuple(openings)
