"""The runner's rules of chess against python-chess's own, on games nobody has seen before."""

import os
import random
from itertools import permutations

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker import ordinary
from worker.openings import Opening
from worker.rules import Ending, Position, Termination

START = Opening(chess.STARTING_FEN)
ENDGAMES = (
    "8/8/4k3/8/8/3K4/4R3/8 w - - 0 1",
    "8/8/4k3/8/2b5/3K4/8/6N1 w - - 90 60",
    "8/P7/4k3/8/8/3K4/7p/8 b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "4k3/8/8/2pP4/8/8/8/4K3 w - c6 0 2",
    "8/8/3bk3/8/8/3KB3/7p/8 w - - 96 80",
)


def expected(board: chess.Board) -> Termination | None:
    """What python-chess says of a position, asked the slow way."""
    verdicts = (
        (board.is_checkmate(), Termination.CHECKMATE),
        (board.is_stalemate(), Termination.STALEMATE),
        (board.is_repetition(3), Termination.REPETITION),
        (board.halfmove_clock >= 100, Termination.FIFTY_MOVES),
        (board.is_insufficient_material(), Termination.MATERIAL),
    )
    return next((termination for holds, termination in verdicts if holds), None)


def likely_move(board: chess.Board, rng: random.Random) -> chess.Move:
    """Often a quiet move, sometimes straight back: random games repeat and shuffle too rarely."""
    legal = list(board.legal_moves)
    last = board.move_stack[-2] if len(board.move_stack) > 1 else None
    back = last and chess.Move(last.to_square, last.from_square)
    if back in legal and rng.random() < 0.4:
        return back
    quiet = [move for move in legal if not board.is_zeroing(move)]
    return rng.choice(quiet if quiet and rng.random() < 0.7 else legal)


FIELDS = [
    "pawns",
    "knights",
    "bishops",
    "rooks",
    "queens",
    "kings",
    "promoted",
    "occupied",
    "occupied_co",
    "turn",
    "castling_rights",
    "ep_square",
    "halfmove_clock",
    "fullmove_number",
]
LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = int(os.environ.get("SPSA_TEST_SEED", "1"))


def every_pair_of_squares(board: chess.Board) -> None:
    """What `ordinary` says of each is what python-chess says, unless it leaves the answer to it."""
    legal = {(move.from_square, move.to_square) for move in board.legal_moves}
    for source, target in permutations(chess.SQUARES, 2):
        made = ordinary.make(board.copy(stack=False), source, target)
        assert made is None or made == ((source, target) in legal), (board.fen(), source, target)


def test_random_games_are_those_of_python_chess_to_the_last_field() -> None:
    """Long form: some hundred thousand positions, and millions of moves tried in them."""
    rng = random.Random(SEED)
    for _ in range(3000 if LONG else 12):
        start = rng.choice((*ENDGAMES, *[chess.STARTING_FEN] * 3))
        position, board = Position(Opening(start)), chess.Board(start)
        ending = None
        while ending is None and board.ply() < 400:
            move = likely_move(board, rng)
            board.push(move)
            assert position.make(move.uci())
            ending = position.ending()
            for name in FIELDS:
                assert getattr(position.board, name) == getattr(board, name), (name, board.fen())
            if rng.random() < 0.05:
                every_pair_of_squares(position.board)
        assert (ending and ending.termination) == expected(board)


def ended_by(position: Position, move: str) -> Ending | None:
    assert position.make(move)
    return position.ending()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), start=st.sampled_from((chess.STARTING_FEN, *ENDGAMES)))
def test_every_ending_is_the_one_python_chess_sees(seed: int, start: str) -> None:
    rng = random.Random(seed)
    position, board = Position(Opening(start)), chess.Board(start)
    for _ in range(250):
        move = likely_move(board, rng)
        board.push(move)
        assert position.make(move.uci())
        ending = position.ending()
        assert (ending and ending.termination) == expected(board)
        if ending:
            return


def test_the_random_games_reach_every_ending() -> None:
    """Otherwise the test above says nothing of those it never meets."""
    rng, met = random.Random(7), set()
    while len(met) < 5:
        board = chess.Board(rng.choice((*ENDGAMES, ENDGAMES[0])))
        for _ in range(250):
            if found := expected(board):
                met.add(found)
                break
            board.push(likely_move(board, rng))


def test_the_position_command_tells_the_whole_game() -> None:
    position = Position(Opening(chess.STARTING_FEN, ("e2e4", "e7e5")))
    assert position.command == b"position startpos moves e2e4 e7e5"
    assert position.plies == 0
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    position = Position(Opening(fen))
    assert position.command == f"position fen {fen}".encode()
    assert position.make("e2e4")
    assert position.command == f"position fen {fen} moves e2e4".encode()


def test_repetitions_of_the_opening_count() -> None:
    moves = ("g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1")
    position = Position(Opening(chess.STARTING_FEN, moves))
    assert ended_by(position, "f6g8") == Ending(1, Termination.REPETITION)


def test_a_double_step_nobody_can_take_is_no_other_position() -> None:
    back_and_forth = ("g8f6", "g1f3", "f6g8", "f3g1")
    moves = ("e2e4", *back_and_forth, *back_and_forth)
    position = Position(Opening(chess.STARTING_FEN, moves[:-1]))
    assert ended_by(position, "f3g1") == Ending(1, Termination.REPETITION)


@pytest.mark.parametrize("move", ["e2e5", "e7e5", "e1g1", "a1a1", "e2e4q"])
def test_what_the_rules_forbid_is_none(move: str) -> None:
    assert not Position(START).make(move)


def test_the_winner_is_the_side_that_mates() -> None:
    position = Position(Opening(chess.STARTING_FEN, ("f2f3", "e7e5", "g2g4")))
    assert ended_by(position, "d8h4") == Ending(0, Termination.CHECKMATE)


def test_a_mate_on_the_hundredth_ply_is_a_mate() -> None:
    position = Position(Opening("6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 80"))
    assert ended_by(position, "a1a8") == Ending(2, Termination.CHECKMATE)
