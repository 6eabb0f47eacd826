"""The book that ships, other people's books, and what chance decides about a pair."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spsa.core.game_settings import Book, TimeControl, TimeKind
from spsa.errors import InvalidInput
from spsa.openings import BUILTIN, UNBALANCED, builtin_book
from spsa.openings import book as book_module
from spsa.openings.book import Opening, OpeningBook, Positions, drawn_time, load, permutation

MOVETIME = TimeControl(low=0.25, high=1.0)
NODES = TimeControl(kind=TimeKind.NODES, low=1, high=3)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has seen no book yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module", params=[BUILTIN, UNBALANCED])
def builtin(request: pytest.FixtureRequest) -> OpeningBook:
    return load(Book(name=request.param))


def test_the_builtin_book_is_large_right_and_varied(builtin):
    keys = {" ".join(opening.fen.split()[:4]) for opening in builtin.openings}
    assert len(keys) == len(builtin.openings) >= 500
    assert isinstance(builtin.openings, Positions)
    assert builtin.openings.faults("a built-in book") == []  # which loading skips
    boards = [chess.Board(opening.fen) for opening in builtin.openings]
    assert all(board.ply() == 8 and board.turn == chess.WHITE for board in boards)
    pawns = Counter(board.pawns & chess.BB_RANK_4 for board in boards)
    assert len(pawns) > 20
    assert max(pawns.values()) < len(boards) / 4


def test_the_same_pair_has_the_same_opening_for_ever():
    """Numbers of today: a change of these replays no old batch as it was."""
    assert permutation(7, 0, 6) == (4, 5, 2, 1, 3, 0)
    assert permutation(7, 1, 6) == (3, 4, 5, 0, 2, 1)
    assert drawn_time(MOVETIME, 42, 3) == 0.37680459878517286
    book = builtin_book(BUILTIN)
    assert book is not None
    assert load(Book()).sha256 == sha256(book.read_bytes()).hexdigest()


@given(seed=st.integers(-(2**63), 2**63), size=st.integers(1, 40), round_number=st.integers(0, 5))
def test_no_opening_comes_again_before_all_were_played(seed, size, round_number):
    book = OpeningBook(openings=tuple(Opening(str(i)) for i in range(size)), sha256="")
    first = round_number * size
    played = tuple(int(book.opening(seed, first + i).fen) for i in range(size))
    assert sorted(played) == list(range(size))
    assert played == permutation(seed, round_number, size)
    in_turn = [int(book.in_turn(first + i).fen) for i in range(size)]
    assert in_turn == list(range(size))


@given(seed=st.integers(0, 2**63), index=st.integers(0, 10_000))
def test_times_stay_in_their_range(seed, index):
    assert 0.25 <= drawn_time(MOVETIME, seed, index) <= 1.0
    assert drawn_time(MOVETIME, seed, index) == drawn_time(MOVETIME, seed, index)
    assert drawn_time(NODES, seed, index) in (1.0, 2.0, 3.0)


def book(folder: Path, text: str, name: str = "book.epd") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def faults(name: str, plies: int | None = None) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        load(Book(name=name, plies=plies))
    return [str(fault) for fault in caught.value.faults]


EPD = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"


def test_epd_and_fen_lines_are_read(tmp_path):
    lines = ["# a remark", "", " \t", f'{EPD} hmvc 3; fmvn 7; id "a b";', f"{EPD} 4 9", EPD]
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "book.epd").write_bytes(end.join(lines).encode())
        found = load(Book(name=str(tmp_path / "book.epd"))).openings
        moves = [opening.fen.split()[4:] for opening in found]
        assert moves == [["3", "7"], ["4", "9"], ["0", "1"]]


def test_every_bad_line_is_told_with_its_number(tmp_path):
    lines = [
        EPD,
        "not a position",
        "8/8/8/8/8/8/8/K7 w - -",  # one king
        "4k3/4R3/4K3/8/8/8/8/8 w - - 0 1",  # the side that is not to move is in check
        "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1",  # stalemate
        "8/8/4k3/8/8/3K4/8/8 w - - 0 1",  # nothing to win with
    ]
    name = book(tmp_path, "\n".join(lines))
    found = faults(name)
    assert faults(name) == found  # no mark says that it was looked through
    assert [text.split(":")[1] for text in found] == ["2", "3", "4", "5", "6"]
    assert all(text.startswith(f"{name}:") for text in found)


PGN = """[Event "one"]
[Result "*"]

