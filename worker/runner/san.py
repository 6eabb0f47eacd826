"""Moves in the notation that people and PGN files use (SAN), as short as it may be."""

from worker.runner.board import Board
from worker.runner.geometry import NAMES
from worker.runner.moves import CASTLINGS, KING, PAWN, Move
from worker.runner.rules import can_move

_LETTERS = "..NBRQK"


def make(board: Board, move: Move) -> str:
    """Make a legal move on the board, and say it in SAN."""
    said = _said(board, move)
    board.push(move)
    if board.check:
        return said + ("+" if can_move(board) else "#")
    return said


def _said(board: Board, move: Move) -> str:
    source, target, _ = move
    kind = board.squares[source] & 7
    if kind == PAWN:
        return _pawn(board, move)
    if kind == KING and move in CASTLINGS:
        return "O-O" if target > source else "O-O-O"
    takes = "x" if board.squares[target] else ""
    return f"{_LETTERS[kind]}{_origin(board, source, target, kind)}{takes}{NAMES[target]}"


def _pawn(board: Board, move: Move) -> str:
    source, target, promotion = move
    from_file = f"{NAMES[source][0]}x" if (target - source) % 8 else ""
    becomes = f"={_LETTERS[promotion]}" if promotion else ""
    return f"{from_file}{NAMES[target]}{becomes}"


def _origin(board: Board, source: int, target: int, kind: int) -> str:
    """As much of where the piece comes from as tells it from others of its kind."""
    if kind == KING:
        return ""
    others = [other for other in _same(board, source) if board.legal(Move(other, target))]
    if not others:
        return ""
    name = NAMES[source]
    if all((other ^ source) & 7 for other in others):
        return name[0]
    return name[1] if all((other ^ source) >> 3 for other in others) else name


def _same(board: Board, source: int) -> list[int]:
    """Where the other pieces of the same kind and colour stand."""
    squares = board.squares
    found, square = [], squares.find(squares[source], 0, 64)
    while square >= 0:
        if square != source:
            found.append(square)
        square = squares.find(squares[source], square + 1, 64)
    return found
