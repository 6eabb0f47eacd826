"""Positions as python-chess reads them, with its verdict. Apart, because it loads slowly."""

import chess


def position(line: str) -> chess.Board:
    words = line.split()
    board = chess.Board()
    if len(words) >= 6 and words[4].isdigit() and words[5].rstrip(";").isdigit():
        board.set_fen(" ".join([*words[:5], words[5].rstrip(";")]))
    else:
        board.set_epd(line)
    return board


def check(board: chess.Board) -> None:
    status = board.status()
    if status != chess.STATUS_VALID:
        raise ValueError(f"not a position of chess: {status.name or status}")
    if board.is_game_over():
        raise ValueError("the game is over before it begins")