1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 *

[Event "two"]
[Result "*"]

1. d4 d5 2. c4 e6 *
"""


def test_pgn_games_give_their_first_plies(tmp_path):
    name = book(tmp_path, PGN, "book.pgn")
    first, second = load(Book(name=name, plies=3)).openings
    assert first == Opening(chess.STARTING_FEN, ("e2e4", "e7e5", "g1f3"))
    assert second.moves == ("d2d4", "d7d5", "c2c4")
    assert [len(opening.moves) for opening in load(Book(name=name)).openings] == [6, 4]


GAME = '[Event "?"]\n[Result "*"]\n\n'
CHESS960 = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"
GAMES = [  # that would be played otherwise
    (f"{GAME}1. e4 -- 2. d4 *\n", "a null move"),
    (f'{GAME[:-1]}[Variant "Atomic"]\n\n1. e4 *\n', "a game of Atomic"),
    (f'{GAME[:-1]}[Variant "Chess960"]\n[FEN "{CHESS960}"]\n\n9. e4 *\n', "of Chess960"),
    (f"{GAME}{'1. Nf3 Nf6 2. Ng1 Ng8 ' * 300}*\n", "a game of more than 1,000 plies"),
]
LINES = [  # that are no positions to play from
    f"{EPD} 100 60",
    f"{EPD} 0 {'9' * 5000}",
    f"{EPD} hmvc -5; fmvn 3;",
    f'{EPD} id "{"x" * 1000}";',
    EPD.replace("4P3", "4\x1b3"),
]


@pytest.mark.parametrize(
    ("name", "text", "place", "said"),
    [
        ("book.pgn", PGN.replace("2. c4", "2. c6"), ":6: [opening] ", "illegal san: 'c6'"),
        *(("book.pgn", f"{PGN}\n{game}", ":11: [opening] ", said) for game, said in GAMES),
        *(("book.epd", f"{EPD}\n{line}\n", ":2: [opening] ", "") for line in LINES),
        ("book.epd", "", "", "no opening"),
        ("book.pgn", "\n", "", "no opening"),
        ("book.pgn", "# nothing\n", "", "neither a move nor a FEN header"),
        ("book.epd", "\udcff\udcfe\0", "", "UTF-8"),
    ],
)
def test_a_book_that_cannot_be_played_is_refused_with_the_line(
    tmp_path, name, text, place, said, capfd
):
    path = tmp_path / name
    path.write_text(text, errors="surrogateescape")
    for plies in (None, 1):
        fault = faults(str(path), plies if name == "book.pgn" else None)[0]
        assert fault.startswith(f"{path}{place}") and said in fault
        assert fault.isprintable() and len(fault) < 2_000
    assert capfd.readouterr() == ("", "")


def test_what_annotators_write_is_passed_over(tmp_path):
    moves = """1.e4! {[%eval 0.3] (a
    remark)} e5 $14 ; another
% and another
2. Nf3 (2. Ke2?? Kxe7 {illegal} (2. f4)) 2... Nc6+!? 3. Bb5 += a6 1/2-1/2"""
    (found,) = load(Book(name=book(tmp_path, GAME + moves, "book.pgn"))).openings
    assert found.moves == ("e2e4", "e7e5", "g1f3", "b8c6", "f1b5", "a7a6")


def test_a_book_of_too_many_openings_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(book_module, "MAX_OPENINGS", 2000)
    monkeypatch.setattr(book_module, "MAX_GAMES", 20)
    (fault,) = faults(book(tmp_path, f"{EPD}\n" * 2001))
    assert "2,001 lines" in fault and "2,000 at most" in fault
    (fault,) = faults(book(tmp_path, f"{GAME}1. e4 *\n\n" * 21, "book.pgn"))
    assert "more than 20 games" in fault


def test_a_book_with_another_hash_is_refused(tmp_path):
    name = book(tmp_path, EPD)
    digest = sha256(EPD.encode()).hexdigest()
    assert load(Book(name=name, sha256=digest)).sha256 == digest
    with pytest.raises(InvalidInput, match=digest):
        load(Book(name=name, sha256="0" * 64))
