"""A position of chess: what is legal in it, and what a move makes of it.

It asks as little as a game needs: one move at a time, whether that is legal, whether the side to
move is in check and whether it can move at all. python-chess is what all of it is tested against.
"""

from collections.abc import Iterator, Sequence

from worker.runner.geometry import HITS, JUMP, JUMPS, LINES, NEIGHBOURS, RAYS
from worker.runner.moves import CASTLINGS, KEPT, KING, KNIGHT, PAWN, Color, Move

TURN, RIGHTS, PASSANT = 64, 65, 66
"""Bytes behind those of the squares: all in which two positions can differ for the laws (9.2.3).

Whose turn it is; the castling rights; the square of a legal capture en passant, or 0.
"""

_STRAIGHT = (True,) * 4 + (False,) * 6
_DIAGONAL = (False,) * 4 + (True,) * 4 + (False,) * 2
_NOWHERE = (False,) * 10
ALONG = (
    *(_NOWHERE, _NOWHERE, tuple(line == JUMP for line in range(10))),
    *(_DIAGONAL, _STRAIGHT, (True,) * 8 + (False,) * 2, _NOWHERE),
)
"""By kind and direction: whether it goes that way, pawns and kings left out."""


class Board:
    """A legal position, changed by legal moves only.

    `kings` are their squares and `turn` whose turn it is, both by colour (True for White); `check`
    is whether the side to move is in check; `passant` is the square a pawn has just passed in a
    double step, or -1.
    """

    __slots__ = ("_met", "check", "halfmoves", "kings", "number", "passant", "squares", "turn")

    def __init__(
        self, squares: bytearray, *, turn: Color, passant: int, halfmoves: int, number: int
    ) -> None:
        self.squares = squares
        self.turn = turn
        self.passant = passant
        self.halfmoves = halfmoves
        self.number = number
        self.kings = [squares.index(8 * (1 + side) + KING, 0, 64) for side in (False, True)]
        self.check = self.attacked(self.kings[turn], 2 - turn)
        squares[TURN] = turn
        self._met: Sequence[int] | None = None
        self._note_passant()

    def legal(self, move: Move) -> bool:
        source, target, promotion = move
        squares, own = self.squares, 1 + self.turn
        piece = squares[source]
        if piece >> 3 != own or squares[target] >> 3 == own:
            return False
        kind = piece & 7
        if kind == PAWN:
            if (promotion == 0) is (target < 8 or target > 55) or not self._pawn(source, target):
                return False
        elif promotion:
            return False
        elif kind == KING:
            return self._king(move)
        elif not self.reaches(kind, source, target):
            return False
        return self.safe(source, target)

    def push(self, move: Move) -> None:
        """Make a legal move."""
        source, target, promotion = move
        squares, turn = self.squares, self.turn
        piece = squares[source]
        self.halfmoves = 0 if squares[target] or piece & 7 == PAWN else self.halfmoves + 1
        squares[source] = 0
        squares[target] = piece
        if squares[RIGHTS]:
            squares[RIGHTS] &= KEPT[source] & KEPT[target]
        passed, self.passant, squares[PASSANT] = self.passant, -1, 0
        self._met = None
        self.turn = squares[TURN] = not turn
        self.number += not turn
        if piece & 7 == PAWN:
            self._pawn_moved(source, target, promotion, passed)
        elif piece & 7 == KING:
            self._king_moved(move)
        else:
            self.check = self._checked(source, target)

    def reaches(self, kind: int, source: int, target: int) -> bool:
        """Whether a knight, bishop, rook or queen gets there if nothing else is against it."""
        line = LINES[source << 6 | target]
        if not ALONG[kind][line]:
            return False
        return line == JUMP or self._clear(source, target, line)

    def safe(self, source: int, target: int) -> bool:
        """Whether a piece other than the king may go there without leaving its king in check."""
        if target == self.passant:
            return self._safe_after(source, target)
        if self.check and target not in self._met_on():
            return False
        king = self.kings[self.turn] << 6
        line = LINES[king | source]
        if line >= JUMP or LINES[king | target] == line:
            return True
        return not self._uncovered(king >> 6, source, 2 - self.turn)

    def attacked(self, square: int, by: int) -> bool:
        """Whether any piece of colour `by` (1 Black, 2 White) attacks the square."""
        return next(self._attackers(square, by), None) is not None

    def _attackers(self, square: int, by: int) -> Iterator[int]:
        squares = self.squares
        knight = by << 3 | KNIGHT
        for other in JUMPS[square]:
            if squares[other] == knight:
                yield other
        for line, ray in enumerate(RAYS[square]):
            for other in ray:
                if piece := squares[other]:
                    if piece >> 3 == by and (
                        ALONG[piece & 7][line] or (other == ray[0] and self._beside(other, square))
                    ):
                        yield other
                    break

    def _beside(self, source: int, target: int) -> bool:
        """Whether the pawn or king on `source` attacks a square beside it."""
        piece = self.squares[source]
        if piece & 7 == PAWN:
            return target in HITS[piece >> 4][source]
        return piece & 7 == KING

    def _met_on(self) -> Sequence[int]:
        """Where a piece ends the check: on its giver, or between; nowhere if there are two."""
        if self._met is None:
            king = self.kings[self.turn]
            giver, *more = self._attackers(king, 2 - self.turn)
            line = LINES[king << 6 | giver]
            ray = RAYS[king][line] if line < JUMP else (giver,)
            self._met = () if more else ray[: ray.index(giver) + 1]
        return self._met

    def _clear(self, source: int, target: int, line: int) -> bool:
        squares = self.squares
        for square in RAYS[source][line]:
            if square == target:
                break
            if squares[square]:
                return False
        return True

    def _uncovered(self, king: int, source: int, by: int) -> bool:
        """Whether a piece of colour `by` looks along a line at the king once `source` is empty."""
        line = LINES[king << 6 | source]
        if line >= JUMP:
            return False
        squares = self.squares
        for square in RAYS[king][line]:
            if square != source and (piece := squares[square]):
                return piece >> 3 == by and ALONG[piece & 7][line]
        return False

    def _safe_after(self, source: int, target: int) -> bool:
        """The same as `safe`, by trying it."""
        squares, victim = self.squares, target
        if target == self.passant and squares[source] & 7 == PAWN:
            victim = target - 8 if self.turn else target + 8
        taken, piece = squares[victim], squares[source]
        squares[source], squares[victim], squares[target] = 0, 0, piece
        safe = not self.attacked(self.kings[self.turn], 2 - self.turn)
        squares[source], squares[target], squares[victim] = piece, 0, taken
        return safe

    def _pawn(self, source: int, target: int) -> bool:
        squares, forward = self.squares, 8 if self.turn else -8
        if target in HITS[self.turn][source]:
            return squares[target] != 0 or target == self.passant
        if squares[target]:
            return False
        if target == source + forward:
            return True
        double = target == source + 2 * forward and source >> 3 == (1 if self.turn else 6)
        return double and not squares[source + forward]

    def _king(self, move: Move) -> bool:
        source, target, _ = move
        if target in NEIGHBOURS[source]:
            squares = self.squares
            king, squares[source] = squares[source], 0
            safe = not self.attacked(target, 2 - self.turn)
            squares[source] = king
            return safe
        castling = CASTLINGS.get(move)
        if castling is None or self.check or not self.squares[RIGHTS] & castling.right:
            return False
        if any(self.squares[square] for square in castling.free):
            return False
        return not any(self.attacked(square, 2 - self.turn) for square in castling.free[:2])

    def _pawn_moved(self, source: int, target: int, promotion: int, passed: int) -> None:
        squares = self.squares
        if target == passed:
            squares[target + (8 if self.turn else -8)] = 0
            self.check = self.attacked(self.kings[self.turn], 2 - self.turn)
            return
        if promotion:
            squares[target] += promotion - PAWN
        self.check = self._checked(source, target)
        if abs(target - source) == 16:
            self.passant = (source + target) // 2
            self._note_passant()

    def _king_moved(self, move: Move) -> None:
        self.kings[not self.turn] = move.target
        if abs(move.target - move.source) == 2:
            rook, squares = CASTLINGS[move].rook, self.squares
            squares[rook.source], squares[rook.target] = 0, squares[rook.source]
            self.check = self._checked(rook.source, rook.target)
        else:
            self.check = self._uncovered(self.kings[self.turn], move.source, 2 - self.turn)

    def _checked(self, source: int, target: int) -> bool:
        """Whether what has just gone from `source` to `target` checks the king, or uncovers it."""
        king, piece = self.kings[self.turn], self.squares[target]
        kind = piece & 7
        if kind == PAWN:
            if king in HITS[piece >> 4][target]:
                return True
        elif self.reaches(kind, target, king):
            return True
        return self._uncovered(king, source, 2 - self.turn)

    def _note_passant(self) -> None:
        square = self.passant
        if square < 0:
            return
        pawn = 8 * (1 + self.turn) + PAWN
        for source in HITS[not self.turn][square]:
            if self.squares[source] == pawn and self._safe_after(source, square):
                self.squares[PASSANT] = square
