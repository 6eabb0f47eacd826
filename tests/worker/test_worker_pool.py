"""Slots that play jobs: order, voids, stops, and what is left behind."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
from engines.faulty import (
    LOSER,
    PATIENT,
    WINNER,
    children,
    engine,
    job_of,
    spec,
    until_the_end,
    wait_until,
)

from spsa.core.game_settings import TimeControl
from worker.runner.pool import Job, JobDone, JobFailed, JobStopped, Pool

LONG = TimeControl(low=60.0, high=60.0)


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(1, PATIENT) as slots:
        yield slots


def job(plus: Path, minus: Path, **over) -> Job:
    return job_of(spec(plus, **over.pop("options", {})), spec(minus, "minus"), **over)


def test_engines_are_started_once_and_told_of_every_new_game(pool, winner, loser, tmp_path):
    for key in ("one", "two"):
        pool.submit(job(winner, loser, key=key, pairs=2))
        until_the_end(pool)
    commands = (tmp_path / "winner.log").read_text().splitlines()
    assert commands.count("uci") == 1
    assert commands.count("ucinewgame") == 2 * 2 * 2


def test_changed_options_are_sent_to_the_engine_that_runs(pool, tmp_path):
    declared = ["Margin type spin default 0 min 0 max 9", "Depth type spin default 0 min 0 max 9"]
    plus = engine(tmp_path, "plus", moves=WINNER, log=tmp_path / "log", option=declared)
    minus = engine(tmp_path, "minus", moves=LOSER)
    for options in ({"Margin": "1", "Depth": "2"}, {"Margin": "3", "Depth": "2"}, {"Margin": "3"}):
        pool.submit(job(plus, minus, options=options))
        assert until_the_end(pool)[-1] == JobDone("job")
    told = [line for line in (tmp_path / "log").read_text().splitlines() if "setoption" in line]
    assert told == [
        "setoption name Margin value 1",
        "setoption name Depth value 2",
        "setoption name Margin value 3",
        "setoption name Margin value 3",  # Depth went back to its default: a new process
    ]


def test_a_refused_option_is_void_and_not_tried_again(pool, winner, loser):
    pool.submit(job(winner, loser, options={"Nonsense": "1"}, max_void=9))
    void, end = until_the_end(pool)
    assert void.fault.reason == "refused option"
    assert isinstance(end, JobFailed)
    assert "is void and would be void again: plus: refused option: " in end.reason


def test_a_job_that_waits_can_be_stopped_and_the_next_one_plays(pool, winner, loser, tmp_path):
    hanging = engine(tmp_path, "hanging", moves=LOSER, fault="hang", at_ply=1)
    pool.submit(job(winner, hanging, key="first", time_control=LONG))
    pool.submit(job(winner, loser, key="second"))
    pool.submit(job(winner, loser, key="third"))
    pool.stop("second")
    pool.stop("first")
    assert until_the_end(pool) == [JobStopped("first")]
    assert until_the_end(pool) == [JobStopped("second")]
    assert until_the_end(pool)[-1] == JobDone("third")


def test_a_defect_costs_a_job_and_not_the_slot(pool, winner, loser, monkeypatch):
    broken = Mock(side_effect=ZeroDivisionError)
    with monkeypatch.context() as patch:
        patch.setattr("worker.runner.pool.play_pair", broken)
        pool.submit(job(winner, loser))
        (end,) = until_the_end(pool)
    assert isinstance(end, JobFailed)
    assert "ZeroDivisionError" in end.reason
    pool.submit(job(winner, loser))
    assert until_the_end(pool)[-1] == JobDone("job")


def test_both_engines_are_started_before_either_is_waited_for(pool, tmp_path):
    pid = tmp_path / "pid"
    silent = engine(tmp_path, "silent", moves=WINNER, fault="no-uciok")
    pool.submit(job(silent, engine(tmp_path, "minus", moves=LOSER, pid=pid)))
    wait_until(pid.exists)
    pool.stop("job")
    assert until_the_end(pool) == [JobStopped("job")]
    assert not children()


def test_warm_engines_are_the_ones_that_play_the_next_job(pool, winner, loser, tmp_path):
    log = tmp_path / "next.log"
    following = engine(tmp_path, "next", moves=LOSER, log=log)
    for key, minus in (("first", loser), ("second", following)):
        pool.submit(job(winner, minus, key=key, pairs=2))
    for _ in range(2):
        until_the_end(pool)
    assert log.read_text().split().count("uci") == 1
