"""The runner's rules of chess against python-chess's own, on games nobody has seen before."""

import os
import random
from itertools import permutations

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.runner import fen, san
from worker.runner.board import Board
from worker.runner.geometry import NAMES
from worker.runner.moves import Move, parsed
from worker.runner.openings import Opening
from worker.runner.rules import Ending, Position, Termination, can_move, is_dead

START = Opening(chess.STARTING_FEN)
ENDGAMES = (
    "8/8/5k2/8/8/3K4/4R3/8 w - - 0 1",
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


LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = int(os.environ.get("SPSA_TEST_SEED", "1"))


def every_move(board: Board, reference: chess.Board) -> None:
    """Of all pairs of squares, with and without a promotion, the legal ones are python-chess's."""
    legal = {chess.Move.uci(move) for move in reference.legal_moves}
    for source, target in permutations(NAMES, 2):
        for promotion in ("", "n", "b", "r", "q") if target[1] in "18" else ("", "q"):
            text = source + target + promotion
            move = parsed(text)
            assert move is not None
            assert board.legal(move) == (text in legal), (reference.fen(), text)


def alike(board: Board, reference: chess.Board) -> None:
    assert fen.written(board) == reference.fen()
    assert board.check == reference.is_check(), reference.fen()
    assert can_move(board) == any(reference.legal_moves), reference.fen()
    assert is_dead(board) == reference.is_insufficient_material(), reference.fen()


def test_random_games_are_those_of_python_chess() -> None:
    """Long form: some hundred thousand positions, and a thousand million moves tried in them."""
    rng = random.Random(SEED)
    for _ in range(3000 if LONG else 40):
        start = rng.choice((*ENDGAMES, *[chess.STARTING_FEN] * 3))
        position, board = Position(Opening(start)), chess.Board(start)
        ending = None
        while ending is None and board.ply() < 400:
            move = likely_move(board, rng)
            # what was tried has changed nothing
            if rng.random() < 0.02:
                every_move(position.board, board)
            said = board.san(move)
            assert san.make(fen.board(board.fen()), Move(*squares(move))) == said
            board.push(move)
            assert position.make(move.uci())
            alike(position.board, board)
            ending = position.ending()
        assert (ending and ending.termination) == expected(board)


def squares(move: chess.Move) -> tuple[int, int, int]:
    return move.from_square, move.to_square, move.promotion or 0


CROWDED = (
    "8/8/8/2k5/4Q2Q/8/8/K3Q2Q w - - 0 1",
    "3k4/8/8/8/N5N1/8/8/N3K1N1 w - - 0 1",
    "r1b1k1r1/P1P4P/8/8/8/8/p1p4p/R3K1NR w Q - 0 1",
    "8/6k1/8/R6R/8/8/8/R3K2R w KQ - 0 1",
    "4k3/8/8/8/b1b5/8/b1b5/4K3 b - - 0 1",
)


@pytest.mark.parametrize("start", CROWDED)
def test_pieces_of_a_kind_are_told_apart_as_in_python_chess(start: str) -> None:
    board = chess.Board(start)
    every_move(fen.board(start), board)
    for move in board.legal_moves:
        assert san.make(fen.board(start), Move(*squares(move))) == board.san(move)


TIGHT = (
    "8/8/8/KPp4r/8/8/8/4k3 w - c6 0 2",  # en passant would open the rank to the king
    "8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1",
    "8/8/1k6/8/3pP3/8/8/4K1B1 b - e3 0 1",
    "8/8/8/1k1pP3/8/8/8/4K2B w - d6 0 2",
    "r3k2r/8/8/8/4R3/8/8/R3K2R b KQkq - 0 1",  # no castling out of, through and into check
    "r3k2r/8/8/8/5R2/8/8/R3K2R b KQkq - 0 1",
    "r3k2r/8/8/8/1R6/8/8/R3K2R b KQkq - 0 1",
    "r3k2r/7P/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "1r2k2r/8/8/8/8/8/8/R3K1NR w KQk - 0 1",
    "4k3/8/8/1B6/8/8/3r4/R3K2R b KQ - 0 1",
    "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",
    "7k/5K2/6Q1/8/8/8/8/8 b - - 0 1",
    "k7/8/8/8/8/8/1r6/K1n5 w - - 0 1",
)


@pytest.mark.slow
@pytest.mark.parametrize("start", TIGHT)
def test_a_king_is_never_left_in_check(start: str) -> None:
    reference = chess.Board(start)
    alike(fen.board(start), reference)
    every_move(fen.board(start), reference)
    for move in reference.legal_moves:
        board, after = fen.board(start), reference.copy()
        board.push(Move(*squares(move)))
        after.push(move)
        alike(board, after)
        every_move(board, after)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("8/8/4k3/8/8/3K4/4R3/8 b - - 7 9", None),
        ("8/8/4k3/8/8/3K4/4R3/8 b KQkq - 7 9;", "8/8/4k3/8/8/3K4/4R3/8 b - - 7 9"),
        ("8/8/4k3/8/8/3K4/4R3/8 b - - hmvc 7; fmvn 9;", "8/8/4k3/8/8/3K4/4R3/8 b - - 7 9"),
        ("8/8/4k3/8/4P3/3K4/8/8 b - e3", "8/8/4k3/8/4P3/3K4/8/8 b - - 0 1"),
        ("r3k3/8/8/8/8/8/8/4K2R w Kq - 0 0", "r3k3/8/8/8/8/8/8/4K2R w Kq - 0 1"),
    ],
)
def test_a_position_is_written_in_one_way(text: str, same: str | None) -> None:
    assert fen.written(fen.board(text)) == (same or text)
    assert fen.read(fen.written(fen.board(text))) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8/8/4k3/8/8/3K4/4R3 b - - 7 9",
        "8/8/4k3/8/8/3K4/4R4/8 b - - 7 9",
        "88/4k3/8/8/3K4/4R3/8 b - - 7 9",
        "8/8/8/8/8/3K4/4R3/8 b - - 7 9",
        "8/8/4k3/8/8/3K4/4R3/8 x - - 7 9",
        "8/8/4k3/8/8/3K4/4R3/8 b HAha - 7 9",
        "8/8/4k3/8/8/3K4/4R3/8 b - - 7 9 0",
        "8/8/4k3/8/8/3K4/4R3/8 b - - bm e2e4;",
    ],
)
def test_what_is_not_plain_is_left_to_python_chess(text: str) -> None:
    assert fen.read(text) is None


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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "move", ["e2e5", "e7e5", "e1g1", "e1h1", "a1a1", "e2e4q", "e2e4_", "e2", "0000", ""]
)
def test_what_the_rules_forbid_is_none(move: str) -> None:
    assert not Position(START).make(move)


def test_the_winner_is_the_side_that_mates() -> None:
    position = Position(Opening(chess.STARTING_FEN, ("f2f3", "e7e5", "g2g4")))
    assert ended_by(position, "d8h4") == Ending(0, Termination.CHECKMATE)


def test_a_mate_on_the_hundredth_ply_is_a_mate() -> None:
    position = Position(Opening("6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 80"))
    assert ended_by(position, "a1a8") == Ending(2, Termination.CHECKMATE)
