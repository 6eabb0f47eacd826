"""Which moves a game accepts, when it ends, and what its engines are told of it."""

import random
from pathlib import Path

import chess
import pytest
from console import compete, games_of
from engines.faulty import engine
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.core.game_settings import Adjudication, Book, TablebaseRule
from spsa.errors import InvalidInput, TuningError
from spsa.openings.book import Opening, load
from worker.runner.adjudication import Adjudicator, open_tables
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


BOTH = "r3k2r/8/8/8/8/8/8/R3K2R w {} - 0 1"
DOUBLE = "rkbbnnrq/pppppppp/8/8/8/8/PPPPPPPP/1RKNBBRQ w GBga - 0 1"
BESIDE = Opening("4k3/8/8/8/8/8/8/5KR1 w G - 0 1", chess960=True)


def book(folder: Path, text: str, name: str = "book.epd") -> Book:
    path = folder / name
    path.write_text(text)
    return Book(name=str(path), chess960=True)


@pytest.mark.parametrize("rights", ["KQkq", "HAha"])
def test_shredder_and_x_fen_are_the_same_position(tmp_path, rights):
    (opening,) = load(book(tmp_path, BOTH.format(rights))).openings
    assert opening == Opening(BOTH.format("HAha"), chess960=True)
    position = Position(opening)
    assert [position.make(move) for move in ("e1g1", "e1c1", "e1h1", "e8a8")] == [False] * 2 + [
        True
    ] * 2
    assert position.command == f"position fen {opening.fen} moves e1h1 e8a8".encode()
    assert position.board.fen(shredder=True) == "2kr3r/8/8/8/8/8/8/R4RK1 w - - 2 2"


def test_a_book_of_chess960_is_no_book_of_standard_chess(tmp_path):
    double = book(tmp_path, DOUBLE)
    assert [opening.fen for opening in load(double).openings] == [DOUBLE]
    with pytest.raises(InvalidInput, match="BAD_CASTLING_RIGHTS"):
        load(Book(name=double.name))
    pgn = f'[Variant "Chess960"]\n[SetUp "1"]\n[FEN "{DOUBLE}"]\n\n1. e4 e5 *\n'
    (opening,) = load(book(tmp_path, pgn, "book.pgn")).openings
    assert opening == Opening(DOUBLE, ("e2e4", "e7e5"), chess960=True)
    with pytest.raises(InvalidInput, match="a game of standard chess"):
        load(book(tmp_path, "1. e4 e5 *\n", "standard.pgn"))


