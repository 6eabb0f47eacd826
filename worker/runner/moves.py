"""What a move is: its squares, its text, and the four that are made by king and rook together."""

from functools import lru_cache
from typing import NamedTuple

from worker.runner.geometry import SQUARES

Color = bool
WHITE, BLACK = True, False

PAWN, KNIGHT, BISHOP, ROOK, QUEEN, KING = range(1, 7)
"""Kinds of pieces. A piece is its kind and 8 (Black) or 16 (White); an empty square is 0."""


class Move(NamedTuple):
    """A move by its squares; `promotion` is the new kind of a pawn, or 0."""

    source: int
    target: int
    promotion: int = 0


class Castling(NamedTuple):
    """One of the four castlings: its bit of the rights, the rook's way, what must be free."""

    right: int
    rook: Move
    free: tuple[int, ...]


CASTLINGS = {
    Move(4, 6): Castling(1, Move(7, 5), (5, 6)),
    Move(4, 2): Castling(2, Move(0, 3), (3, 2, 1)),
    Move(60, 62): Castling(4, Move(63, 61), (61, 62)),
    Move(60, 58): Castling(8, Move(56, 59), (59, 58, 57)),
}
KEPT = bytes(
    15 & ~sum(c.right for king, c in CASTLINGS.items() if square in (king.source, c.rook.source))
    for square in range(64)
)
"""By square: the rights that are left when a piece comes or goes there."""


_PROMOTIONS = {"": 0, "n": KNIGHT, "b": BISHOP, "r": ROOK, "q": QUEEN}


@lru_cache(maxsize=4096)
def parsed(text: str) -> Move | None:
    """The move that a text of UCI names, whatever the position; None when it names none."""
    source, target = SQUARES.get(text[:2]), SQUARES.get(text[2:4])
    promotion = _PROMOTIONS.get(text[4:])
    if source is None or target is None or promotion is None:
        return None
    return Move(source, target, promotion)
