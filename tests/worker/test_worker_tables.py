"""Games that Syzygy tables end: which positions, with which result, and tables that are missing."""

from pathlib import Path

import chess
import pytest
from console import compete, games_of
from engines.faulty import engine

from spsa.core.game_settings import Adjudication, TablebaseRule
from spsa.errors import TuningError
from spsa.openings.book import Opening
from worker.runner.adjudication import Adjudicator, open_tables
from worker.runner.position import Ending, Position, Termination

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
