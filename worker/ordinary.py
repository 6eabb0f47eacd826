"""The ordinary move, tested and made on a python-chess board by a few operations on its fields.

Nine moves of ten need no more. Kings' moves, promotions, captures en passant and moves of promoted
pieces are left to python-chess, which also holds the board: its fields are kept as its own push
would leave them, but for the stack of moves.
"""

import chess
from chess import BB_SQUARES, Bitboard, Board, Color, Square

SQUARES = {name: square for square, name in enumerate(chess.SQUARE_NAMES)}

STRAIGHT = tuple(chess.BB_RANK_ATTACKS[s][0] | chess.BB_FILE_ATTACKS[s][0] for s in chess.SQUARES)
DIAGONAL = tuple(chess.BB_DIAG_ATTACKS[square][0] for square in chess.SQUARES)
ALIGNED = tuple(STRAIGHT[square] | DIAGONAL[square] for square in chess.SQUARES)
BETWEEN = tuple(tuple(chess.between(a, b) for b in chess.SQUARES) for a in chess.SQUARES)
_LAST_RANKS = chess.BB_RANK_1 | chess.BB_RANK_8


def _pushes(square: Square, forward: int, home: int) -> Bitboard:
    far = square + 2 * forward
    one = BB_SQUARES[square + forward] if 0 <= square + forward < 64 else 0
    return one | (BB_SQUARES[far] if chess.square_rank(square) == home else 0)


_PUSHES = (
    tuple(_pushes(square, -8, 6) for square in chess.SQUARES),
    tuple(_pushes(square, 8, 1) for square in chess.SQUARES),
)  # indexed by chess.Color: Black, White


def make(board: Board, source: Square, target: Square) -> bool | None:
    """Make the move if it is legal, and say whether it was; None when it is not ordinary."""
    turn = board.turn
    from_bit, to_bit = BB_SQUARES[source], BB_SQUARES[target]
    own = board.occupied_co[turn]
    special = board.kings | board.promoted
    if not own & from_bit or own & to_bit or special & (from_bit | to_bit):
        return None
    if board.pawns & from_bit:
        if to_bit & _LAST_RANKS or target == board.ep_square:
            return None
        reach = _pawn_reach(board, turn, source, to_bit)
    else:
        reach = _reach(board, source, from_bit)
    if not reach & to_bit or BETWEEN[source][target] & board.occupied:
        return False
    king = (board.kings & own).bit_length() - 1
    occupied = board.occupied & ~from_bit | to_bit
    if attacked(board, king, occupied, board.occupied_co[not turn] & ~to_bit, turn):
        return False
    _move(board, turn, source, target)
    return True


def attacked(
    board: Board, king: Square, occupied: Bitboard, theirs: Bitboard, colour: Color
) -> bool:
    """Whether `theirs` attack a `colour` king there, on a board with so much `occupied`."""
    if theirs & (
        chess.BB_KNIGHT_ATTACKS[king] & board.knights
        | chess.BB_PAWN_ATTACKS[colour][king] & board.pawns
    ):
        return True
    sliders = theirs & (
        STRAIGHT[king] & (board.rooks | board.queens)
        | DIAGONAL[king] & (board.bishops | board.queens)
    )
    between = BETWEEN[king]
    while sliders:
        square = sliders.bit_length() - 1
        if not between[square] & occupied:
            return True
        sliders ^= BB_SQUARES[square]
    return False


def has_free_pawn(board: Board) -> bool:
    """Whether the side to move, not in check, can push a pawn that nothing can have pinned."""
    own = board.occupied_co[board.turn]
    king = (board.kings & own).bit_length() - 1
    pawns = own & board.pawns & ~ALIGNED[king]
    ahead = pawns << 8 if board.turn else pawns >> 8
    return bool(ahead & ~board.occupied)


def _pawn_reach(board: Board, turn: Color, source: Square, to_bit: Bitboard) -> Bitboard:
    if board.occupied & to_bit:
        return chess.BB_PAWN_ATTACKS[turn][source]
    return _PUSHES[turn][source]


def _reach(board: Board, source: Square, from_bit: Bitboard) -> Bitboard:
    """What the piece on `source` reaches on an empty board."""
    if board.knights & from_bit:
        return chess.BB_KNIGHT_ATTACKS[source]
    if board.bishops & from_bit:
        return DIAGONAL[source]
    return STRAIGHT[source] if board.rooks & from_bit else ALIGNED[source]


def _move(board: Board, turn: Color, source: Square, target: Square) -> None:
    from_bit, to_bit = BB_SQUARES[source], BB_SQUARES[target]
    both = from_bit | to_bit
    board.ep_square = None
    board.halfmove_clock += 1
    if board.occupied & to_bit:
        _clear(board, to_bit, not turn)
    if board.pawns & from_bit:
        board.pawns ^= both
        board.halfmove_clock = 0
        if abs(target - source) == 16:
            board.ep_square = (source + target) // 2
    elif board.knights & from_bit:
        board.knights ^= both
    elif board.bishops & from_bit:
        board.bishops ^= both
    elif board.rooks & from_bit:
        board.rooks ^= both
    else:
        board.queens ^= both
    board.occupied ^= both
    board.occupied_co[turn] ^= both
    board.castling_rights &= ~both
    board.fullmove_number += not turn
    board.turn = not turn


def _clear(board: Board, bit: Bitboard, owner: Color) -> None:
    """Take the piece off a square that is about to be taken."""
    board.pawns &= ~bit
    board.knights &= ~bit
    board.bishops &= ~bit
    board.rooks &= ~bit
    board.queens &= ~bit
    board.occupied ^= bit
    board.occupied_co[owner] ^= bit
    board.halfmove_clock = 0
