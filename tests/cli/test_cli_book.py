"""`book make` writes a book that the runner reads, chosen by the engine's own scores."""

import json
import sys
from itertools import islice
from pathlib import Path

import chess
import pytest

from spsa.builds.searches import Search
from spsa.cli import execute
from spsa.core.game_settings import Book
from spsa.master.book_making import RandomLines, Window, chosen
from spsa.openings.book import load

ENGINE = """\
import sys

import chess

board = chess.Board()
for line in sys.stdin:
    match line.split():
        case ["uci"]:
            print("option name UCI_Chess960 type check default false")
            print("option name calm type spin default 3 min 0 max 9")
            print("uciok", flush=True)
        case ["isready"]:
            print("readyok", flush=True)
        case ["position", "startpos", *moves]:
            board = chess.Board()
            for move in moves[1:]:
                board.push_uci(move)
        case ["position", "fen", a, b, c, d, e, f, *moves]:
            board = chess.Board(" ".join((a, b, c, d, e, f)))
            for move in moves[1:]:
                board.push_uci(move)
        case ["go", *_]:
            score = len(list(board.legal_moves)) - 20
            if "mute" not in sys.argv:
                print(f"info depth 1 nodes 10 score cp {10 * score}")
            print("bestmove", min(board.legal_moves, key=chess.Move.uci), flush=True)
        case ["quit"]:
            break
"""
QUICK = ("--nodes", "20", "--plies", "3", "-c", "2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    (tmp_path / "engine.py").write_text(ENGINE)
    for name, word in (("engine", ""), ("mute", "mute")):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {tmp_path / "engine.py"} {word} "$@"\n')
        path.chmod(0o755)
    (tmp_path / "config.toml").write_text(
        '[delivery]\nkind = "uci"\nengine = "engine"\n[time_control]\nkind = "nodes"\nlow = 7\n'
        "[adjudication]\nmax_moves = 6\n"
    )
    (tmp_path / "params.toml").write_text("[calm]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\n")
    return tmp_path


def made(*arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert execute(["book", "make", "out.epd", "--engine", "engine", *QUICK, *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_its_positions_score_as_wanted_and_are_the_same_each_time(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = ("--games", "0", "--size", "6", "--window", "30", "90", "--json")
    found = made(*usual, capsys=capsys)
    book = load(Book(name=str(folder / "out.epd")))
    assert (found["openings"], found["sha256"]) == (6, book.sha256)
    for opening in book.openings:
        board = opening.board()
        assert board.ply() == 3
        assert 30 <= 10 * abs(board.legal_moves.count() - 20) <= 90
    assert made(*usual, "-c", "1", capsys=capsys)["sha256"] == book.sha256


@pytest.mark.slow
def test_a_book_is_chosen_from_a_file_and_its_draws_are_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -"
    after = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
    open_ones = "rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 0 2"
    (folder / "in.epd").write_text(f"{start}\n{after}\n{open_ones}\n")
    given = ("--from", "in.epd", "--kind", "balanced", "--games", "2")
    assert execute(["book", "make", "out.epd", *QUICK, *given]) == 0
    told = capsys.readouterr().out
    openings = load(Book(name=str(folder / "out.epd"))).openings
    assert {opening.fen.split()[0] for opening in openings} == {start.split()[0], after.split()[0]}
    assert "1000 were wanted: there are no more positions" in told
    assert "of 2 games at nodes=7" in told


def test_lines_of_chess960_begin_with_its_positions(folder: Path) -> None:
    def search(fen: str, nodes: int) -> Search:
        board = chess.Board(fen, chess960=True)
        score = 10 * (board.legal_moves.count() - 20)
        return Search(min(move.uci() for move in board.legal_moves), score, nodes)

    lines = RandomLines(plies=4, slack=500, nodes=1, seed=1, chess960=True)
    window = Window(low=0, high=500, nodes=1)
    found = [opening for opening in islice(chosen(lines, window, [search]), 20) if opening]
    (folder / "out.epd").write_text("".join(f"{opening.epd}\n" for opening in found))
    book = load(Book(name=str(folder / "out.epd"), chess960=True))
    assert len(book.openings) == len(found) > 10
    kings = {opening.board().king(chess.WHITE) for opening in book.openings}
    assert len(kings) > 2


def test_the_book_of_config_toml_is_made(folder: Path) -> None:
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(f'{text}[games]\nbook = "frc.epd"\nchess960 = true\n')
    window = ("--window", "0", "900", "--size", "3", "--games", "0", "--slack", "900")
    assert execute(["book", "make", "frc.epd", *window, *QUICK]) == 0
    assert len(load(Book(name="frc.epd", chess960=True)).openings) == 3


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["out.pgn"], 2, "a name in .pgn is read as PGN"),
        (["out.epd", "--engine", "engine"], 2, "--engine needs --limit"),
        (["out.epd", "--window", "90", "30"], 2, "90 is more than 30"),
        (["none/out.epd"], 2, "there is no folder 'none'"),
        (["out.epd", "--engine", "engine", "--games", "0", "--from", "bad.epd"], 2, "bad.epd:2: "),
        (["out.epd", "--engine", "mute", "--games", "0"], 4, "it tells no score"),
        (
            ["out.epd", "--engine", "engine", "--games", "0", "--from", "one.epd"],
            3,
            "none of 1 position scores from 50 to 150 centipawns",
        ),
    ],
)
def test_what_makes_no_book_is_refused_in_a_sentence(
    arguments: list[str], code: int, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "one.epd").write_text(f"{chess.STARTING_FEN}\n")
    (folder / "bad.epd").write_text(f"{chess.STARTING_FEN}\nrnbq w\n")
    assert execute(["book", "make", *arguments]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert not captured.out
    assert not (folder / "out.epd").exists()
