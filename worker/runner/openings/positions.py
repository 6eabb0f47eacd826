"""Positions as python-chess reads them, with its verdict. Apart, because it loads slowly."""

import chess

from spsa.core.game_settings.limits import MOST_MOVES

_FIFTY_MOVES = 100  # plies


def position(line: str) -> chess.Board:
    """The position of a FEN or EPD line; ValueError where it has none."""
    words = line.split()
    board = chess.Board()
    numbered = len(words) >= 6 and words[4].isdigit() and words[5].rstrip(";").isdigit()
    if not all(word.isascii() for word in words[: 6 if numbered else 4]):
        raise ValueError("it has letters or digits that are no part of a position")
    if numbered:
        board.set_fen(" ".join([*words[:5], words[5].rstrip(";")]))
    else:
        board.set_epd(line)
    return board


def check(board: chess.Board) -> None:
    """Return if a game of standard chess can begin here; ValueError says why not."""
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name or status}")
    if board.is_game_over() or board.halfmove_clock >= _FIFTY_MOVES:
        raise ValueError("the game is over before it begins")
    if board.halfmove_clock < 0 or not 1 <= board.fullmove_number <= MOST_MOVES:
        raise ValueError(f"a move number outside 1 .. {MOST_MOVES}, or a clock below 0")
