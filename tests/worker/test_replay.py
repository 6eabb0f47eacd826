"""A batch is played again from its row: the same games, compared with what was reported."""

import subprocess
from pathlib import Path

import pytest
from builders import NODES
from console import compete, games_of
from trials import OneIteration


@pytest.fixture
def played(sqlite_url: str, tmp_path: Path) -> OneIteration:
    """Two batches of two pairs at fixed nodes; plus has won all of them."""
    fleet = OneIteration(sqlite_url, tmp_path)
    fleet.open(NODES)
    playing = fleet.start("--max-batches", 2)
    assert playing.ended() == 0 and "batch 1: +4 -0 =0" in playing.log, playing.log
    return fleet


def again(fleet: OneIteration, *words: object) -> subprocess.CompletedProcess[str]:
    cache = fleet.folder / "cache"
    return compete(*words, "--engines-cache", cache, "-c", 1, DATABASE_URL=fleet.url)


def test_a_batch_is_played_again_and_compared(played, sql):
    pgn = played.folder / "out.pgn"
    before = sql("SELECT * FROM spsa_batch ORDER BY id")
    done = again(played, "--replay", "1.0", "--pgn", pgn)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "now +4 -0 =0 for plus, as it was reported"
    games = games_of(pgn)
    assert [game.headers["White"] for game in games] == ["plus", "minus"] * 2
    assert [game.headers["Result"] for game in games] == ["1-0", "0-1"] * 2
    assert sql("SELECT * FROM spsa_batch ORDER BY id") == before, "a replay counts nothing"


@pytest.mark.slow
def test_one_pair_is_the_same_pair_as_in_its_batch(played):
    whole, one = played.folder / "whole.pgn", played.folder / "one.pgn"
    assert again(played, "--replay", "1.1", "--pgn", whole).returncode == 0
    done = again(played, "--replay", "1.1:2", "--pgn", one)
    assert done.returncode == 0 and "pair 2: +2 -0 =0 for plus" in done.stdout, done.stderr
    same = [list(game.mainline_moves()) for game in games_of(whole)][2:]
    assert [list(game.mainline_moves()) for game in games_of(one)] == same


def test_a_replay_of_counts_that_cannot_be_right_fails(played, sql):
    """The row says what these engines never played; games by time may differ."""
    sql("UPDATE spsa_batch SET plus_wins = 0, minus_wins = 4, ptnml_0 = 2, ptnml_4 = 0")
    kind = "UPDATE spsa_iteration SET game_settings = json_set(game_settings, :key, :kind)"
    for name, code in (("nodes", 1), ("movetime", 0)):
        sql(kind, key="$.time_control.kind", kind=name)
        done = again(played, "--replay", "first/1.0")
        assert done.returncode == code, done.stderr
        assert done.stdout.splitlines()[-1] == (
            "now +4 -0 =0 for plus; it was reported as +0 -4 =0 for plus"
        )


@pytest.mark.slow
def test_what_is_not_there_is_a_sentence(played):
    for words, code, said in (
        (["--replay", "1"], 2, "is not [RUN/]ITERATION.BATCH[:PAIR]"),
        (["--replay", "1.0:3"], 2, "the batch has pairs 1 to 2, not 3"),
        (["--replay", "1.7"], 3, "the run has no batch 7 in an iteration 1"),
        (["--replay", "other/1.0"], 3, "there is no run named 'other'"),
        (["--replay", "1.0", "--spsa"], 2, "give neither --spsa nor --server"),
    ):
        done = again(played, *words)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
