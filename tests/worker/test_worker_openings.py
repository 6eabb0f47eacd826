"""The book that ships, other people's books, and what chance decides about a pair."""

from collections import Counter
from hashlib import sha256
from pathlib import Path

import chess
import pytest
from golden import compare_cases
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
def cache(tmp_path, monkeypatch):
    """A machine that has seen no book yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module", params=[BUILTIN, UNBALANCED])
def builtin(request):
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


EPD = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"
GAME = '[Event "?"]\n[Result "*"]\n\n'


def book(folder, text, name="book.epd"):
    path = folder / name
    path.write_text(text)
    return str(path)


def refusal(name):
    with pytest.raises(InvalidInput) as caught:
        load(Book(name=name))
    (fault,) = caught.value.faults
    return str(fault)


NAMED = {
    "{many}": "9" * 5000,
    "{long}": "x" * 1000,
    "{plies}": "1. Nf3 Nf6 2. Ng1 Ng8 " * 300,
    "{escape}": "\x1b",
    "{bytes}": "\udcff\udcfe\0",
}


def test_a_book_has_these_openings_or_is_refused_with_the_line(tmp_path, capfd):
    """Whatever ends its lines, and however many plies are taken of a game."""

    def said(path, plies=None):
        try:
            found = load(Book(name=str(path), plies=plies, chess960=path.stem == "960")).openings
        except InvalidInput as error:
            faults = [str(fault) for fault in error.faults]
            assert all(fault.isprintable() and len(fault) < 2_000 for fault in faults)
            return [fault.replace(str(path), path.name) for fault in faults]
        return [" ".join((opening.fen, *opening.moves)) for opening in found]

    def shown(files):
        ((name, text),) = files.items()
        for mark, meant in NAMED.items():
            text = text.replace(mark, meant)
        path = tmp_path / name
        ends, found = ("\n",) if path.suffix == ".pgn" else ("\r\n", "\r", "\n"), []
        for end in ends:
            path.write_text(text.replace("\n", end), errors="surrogateescape", newline="")
            found += [said(path), said(path)]  # no mark says that it was looked through
        if path.suffix == ".pgn":
            is_refused = found[0][0].startswith(name)
            first_plies = [one if is_refused else " ".join(one.split()[:7]) for one in found[0]]
            assert said(path, plies=1) == first_plies
        assert all(one == found[0] for one in found)
        return found[0]

    compare_cases(Path(__file__).with_name("books.txt"), shown)
    assert capfd.readouterr() == ("", "")


def test_a_book_with_another_hash_or_of_too_many_openings_is_refused(tmp_path, monkeypatch):
    name, digest = book(tmp_path, EPD), sha256(EPD.encode()).hexdigest()
    assert load(Book(name=name, sha256=digest)).sha256 == digest
    with pytest.raises(InvalidInput, match=digest):
        load(Book(name=name, sha256="0" * 64))
    monkeypatch.setattr(book_module, "MAX_OPENINGS", 2000)
    monkeypatch.setattr(book_module, "MAX_GAMES", 20)
    fault = refusal(book(tmp_path, f"{EPD}\n" * 2001))
    assert "2,001 lines" in fault and "2,000 at most" in fault
    fault = refusal(book(tmp_path, f"{GAME}1. e4 *\n\n" * 21, "book.pgn"))
    assert "more than 20 games" in fault
