"""`compete`, as a person types it: matches, reports, exit codes, and a worker that is killed."""

import json
import re
import shlex
import signal
import sys
from pathlib import Path

import pytest
from asking import Store
from builders import NODES, stage
from console import ROOT, Running, Said, call, compete, games_of, worker
from engines.faulty import LOSER, engine, start_book
from golden import compare
from transcripts import Transcript
from trials import OneIteration, open_scripted

from spsa.uci import plain, system
from worker import machine
from worker.settings import Settings

MANY = 3000
"""Scripted engines move at once; a worker would wait half a minute for so many."""


def test_a_match_is_played_counted_and_written_down(winner, loser, tmp_path):
    pgn = tmp_path / "games.pgn"
    options = ("--option", "Margin=1", "--option1", "Margin=-2")
    done = compete(
        winner, loser, "--games", 6, "--nodes", MANY, "--book", start_book(tmp_path), "--json",
        "--pgn", pgn, "-c", 1, *options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    counts = ("first", "second", "games", "wins", "losses", "draws", "pentanomial", "voids")
    assert [report[name] for name in counts] == ["winner", "loser", 6, 6, 0, 0, [0, 0, 0, 0, 3], {}]
    assert report["moves"] == 3 * (7 + 4)
    assert report["games_per_second"] == pytest.approx(6 / report["seconds"], rel=0.02)
    assert report["complete"] and report["nps"] > 0 and 0 < report["seconds"] < 200
    assert "setoption name Margin value -2\n" in (tmp_path / "winner.log").read_text()
    games = games_of(pgn)
    assert [game.headers["Round"] for game in games] == ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
    for game in games:
        assert not game.errors
        board = game.end().board()
        assert board.is_checkmate()
        assert game.headers["Result"] == board.result()
        assert "checkmate" in game.end().comment
        assert re.search(r"\+0\.00/9 \d+\.\d+s", game.end().comment)
        assert game.headers["White" if game.headers["Result"] == "1-0" else "Black"] == "winner"


def test_a_sequential_test_ends_the_match_when_it_is_decided(winner, loser, tmp_path):
    shared = ("--games", 1000, "--nodes", MANY, "--book", start_book(tmp_path), "-c", 1)
    done = compete(winner, loser, *shared, "--sprt", 0, 100, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^(\d+) of 1000 games: \+\1 -0 =0", done.stderr, re.M) == ["20"]
    for line in (
        r"winner against loser: (\d+) of 1000 games\nW-L-D +\1-0-0",
        r"Ptnml\(0-2\) +0, 0, 0, 0, \d+",
        r"LOS +\d",
        r"void games +none",
        r"SPRT +LLR \+[3-9].*nElo 0 against 100: H1 accepted",
    ):
        assert re.search(line, done.stdout), line
    done = compete(loser, winner, *shared, "--sprt", 0, 100, "--json")
    report = json.loads(done.stdout)
    assert report["sprt"]["llr"] <= report["sprt"]["lower"]
    assert report["games"] < 1000
    assert report["complete"]


@pytest.mark.slow
def test_games_at_fixed_nodes_do_not_depend_on_how_many_are_played_at_once(tmp_path):
    plus, minus = engine(tmp_path, "plus"), engine(tmp_path, "minus", scores="5 -3")
    texts = []
    for concurrency in (1, 8):
        pgn = tmp_path / f"{concurrency}.pgn"
        done = compete(
            plus, minus, "--games", 16, "--nodes", MANY, "--seed", 3, "--max-moves", 10,
            "-c", concurrency, "--force", "--pgn", pgn,
        )  # fmt: skip
        assert done.returncode == 0
        games = pgn.read_text().split("[Event ")
        texts.append(sorted(re.sub(r"\d+\.\d{3}s", "", game) for game in games))
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 17


@pytest.fixture
def show(request, winner, loser, tmp_path, sqlite_url):
    """Carries out the calls of `compete` in a situation of the text file beside this test."""

    def typed(command):
        done = compete(*shlex.split(command)[1:], cwd=tmp_path, DATABASE_URL=sqlite_url)
        return Said(done.returncode, done.stdout, done.stderr)

    start_book(tmp_path)
    return Transcript(typed, request.path.with_suffix(".txt"))


def test_what_cannot_play_is_told(show, tmp_path):
    engine(tmp_path, "crashing", moves=LOSER, fault="crash", at_ply=1)
    show("an engine that crashes ends the match early")
    show("what cannot play is refused before the first game")


def test_ctrl_c_reports_what_was_played(winner, tmp_path):
    once, pgn = tmp_path / "once", tmp_path / "games.pgn"
    hangs = {"moves": LOSER, "fault": "hang", "at_ply": 5, "only_once": once, "skip": 1}
    words = ("--book", start_book(tmp_path), "--games", 200, "--movetime", 60, "-c", 1)
    running = Running(worker(winner, engine(tmp_path, "hanging", **hangs), *words, "--pgn", pgn))
    running.until(lambda: once.exists() and len(games_of(pgn)) == 2)
    running.send_signal(signal.SIGINT)
    assert running.ended() == 130
    assert "2 of 200 games" in running.out


def test_help_needs_nothing_heavy():
    done = call([sys.executable, "-X", "importtime", "-m", "worker", "--help"], ROOT)
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    imported = {line.partition(".")[0] for line in lines}
    compare(Path(__file__).with_name("help.txt"), done.stdout)
    assert "click" in imported
    assert not imported & {"numpy", "sqlalchemy", "chess", "rich", "asyncio"}


def test_siblings_of_one_core_are_counted_once_and_engines_share_the_memory(tmp_path, monkeypatch):
    for number, group in enumerate(("0,2", "1,3", "0,2", "1,3")):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{group}\n")
    assert machine.physical(range(4), tmp_path) == 2
    assert machine.physical(range(4), tmp_path / "nothing") == 4
    assert 1 <= machine.default_concurrency() <= machine.usable_cores()
    whole = machine.memory()
    assert whole is not None
    assert Settings().engine_limits().memory == max(2**28, whole // 4)
    assert Settings(engine_memory=7).engine_limits().memory == 7 * 2**20
    assert Settings(concurrency=10**6).engine_limits().memory == 2**28
    quota = tmp_path / "quota"
    for name in ("_CPU_QUOTA", "_MEMORY_QUOTA"):
        monkeypatch.setattr(machine, name, quota)
    cores = len(system.logical_cores())
    for text, found in (("max 1", cores), ("1 2", 1), (f"{2 * cores} 1", cores)):
        quota.write_text(f"{text}\n")
        assert machine.usable_cores() == found
        assert machine.default_concurrency() <= found
    for text, found in (("max", whole), (f"{2**25}", 2**25), (f"{2**60}", whole)):
        quota.write_text(f"{text}\n")
        assert machine.memory() == found
    monkeypatch.setattr("os.cpu_count", iter((3, None)).__next__)
    assert [plain.logical_cores() for _ in "12"] == [{0, 1, 2}, {0}], "of other systems"


@pytest.fixture
def played(sqlite_url, tmp_path):
    """Two batches of two pairs at fixed nodes; plus has won all of them."""
    fleet = OneIteration(sqlite_url, tmp_path)
    fleet.open(NODES)
    playing = fleet.start("--max-batches", 2)
    assert playing.ended() == 0 and "batch 1: +4 -0 =0" in playing.log, playing.log
    return fleet


def again(fleet, *words):
    cache = fleet.folder / "cache"
    return compete(*words, "--engines-cache", cache, "-c", 1, DATABASE_URL=fleet.url)


def test_a_batch_is_played_again_and_compared(played, sql):
    pgn = played.folder / "out.pgn"
    before = sql("SELECT * FROM spsa_batch ORDER BY id")
    done = again(played, "--replay", "1.0", "--pgn", pgn)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "first iteration 1, batch 0:\n  pair 1: +2 -0 =0 for plus\n  pair 2: +2 -0 =0 for plus\n"
        "now +4 -0 =0 for plus, as it was reported\n"
    )
    games = games_of(pgn)
    assert [game.headers["White"] for game in games] == ["plus", "minus"] * 2
    assert [game.headers["Result"] for game in games] == ["1-0", "0-1"] * 2
    assert sql("SELECT * FROM spsa_batch ORDER BY id") == before, "a replay counts nothing"
    # the row says what these engines never played; games by time may differ
    sql("UPDATE spsa_batch SET plus_wins = 0, minus_wins = 4, ptnml_0 = 2, ptnml_4 = 0")
    kind = "UPDATE spsa_iteration SET game_settings = json_set(game_settings, :key, :kind)"
    for name, code in (("nodes", 1), ("movetime", 0)):
        sql(kind, key="$.time_control.kind", kind=name)
        done = again(played, "--replay", "first/1.0")
        assert done.returncode == code, done.stderr
        assert done.stdout.splitlines()[-1] == (
            "now +4 -0 =0 for plus; it was reported as +0 -4 =0 for plus"
        )
    sql('UPDATE spsa_iteration SET plus_options = \'{"Nonsense": "1"}\'')
    done = again(played, "--replay", "1.0")
    assert done.returncode == 1 and "pair 1 void: plus: refused option" in done.stdout
    assert "compete: the batch cannot be played: a pair is void and would be void" in done.stderr


@pytest.mark.slow
def test_one_pair_is_the_same_pair_as_in_its_batch(played, show):
    whole, one = played.folder / "whole.pgn", played.folder / "one.pgn"
    assert again(played, "--replay", "1.1", "--pgn", whole).returncode == 0
    done = again(played, "--replay", "1.1:3", "--pgn", one)
    assert done.returncode == 0 and "pair 3: +2 -0 =0 for plus" in done.stdout, done.stderr
    same = [list(game.mainline_moves()) for game in games_of(whole)][:2]
    assert [list(game.mainline_moves()) for game in games_of(one)] == same
    show("a batch that cannot be played again")


@pytest.mark.slow
def test_engines_of_several_threads_are_replayed_on_as_many_slots(sqlite_url, tmp_path):
    threads = {"option": "Threads type spin default 1 min 1 max 9"}
    settings = {"engine_options": {"Threads": "2"}}
    with Store(sqlite_url) as store:
        open_scripted(stage(store), tmp_path, threads, threads, settings)
    done = again(OneIteration(sqlite_url, tmp_path), "--replay", "1.0")
    assert done.stdout.endswith("\nnow +4 -0 =0 for plus; it was not reported yet\n")
    assert done.returncode == 0
