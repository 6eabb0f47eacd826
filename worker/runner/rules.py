"""The rules of chess as a runner needs them: one legality test a move, and its ending if any.

Repetitions are counted as the moves are made, and an ending is looked for only where the last move
can have brought it about. The answers are those of python-chess, as tests hold them to.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from worker.runner import fen
from worker.runner.board import TURN, Board
from worker.runner.geometry import HITS, JUMP, JUMPS, LINES, NEIGHBOURS, RAYS
from worker.runner.moves import BISHOP, KING, KNIGHT, PAWN, QUEEN, ROOK, Color, Move, parsed
from worker.runner.openings import Opening


class Termination(StrEnum):
    """Why a game ended; a void game has no termination but a reason."""

    CHECKMATE = "checkmate"
    STALEMATE = "stalemate"
    REPETITION = "threefold repetition"
    FIFTY_MOVES = "fifty-move rule"
    MATERIAL = "insufficient material"
    DRAW = "draw adjudication"
    RESIGN = "resign adjudication"
    MAX_MOVES = "maximum number of moves"
    TIME = "time forfeit"


class Ending(NamedTuple):
    """Half points of White (0, 1, 2), and why."""

    white: int
    termination: Termination


def won_by(side: Color, termination: Termination) -> Ending:
    return Ending(2 if side else 0, termination)


def drawn(termination: Termination) -> Ending:
    return Ending(1, termination)


class Position:
    """A game's board from its opening on, and the `position` command that says the same."""

    def __init__(self, opening: Opening) -> None:
        self.board = fen.board(opening.fen)
        self.command = _command(opening.fen)
        self.plies = 0
        self._joint = b" moves "
        self._seen: dict[bytes, int] = {}
        self._count()
        for move in opening.moves:
            if not self.make(move):
                raise ValueError(f"{move} is illegal in {fen.written(self.board)}")
            self.ending()
        self.plies = 0

    @property
    def turn(self) -> Color:
        return self.board.turn

    def make(self, text: str) -> bool:
        """Make the move that `text` (UCI) means here; False when the rules forbid it.

        `ending` has to be asked after every move.
        """
        move = parsed(text)
        if move is None or not self.board.legal(move):
            return False
        self.board.push(move)
        self.plies += 1
        self.command += self._joint + text.encode()
        self._joint = b" "
        return True

    def ending(self) -> Ending | None:
        """The ending that the last move has brought about, if it has."""
        board = self.board
        if not can_move(board):
            if board.check:
                return won_by(not board.turn, Termination.CHECKMATE)
            return drawn(Termination.STALEMATE)
        return self._drawn(self._count())

    def _drawn(self, occurrences: int) -> Ending | None:
        if occurrences >= 3:
            return drawn(Termination.REPETITION)
        quiet = self.board.halfmoves
        if quiet >= 100:
            return drawn(Termination.FIFTY_MOVES)
        if quiet == 0 and is_dead(self.board):
            return drawn(Termination.MATERIAL)
        return None

    def _count(self) -> int:
        """How often this position has now stood on the board."""
        if self.board.halfmoves == 0:
            self._seen.clear()  # a capture or a pawn move: nothing before it can come back
        key = bytes(self.board.squares)
        occurrences = self._seen.get(key, 0) + 1
        self._seen[key] = occurrences
        return occurrences


def can_move(board: Board) -> bool:
    """Whether the side to move has a legal move."""
    if not board.check and _has_free_pawn(board):
        return True
    return any(board.legal(move) for move in _steps(board))


def is_dead(board: Board) -> bool:
    """Whether no series of legal moves can end in mate, as far as the pieces alone tell."""
    squares = board.squares
    for kind in (PAWN, ROOK, QUEEN):
        if squares.find(8 | kind, 0, TURN) >= 0 or squares.find(16 | kind, 0, TURN) >= 0:
            return False
    knights = sum(squares.count(colour | KNIGHT, 0, TURN) for colour in (8, 16))
    bishops = [square for square in range(64) if squares[square] & 7 == BISHOP]
    if knights:
        return knights == 1 and not bishops
    return len({(square >> 3 ^ square) & 1 for square in bishops}) <= 1


def _has_free_pawn(board: Board) -> bool:
    """Whether the side to move can push a pawn that nothing can have pinned."""
    squares, turn = board.squares, board.turn
    pawn, forward = 8 * (1 + turn) + PAWN, 8 if turn else -8
    king = board.kings[turn] << 6
    square = squares.find(pawn, 8, 56)
    while square >= 0:
        if not squares[square + forward] and LINES[king | square] >= JUMP:
            return True
        square = squares.find(pawn, square + 1, 56)
    return False


def _steps(board: Board) -> Iterator[Move]:
    """One move at least of every piece that has any: those to the nearest squares of each line.

    Moves along a line to squares farther away are added where a check has to be met.
    """
    own, king = 1 + board.turn, board.kings[board.turn]
    for source in (king, *range(64)) if board.check else range(64):
        piece = board.squares[source]
        if piece >> 3 == own:
            for target in _targets(board, source, piece & 7):
                yield Move(source, target, _promotion(piece & 7, target))


def _targets(board: Board, source: int, kind: int) -> Iterator[int]:
    if kind == PAWN:
        forward = 8 if board.turn else -8
        yield from HITS[board.turn][source]
        yield source + forward
        if 0 <= source + 2 * forward < 64:
            yield source + 2 * forward
    elif kind == KING:
        yield from NEIGHBOURS[source]
    elif kind == KNIGHT:
        yield from JUMPS[source]
    else:
        yield from _along(board, source, kind)


def _along(board: Board, source: int, kind: int) -> Iterator[int]:
    for line in range(4 if kind == BISHOP else 0, 4 if kind == ROOK else 8):
        ray = RAYS[source][line]
        yield from ray if board.check else ray[:1]


def _promotion(kind: int, target: int) -> int:
    return QUEEN if kind == PAWN and not 8 <= target < 56 else 0


def _command(text: str) -> bytes:
    where = "startpos" if text == fen.STARTING_FEN else f"fen {text}"
    return f"position {where}".encode()
