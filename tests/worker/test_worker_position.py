"""Which moves a game accepts, when it ends, and what its engines are told of it."""

import random

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.openings.book import Opening
from worker.runner.position import Ending, Position, Termination

START = Opening(chess.STARTING_FEN)
ENDGAMES = (
    "8/8/5k2/8/8/3K4/4R3/8 w - - 0 1",
    "8/8/4k3/8/2b5/3K4/8/6N1 w - - 90 60",
    "8/P7/4k3/8/8/3K4/7p/8 b - - 0 1",
    "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1",
    "4k3/8/8/2pP4/8/8/8/4K3 w - c6 0 2",
    "8/8/3bk3/8/8/3KB3/7p/8 w - - 96 80",
    "k7/8/1K6/8/8/8/8/6Q1 w - - 0 1",
    "7k/5K2/8/6N1/8/8/6R1/8 w - - 0 1",
)


def expected(board: chess.Board) -> Termination | None:
    """The ending of a position, with every question asked after every move."""
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


def ended_by(position: Position, move: str) -> Ending | None:
    assert position.make(move)
    return position.ending()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), start=st.sampled_from((chess.STARTING_FEN, *ENDGAMES)))
def test_the_shortcuts_miss_no_ending(seed, start):
    rng = random.Random(seed)
    position, board = Position(Opening(start)), chess.Board(start)
    for _ in range(150):
        move = likely_move(board, rng)
        board.push(move)
        ending = ended_by(position, move.uci())
        assert (ending and ending.termination) == expected(board)
        if ending:
            return


def test_the_position_command_tells_the_whole_game():
    position = Position(Opening(chess.STARTING_FEN, ("e2e4", "e7e5")))
    assert position.command == b"position startpos moves e2e4 e7e5"
    assert position.plies == 0
    fen = "4k3/8/8/8/8/8/4P3/4K3 w - - 0 1"
    position = Position(Opening(fen))
    assert position.command == f"position fen {fen}".encode()
    assert position.make("e2e4")
    assert position.command == f"position fen {fen} moves e2e4".encode()
    assert position.plies == 1


def test_an_opening_with_an_illegal_move_is_refused():
    with pytest.raises(ValueError, match=r"e7e4 is illegal in rnbqkbnr/pppppppp/8/8/4P3"):
        Position(Opening(chess.STARTING_FEN, ("e2e4", "e7e4")))


QUIET = "6k1/5ppp/8/8/8/8/8/R3K3 w - - {} 80"
REPEATED = Ending(1, Termination.REPETITION)


@pytest.mark.parametrize(
    ("fen", "moves", "ending"),
    [
        # the moves of an opening count, too
        (
            chess.STARTING_FEN,
            ["g1f3", "g8f6", "f3g1", "f6g8", "g1f3", "g8f6", "f3g1", "f6g8"],
            REPEATED,
        ),
        (chess.STARTING_FEN, ["f2f3", "e7e5", "g2g4", "d8h4"], Ending(0, Termination.CHECKMATE)),
        # a mate on the hundredth ply is a mate, another move a draw
        (QUIET.format(99), ["a1a8"], Ending(2, Termination.CHECKMATE)),
        (QUIET.format(98), ["a1a7"], None),
        (QUIET.format(98), ["a1a7", "g8h8"], Ending(1, Termination.FIFTY_MOVES)),
    ],
)
def test_a_game_ends_by_the_rules(fen, moves, ending):
    assert ended_by(Position(Opening(fen, tuple(moves[:-1]))), moves[-1]) == ending


NO_MOVES = ("e2e5", "e7e5", "e1h1", "e2e4q", "e2e4_", "E2E4", "N@e4", "0000", "", "é")


@pytest.mark.parametrize(
    ("fen", "refused", "accepted"),
    [
        (chess.STARTING_FEN, NO_MOVES, "e2e4"),
        # UCI castles by the king's two steps, not onto the rook and not as O-O
        ("r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1", ("e1h1", "e1a1", "O-O", "e1b1"), "e1g1"),
        ("r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", ("e8h8", "e8a8", "e8g8q"), "e8c8"),
        # a pawn promotes where it has to, to a piece that it may become
        ("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", ("a7a8", "a7a8k", "a7a8p", "a7a8Q"), "a7a8n"),
        # a king is never left in check
        ("4k3/4r3/8/8/8/8/4N3/4K3 w - - 0 1", ("e2c3",), "e1d1"),
    ],
)
def test_moves_are_those_of_the_rules_in_uci_notation(fen, refused, accepted):
    position = Position(Opening(fen))
    command = position.command
    assert [move for move in refused if position.make(move)] == []
    assert (position.board, position.command) == (chess.Board(fen), command)
    assert position.make(accepted)