def test_a_match_of_chess960_castles_and_is_written_down(tmp_path):
    openings, pgn = book(tmp_path, f"{DOUBLE}\n{BESIDE.fen}\n"), tmp_path / "out.pgn"
    first, second = (engine(tmp_path, name, chess960=True) for name in ("first", "second"))
    done = compete(
        first, second, "--games", 4, "--nodes", 3000, "--chess960", "--book", openings.name,
        "-c", 1, "--pgn", pgn, "--max-moves", 60, "--order", "sequential",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    games = games_of(pgn)
    assert [game.errors for game in games] == [[]] * 4
    assert {game.headers["Variant"] for game in games} == {"Chess960"}
    assert [game.headers["FEN"] for game in games] == [DOUBLE] * 2 + [BESIDE.fen] * 2
    assert next(iter(games[2].mainline_moves())) == chess.Move.from_uci("f1g1")
    assert games[2].next().board().king(chess.WHITE) == chess.G1


def test_an_engine_without_the_option_is_refused(tmp_path):
    first = engine(tmp_path, "first", chess960=True)
    match = (first, engine(tmp_path, "second"), "--games", 2, "--nodes", 3000, "--chess960")
    done = compete(*match, "--book", book(tmp_path, DOUBLE).name, "-c", 1)
    said = "second: refused option: it declares no option 'UCI_Chess960', so it does not play"
    assert done.returncode == 1 and said in done.stderr, done.stderr


THREE = TablebaseRule(pieces=3)
VALUES = {"KQvK": (2, -2), "KRvK": (2, -2), "KPvK": (0, 0), "KBvK": (0, 0), "KNvK": (0, 0)}
"""White's and Black's value to move, which is right wherever no piece can be taken at once."""

TAKES = "8/8/8/8/5k2/8/3q4/K2Q4 w - - 0 1"
WHITE_WINS, DRAW = Ending(2, Termination.TABLES), Ending(1, Termination.TABLES)


def table(name: str, white: int, black: int) -> bytes:
    """A table of the Syzygy format with one value for each side to move, as python-chess reads it.

    After the magic number: flags (two sides, pawns), for each file of a pawn or once the order and
    the pieces, then for each side a byte that says that there is one value, and the value plus 2.
    """
    own, other = name.split("v")
    codes = {letter: code for code, letter in enumerate("PNBRQK", start=1)}
    pieces = [codes[p] for p in own] + [codes[p] | 8 for p in other]
    files = 4 if "P" in name else 1
    one = bytes([0, *(p | p << 4 for p in sorted(pieces, key=lambda p: p != 1))])
    head = chess.Board.tbw_magic + bytes([1 | 2 * (files == 4)]) + one * files
    head += b"\0" * (len(head) % 2) + bytes([0x80, white + 2, 0x80, black + 2]) * files
    return head + b"\0" * ((16 - len(head)) % 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "syzygy"
    made.mkdir()
    for name, values in VALUES.items():
        (made / f"{name}.rtbw").write_bytes(table(name, *values))
    return made


class Cursed:
    """A table in which every position is won, but not within fifty moves."""

    def get_wdl(self, board: chess.Board) -> int:
        return 1


def ruling(rule: TablebaseRule, tables: object, fen: str, *moves: str) -> Ending | None:
    adjudicator = Adjudicator(Adjudication(draw=None, resign=None, syzygy=rule), tables)
    position = Position(Opening(fen))
    rulings = [adjudicator.ending(position, None) for move in moves if position.make(move)]
    assert len(rulings) == len(moves)
    return rulings[-1]


@pytest.mark.parametrize(
    ("fen", "moves", "ending"),
    [
        (TAKES, ["d1d2"], WHITE_WINS),
        ("8/8/8/8/5k2/8/3q4/K2N4 b - - 0 1", ["d2d1"], Ending(0, Termination.TABLES)),
        ("8/8/8/8/5k2/8/3q4/K1N5 b - - 0 1", ["d2c1"], Ending(0, Termination.TABLES)),
        ("8/8/8/8/5k2/8/3p4/K1N5 b - - 0 1", ["d2c1n"], DRAW),
        ("8/8/8/8/5k2/P7/8/K7 w - - 0 1", ["a3a4"], DRAW),
        ("8/8/8/8/5k2/P7/8/K7 w - - 0 1", ["a1a2"], None),  # no piece was taken, no pawn moved
        ("8/8/8/8/5k2/P6p/8/K7 w - - 0 1", ["a3a4"], None),  # four pieces
        ("4k3/8/8/8/8/8/7p/4K2R w K - 0 1", ["h1h2"], WHITE_WINS),
    ],
)
def test_a_capture_or_a_pawn_move_into_the_tables_ends_the_game(folder, fen, moves, ending):
    tables = open_tables(THREE, [folder])
    assert ruling(THREE, tables, fen, *moves) == ending
    assert ruling(THREE, None, fen, *moves) is ruling(None, tables, fen, *moves) is None


def test_no_table_knows_castling():
    fen = "4k3/8/8/8/8/8/p7/4K2R b K - 0 1"
    assert ruling(TablebaseRule(pieces=4), Cursed(), fen, "a2a1n") is None
    assert ruling(TablebaseRule(pieces=4), Cursed(), fen.replace(" K ", " - "), "a2a1n") == DRAW


def test_a_win_that_takes_too_long_is_a_draw_unless_asked_otherwise():
    assert ruling(THREE, Cursed(), TAKES, "d1d2") == DRAW
    lost = ruling(TablebaseRule(pieces=3, fifty_moves=False), Cursed(), TAKES, "d1d2")
    assert lost == Ending(0, Termination.TABLES), "black to move wins"


def test_missing_tables_are_named(folder, tmp_path):
    assert open_tables(TablebaseRule(pieces=3, folder=str(folder)), [])
    with pytest.raises(TuningError, match="with --syzygy"):
        open_tables(THREE, [])
    with pytest.raises(TuningError, match="is no folder"):
        open_tables(THREE, [tmp_path / "none"])
    (folder / "KRvK.rtbw").unlink()
    with pytest.raises(TuningError, match=r"up to 3 pieces: no KRvK\.rtbw"):
        open_tables(THREE, [folder])
    with pytest.raises(TuningError, match=r"up to 5 pieces: .*\.rtbw and 138 more"):
        open_tables(TablebaseRule(pieces=5), [folder])


def test_a_match_ends_by_tables(folder, tmp_path):
    book, pgn = tmp_path / "book.epd", tmp_path / "out.pgn"
    book.write_text(TAKES)
    players = [engine(tmp_path, name, moves="d1d2") for name in ("first", "second")]
    words = (*players, "--games", 2, "--nodes", 3000, "--book", book, "-c", 1, "--tb-pieces", 3)
    done = compete(*words, "--syzygy", folder, "--pgn", pgn)
    assert done.returncode == 0, done.stderr
    games = games_of(pgn)
    assert [game.headers["Result"] for game in games] == ["1-0"] * 2
    assert {game.headers["Termination"] for game in games} == {"adjudication"}
    assert "tablebase adjudication" in pgn.read_text()
    done = compete(*words)
    assert done.returncode == 1 and "name the folders" in done.stderr
