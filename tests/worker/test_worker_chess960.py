"""Chess960: castling as king takes rook, books with any form of its rights, whole matches."""

from pathlib import Path

import chess
import pytest
from console import compete, games_of
from engines.faulty import engine

from spsa.core.game_settings import Book
from spsa.errors import InvalidInput
from spsa.openings.book import Opening, load
from worker.runner.position import Position

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
