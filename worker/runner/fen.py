"""Positions as FEN and EPD texts: read strictly, and written in one way for one position."""

import re

from worker.runner.board import PASSANT, RIGHTS, Board
from worker.runner.geometry import NAMES, SQUARES
from worker.runner.moves import CASTLINGS, KING, ROOK

STARTING_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

_LETTERS = {letter: 8 + kind for kind, letter in enumerate("pnbrqk", start=1)}
_LETTERS |= {letter.upper(): piece + 8 for letter, piece in _LETTERS.items()}
_PIECES = {piece: letter for letter, piece in _LETTERS.items()}
_RIGHTS = {"K": 1, "Q": 2, "k": 4, "q": 8}
_RIGHTS_TEXT = re.compile("(?!$)K?Q?k?q?|-")
_TEXT = re.compile(
    r"([1-8pnbrqkPNBRQK/]+) ([wb]) (\S+) (-|[a-h][36])"
    r"(?:| (?P<half>\d{1,9}) (?P<full>\d{1,9});?| hmvc (?P<hmvc>\d{1,9}); fmvn (?P<fmvn>\d{1,9});)",
    re.ASCII,
)


def read(text: str) -> Board | None:
    """The position of a plain FEN or EPD text; None where it is not plain, or no position."""
    found = _TEXT.fullmatch(text)
    if found is None or not _RIGHTS_TEXT.fullmatch(found[3]):
        return None
    squares = _squares(found[1])
    if squares is None or any(squares.count(8 * side + KING) != 1 for side in (1, 2)):
        return None
    squares[RIGHTS] = sum(_RIGHTS[letter] for letter in found[3] if letter != "-")
    squares[RIGHTS] &= _possible_rights(squares)
    return Board(
        squares,
        turn=found[2] == "w",
        passant=SQUARES.get(found[4], -1),
        halfmoves=int(found["half"] or found["hmvc"] or 0),
        number=max(1, int(found["full"] or found["fmvn"] or 1)),
    )


def board(text: str) -> Board:
    """The position of a FEN that a book or `written` has given; ValueError where there is none."""
    if (found := read(text)) is None:
        raise ValueError(f"{text!r} is no position")
    return found


def written(board: Board) -> str:
    """The FEN; the square passed by a pawn is in it where a legal capture is possible there."""
    squares = board.squares
    ranks = "/".join(_rank(squares[first : first + 8]) for first in range(56, -1, -8))
    rights = "".join(letter for letter, bit in _RIGHTS.items() if squares[RIGHTS] & bit)
    passant = NAMES[squares[PASSANT]] if squares[PASSANT] else "-"
    turn = "w" if board.turn else "b"
    return f"{ranks} {turn} {rights or '-'} {passant} {board.halfmoves} {board.number}"


def _squares(text: str) -> bytearray | None:
    """The pieces of a FEN's first field, and no rights yet; None when the ranks do not fit."""
    squares = bytearray()
    for number, rank in enumerate(reversed(text.split("/")), start=1):
        for letter in rank:
            squares += bytes(int(letter)) if letter.isdigit() else bytes([_LETTERS[letter]])
        if len(squares) != 8 * number:
            return None
    return squares + bytes(3) if len(squares) == 64 else None


def _possible_rights(squares: bytearray) -> int:
    """Those whose king and rook stand at home."""
    rights = 0
    for king, castling in CASTLINGS.items():
        colour = 16 if king.source < 8 else 8
        at_home = squares[king.source], squares[castling.rook.source]
        if at_home == (colour | KING, colour | ROOK):
            rights |= castling.right
    return rights


def _rank(pieces: bytearray) -> str:
    text = "".join(_PIECES.get(piece, " ") for piece in pieces)
    return re.sub(" +", lambda gap: str(len(gap[0])), text)
