"""`spsa-master voids`: from an engine that crashes in a game to what its author reads."""

import io
import json
from pathlib import Path

import chess.pgn
import pytest
from builders import published, result_of, stage
from console import compete, write_project
from engines.faulty import engine, start_book
from shell import Shell
from trials import UNHURRIED
from tuned import tuned

from spsa.cli import execute
from spsa.config import load_space
from spsa.core.game_settings import Book, GameSettings
from spsa.db import Store
from spsa.protocol import KeptVoid


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    write_project(tmp_path)
    return tmp_path


def voids(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = execute(["voids", *arguments])
    said = capsys.readouterr()
    return code, said.out + said.err


@pytest.mark.slow
def test_a_crash_is_kept_with_its_moves_and_last_lines(
    here: Path,
    database_url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    plus = engine(here, "plus", moves="e2e4 e7e5 g1f3", fault="crash", at_ply=2)
    minus = engine(here, "minus", moves="e2e4 e7e5 g1f3")
    with Store(database_url, durable=False) as store:
        staged = stage(store)
        staged.open(
            plus=published(plus),
            minus=published(minus),
            plus_options={},
            minus_options={},
            batch_games=2,
            plus_parameters={"margin": 220.5},
            game_settings=GameSettings(
                time_control=UNHURRIED, book=Book(name=str(start_book(here)))
            ),
        )
        assert voids(capsys) == (0, "run first has no void games\n")
        words = ("-c", 1, "--engines-cache", here / "cache", "--max-batches", 1)
        done = compete("--spsa", *words, DATABASE_URL=database_url)
        assert "was void 4 times" in done.stderr
        ((machine, _),) = store.failed_batches().items()
    code, listed = voids(capsys)
    assert (code, listed.count("plus: crash: killed by SIGSEGV")) == (0, 3), listed
    pgn = here / "voids.pgn"
    code, shown = voids(capsys, "1.0", "--pgn", str(pgn))
    for line in (
        f"batch 1.0, pair 1 of the run on machine {machine}: plus: crash: killed by SIGSEGV",
        "White: plus; 2 plies; the position:",
        "  position startpos moves e2e4 e7e5",
        "  | bestmove e2e4",
        "  | stderr: a hint",
        "  | stderr: thread 'main' panicked at src/search.rs:7\\x1b[2J",
        f"values of plus, binary {published(plus).sha256}:",
        "  margin = 220.5",
    ):
        assert f"{line}\n" in shown
    game = chess.pgn.read_game(io.StringIO(pgn.read_text()))
    assert game is not None and not game.errors
    assert [move.uci() for move in game.mainline_moves()] == ["e2e4", "e7e5"]
    assert "SIGSEGV" in game.end().comment and game.headers["White"] == "plus"
    assert len(json.loads(voids(capsys, "--json")[1])["void_games"]) == 3
    assert voids(capsys, "1.7") == (
        3,
        "spsa-master: no void game of a batch 1.7 is kept; batches with some: 1.0\n",
    )


def test_whatever_a_worker_sends_is_shown_as_far_as_it_is_sound(
    here: Path, sqlite_store: Store, capsys: pytest.CaptureFixture[str], sqlite_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("DATABASE_URL", sqlite_url)
    staged = stage(sqlite_store)
    staged.open()
    claim = staged.claim("c")
    assert claim is not None
    kept = KeptVoid(
        pair=0,
        culprit="",
        white="",
        detail="a } \x1b[2J",
        position="position startpos moves e2e4 e2e4 x",
        output="one\n\x1b[2Jtwo",
    )
    started = KeptVoid(pair=1, culprit="minus", white="", detail="hang", position="", output="")
    odd = KeptVoid(
        pair=2, culprit="plus", white="", detail="", position="position fen x", output=""
    )
    sqlite_store.report(
        claim, result_of(claim, voids={"crash": 3}, kept_voids=(kept, started, odd))
    )
    assert voids(capsys, "--pgn", "out.pgn")[0] == 0
    code, shown = voids(capsys, "1.0")
    assert code == 0 and "\x1b" not in shown and "(nothing)" in shown
    game = chess.pgn.read_game(io.StringIO(Path("out.pgn").read_text()))
    assert game is not None and len(list(game.mainline_moves())) == 1


@pytest.mark.parametrize(
    "log",
    ["7", "{}", '["a", null, [], {"pair": 1}]', '[{"pair": "0"}]'],
)
def test_a_log_that_no_worker_writes_is_no_void_game(
    here: Path, store: Store, database_url: str, sql: Shell, log: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Such values have to be written by hand: types are checked before a report is."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    staged = tuned(store, load_space(here / "params.toml"), 1, planned=9)
    staged.open()
    claim = staged.claim("c")
    assert claim is not None
    store.report(claim, result_of(claim, voids={"crash": 1}))
    odd = {"voids": log, "void_log": log, "claim_id": claim.claim_id}
    sql(
        "UPDATE spsa_batch SET void_log = :void_log, voids = :voids WHERE claim_id = :claim_id",
        **odd,
    )
    assert voids(capsys) == (0, "run first has no void games\n")
    assert [execute([command]) for command in ("status", "report")] == [0, 0]
    assert not any(batch.voids for batch in store.batches(staged.run.id))
    assert store.workers()[0].void_games == 1
