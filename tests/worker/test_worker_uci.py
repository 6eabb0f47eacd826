"""One engine process: what it must not do, and what is left when it has done it."""

import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import pytest
from engines.faulty import (
    LOSER,
    PATIENT,
    WINNER,
    alive,
    children,
    engine,
    job_of,
    spec,
    until_the_end,
    wait_until,
)
from engines.faulty import started as begun

from spsa.core.game_settings import TimeControl
from spsa.errors import EngineFault
from spsa.uci import spawning
from spsa.uci.engine import MATE, Limit, UciEngine
from worker.runner.pool import JobDone, JobFailed, JobStopped, Pool

START = b"position startpos"
IN_TIME = Limit(b"go movetime 1\n", 20.0)
Starts = Callable[..., UciEngine]


@pytest.fixture
def start(tmp_path, stop_signal):
    started: list[UciEngine] = []

    def begin(options=None, limits=PATIENT, **switches):
        path = engine(tmp_path, f"engine{len(started)}", **{"moves": "e2e4"} | switches)
        started.append(begun(spec(path, **options or {}), stop_signal, limits))
        return started[-1]

    yield begin
    for running in started:
        running.close(at_once=True)


@pytest.mark.parametrize(
    ("said", "score"), [("-13", -13), ("mate3", MATE - 3), ("mate-2", -MATE + 2), ("-", None)]
)
def test_a_reply_has_the_move_and_the_last_score(start, said, score):
    reply = start(scores=said).search(START, IN_TIME)
    counts = (0, 0) if score is None else (77, 9)
    assert (reply.move, reply.score) == ("e2e4", score)
    assert (reply.nodes, reply.depth) == counts
    assert 0 < reply.seconds < 20


def test_an_engine_that_reads_nothing_does_not_block_its_worker(start):
    running = start(fault="deaf")
    with pytest.raises(EngineFault, match="does not read"):
        for _ in range(200):
            running._process.write(b"x" * 4000)


OPTIONS = [
    "Hash type spin default 1 min 1 max 64",
    "Margin Of Error type spin default -3 min -100 max 64",
    "Style type combo default calm var calm var very solid",
    "Ponder type check default false",
    "File type string default <empty>",
]


SENT = {"Hash": "8", "Margin Of Error": "-7", "Style": "Very Solid", "File": "a b"}
REFUSED = [
    ("Nonsense", "1"),
    ("File", "x\nquit"),
    ("Hash", "1_0"),
    ("Hash", "\u0663"),
    ("Hash", "65"),
    ("Hash", "1.5"),
    ("Ponder", "maybe"),
    ("Style", "wild"),
]


def test_an_option_is_sent_in_the_engines_own_spelling_if_it_would_obey(start, tmp_path):
    typed = {"hash" if name == "Hash" else name: value for name, value in SENT.items()}
    running = start(typed, option=OPTIONS, log=tmp_path / "log")
    running.search(START, IN_TIME)
    assert running.options == typed
    sent = [f"setoption name {name} value {value}\n" for name, value in SENT.items()]
    assert "".join(sent) in (tmp_path / "log").read_text()
    for name, value in REFUSED:
        with pytest.raises(EngineFault, match=r"^refused option: "):
            running.configure(spec(Path(running.path), **{name: value}))


def test_more_options_than_a_pipe_holds_are_taken(start):
    options = {f"Parameter{n:05}OfThirtyCharacters": "7" for n in range(2_500)}
    running = start(options, option=[f"{name} type spin default 1 min 0 max 9" for name in options])
    assert running.options == options
    assert running.search(START, IN_TIME).move == "e2e4"


def test_a_move_that_is_cut_in_two_by_the_end_of_its_time_is_read(tmp_path, stop_signal):
    path = tmp_path / "engine"
    path.write_text(
        "#!/bin/sh\nread -r uci; echo uciok; read -r position; read -r go\n"
        'printf "bestmove e2"; read -r stop; echo e4; cat\n'
    )
    path.chmod(0o755)
    running = begun(spec(path), stop_signal, PATIENT)
    assert running.search(START, Limit(b"go\n", 0.3, 20.0)).move == "e2e4"
    running.close(at_once=True)


def test_a_program_still_open_for_writing_is_tried_again(tmp_path, stop_signal, monkeypatch):
    monkeypatch.setattr(spawning, "_BUSY_TRIES", 4000)  # a second would do on a quiet machine
    program = tmp_path / "program"
    shutil.copy("/bin/sh", program)
    path = engine(tmp_path, "script", moves="e2e4")
    path.write_text(path.read_text().replace("#!/bin/sh", f"#!{program}"))
    with program.open("ab") as held:
        Timer(0.2, held.close).start()
        begun(spec(path), stop_signal, PATIENT).close(at_once=True)
        assert held.closed


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_no_engine_outlives_the_thread_that_started_it(tmp_path, stop_signal):
    """And so no worker that is killed, even without an orphan reaper."""
    path = engine(tmp_path, "engine", moves="e2e4", fault="ignore-quit")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(begun, spec(path), stop_signal, PATIENT).result()
        assert alive(running.pid)
    wait_until(lambda: not alive(running.pid))
    running.close(at_once=True)


LONG = TimeControl(low=60.0, high=60.0)


@pytest.fixture
def pool():
    with Pool(1, PATIENT) as slots:
        yield slots


def job(plus, minus, **over):
    return job_of(spec(plus, **over.pop("options", {})), spec(minus, "minus"), **over)


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


def test_a_refused_option_or_a_defect_costs_a_job_and_not_the_slot(
    pool, winner, loser, monkeypatch
):
    pool.submit(job(winner, loser, options={"Nonsense": "1"}, max_void=9))
    void, end = until_the_end(pool)
    assert void.fault.reason == "refused option"
    assert isinstance(end, JobFailed)
    assert "is void and would be void again: plus: refused option: " in end.reason
    with monkeypatch.context() as patch:
        patch.setattr("worker.runner.pool.play_pair", Mock(side_effect=ZeroDivisionError))
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


def test_engines_are_started_once_and_told_of_every_new_game(pool, winner, loser, tmp_path):
    """Also those that the next job has beforehand."""
    log = tmp_path / "next.log"
    following = engine(tmp_path, "next", moves=LOSER, log=log)
    for key, minus in (("first", loser), ("second", following)):
        pool.submit(job(winner, minus, key=key, pairs=2))
    for _ in range(2):
        until_the_end(pool)
    commands = (tmp_path / "winner.log").read_text().splitlines()
    assert (commands.count("uci"), commands.count("ucinewgame")) == (1, 2 * 2 * 2)
    assert log.read_text().split().count("uci") == 1
