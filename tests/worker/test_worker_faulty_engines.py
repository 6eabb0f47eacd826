"""Engines as processes: each misbehaviour ends as defined, in time, and leaves nothing behind."""

import os
import random
import resource
import shutil
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Timer
from unittest.mock import Mock

import pytest
from engines import faulty
from engines.faulty import started as begun
from golden import compare_cases

from spsa.core.game_settings import TimeControl
from spsa.errors import EngineFault
from spsa.uci import spawning
from spsa.uci.engine import MATE, UNREAD_CAP, Limit, UciEngine
from spsa.uci.linux import orphan_reaper
from spsa.uci.spawning import EngineLimits, WorkingFolders, working_folders
from worker.runner.engine_pair import EnginePair
from worker.runner.game import Pair
from worker.runner.pool import JobEnded, PairVoid, Pool

WATCHED = EngineLimits(start=5.0, ready=4.0, grace=3.0, quit=0.3, slowest=0.1)
"""Where the end is that one of these has passed; the other engine has as much time on a busy
machine. Everything else has to end before any of PATIENT has."""

LEFT = ("child", "stray", "log")  # switches that name a file
SLACK = 15.0  # seconds for what a busy machine takes; less than any deadline of PATIENT


@dataclass(frozen=True, slots=True)
class Animal:
    """What an engine does, how its pair has to end, and the seconds it may take for that.

    `ends` is how the fault of a void pair begins, or "played"; a hang takes until a deadline has
    passed. What goes wrong in a game does so at its second ply, if `switches` say nothing else.
    """

    ends: str
    fault: str = ""
    time: str = "nodes=1"
    seconds: float = 0.1
    switches: dict[str, object] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)

    @property
    def limits(self):
        return WATCHED if self.ends.startswith("hang") else faulty.PATIENT


TABLE = tomllib.loads(Path(__file__).with_name("faulty_engines.toml").read_text())
ANIMALS = {name: Animal(**row) for name, row in TABLE.items()}


def prepared(animal, folder):
    """Two games of an engine that always wins against the animal; one void is enough."""
    files = {name: folder / name for name in LEFT if name in animal.switches}
    usual = {"moves": faulty.LOSER, "fault": animal.fault, "at_ply": 1}
    minus = faulty.engine(folder, "minus", **usual | animal.switches | files)
    sides = (
        faulty.spec(faulty.engine(folder, "plus", moves=faulty.WINNER)),
        faulty.spec(minus, "minus", **animal.options),
    )
    return faulty.job_of(*sides, TimeControl.parse(animal.time), max_void=0)


def events(pool, job):
    pool.submit(job)
    return faulty.until_the_end(pool)


@contextmanager
def cage(slots, limits):
    """A pool whose engines have little and leave nothing."""
    with working_folders(most_bytes=2**20) as folders, orphan_reaper(folders) as watched:
        own = {"worker_id": watched, "folders": folders}
        with Pool(slots, replace(limits, memory=2**28, file_size=2**20, **own)) as pool:
            yield pool
        assert folders is not None and not list(folders.root.iterdir())


def told(animal, folder):
    """How the pair ended, and if it is void, by whose fault."""
    with cage(1, animal.limits) as pool:
        first, end = events(pool, prepared(animal, folder))
    if isinstance(first, PairVoid):
        assert isinstance(end, JobEnded) and end.failure
        return str(first.fault)
    assert isinstance(first, Pair)
    assert end == JobEnded("job")
    assert first.tally.wins == 2
    return "minus: played"


def named(folder):
    """The processes that engines say they have left."""
    files = (folder / name for name in ("child", "stray"))
    return [int(pid) for file in files if file.exists() for pid in file.read_text().split()]


def peak():
    """MiB that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", ANIMALS)
def test_every_misbehaviour_ends_as_defined_in_time_and_leaves_nothing(name, tmp_path, monkeypatch):
    animal = ANIMALS[name]
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    files, memory = faulty.open_files(), peak()
    began, used = time.monotonic(), time.process_time()
    assert told(animal, tmp_path).startswith(f"minus: {animal.ends}")
    assert time.monotonic() - began < animal.seconds + SLACK
    is_busy = any(word in animal.fault for word in ("babble", "fill"))  # reading, removing files
    assert time.process_time() - used < 1.0 or is_busy, "a loop that does nothing"
    assert faulty.open_files() == files
    assert not faulty.children()
    assert peak() - memory < 64
    assert not list(temporary.iterdir())
    pids = named(tmp_path)
    assert bool(pids) == bool(animal.switches.keys() & {"child", "stray"})
    faulty.wait_until(lambda: not any(map(faulty.alive, pids)))


# ply 2 is the last one of its second game
@pytest.mark.parametrize(("fault", "ply"), [("twice", 3), ("twice", 2), ("again", 2)])
def test_who_answers_twice_at_the_end_of_a_game_or_a_pair_spoils_that_pair(fault, ply, tmp_path):
    animal = Animal("garbage", fault, switches={"at_ply": ply})
    assert told(animal, tmp_path).startswith("minus: garbage: ")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("SPSA_TEST_LONG"), reason="SPSA_TEST_LONG is not set")
@pytest.mark.timeout(3600)
def test_a_thousand_games_of_faulty_engines_leave_nothing(tmp_path):
    rng = random.Random(int(os.environ.get("SPSA_TEST_SEED", "1")))
    quick = [name for name, animal in ANIMALS.items() if animal.seconds <= 0.1]
    files, pids = faulty.open_files(), list[int]()
    with cage(2, faulty.PATIENT) as pool:
        for number in range(500):
            name = rng.choice(quick)
            (folder := tmp_path / str(number)).mkdir()
            first, _ = events(pool, prepared(ANIMALS[name], folder))
            ended = str(first.fault) if isinstance(first, PairVoid) else "minus: played"
            assert ended.startswith(f"minus: {ANIMALS[name].ends}"), (name, first)
            pids += named(folder)
            shutil.rmtree(folder)
    assert faulty.open_files() == files
    assert not faulty.children()
    assert peak() < 400
    assert pids and not any(map(faulty.alive, pids))


def test_a_folder_holds_too_much_by_its_bytes_or_by_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(spawning, "MAX_FILES", 3)
    folders = WorkingFolders(tmp_path, most_bytes=8192)
    (folders.make("one") / "inner").mkdir()
    for name, size, is_full in (("a", 8192, 0), ("inner/b", 0, 0), ("c", 0, 1), ("a", 8193, 1)):
        (tmp_path / "one" / name).write_bytes(b"x" * size)
        assert folders.overfull() == ({"one"} if is_full else set())
        (tmp_path / "one" / "c").unlink(missing_ok=True)
    with pytest.raises(EngineFault, match="one cannot be made: File exists"):
        folders.make("one")
    shutil.rmtree(tmp_path)
    assert folders.overfull() == set()
    monkeypatch.setattr(spawning.system, "bind_engine", Mock(side_effect=ValueError))
    with pytest.raises(EngineFault, match="cannot start: true: Exception occurred in preexec_fn"):
        spawning.spawn(["true"], EngineLimits())
    assert EngineLimits(memory=5).of_threads(3).memory == 15


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs what the kernel says of a process")
def test_an_engine_has_its_limits_and_is_scheduled_before_its_worker(tmp_path):
    pid = tmp_path / "pid"
    job = prepared(Animal("hang", "hang", "movetime=0.5", switches={"pid": pid}), tmp_path)
    with Pool(1, EngineLimits(memory=2**30)) as pool:
        pool.submit(job)
        faulty.wait_until(lambda: pid.exists() and bool(pid.read_text()))
        number = int(pid.read_text())
        assert os.getpgid(number) == number
        assert os.sched_getscheduler(number) == os.sched_getscheduler(os.getpid())
        threads = [int(thread.name) for thread in Path("/proc/self/task").iterdir()]
        assert os.SCHED_BATCH in map(os.sched_getscheduler, threads)
        limits = Path(f"/proc/{number}/limits").read_text()
        pool.stop(job.key)
    assert f"Max data size             {2**30}" in limits
    assert "Max core file size        0" in limits


START = b"position startpos"
IN_TIME = Limit(b"go movetime 1\n", 20.0)


@pytest.fixture
def start(tmp_path):
    started: list[UciEngine] = []

    def begin(options=None, limits=faulty.PATIENT, **switches):
        path = faulty.engine(tmp_path, f"engine{len(started)}", **{"moves": "e2e4"} | switches)
        started.append(begun(faulty.spec(path, **options or {}), limits))
        return started[-1]

    yield begin
    for running in started:
        running.close(at_once=True)


@pytest.mark.parametrize(
    ("said", "score"), [("-13", -13), ("mate1", MATE - 1), ("mate-2", -MATE + 2), ("-", None)]
)
def test_a_reply_has_the_move_and_the_last_score(start, said, score, tmp_path):
    (tmp_path / "much").write_text("info string about nothing\n" * 20_000)
    reply = start(scores=said, says=tmp_path / "much").search(START, IN_TIME)
    counts = (0, 0) if score is None else (77, 9)
    assert (reply.move, reply.score) == ("e2e4", score)
    assert (reply.nodes, reply.depth) == counts
    assert 0 < reply.seconds < 20


def test_an_engine_that_reads_nothing_does_not_block_its_worker(start):
    running = start(fault="deaf")
    with pytest.raises(EngineFault, match="does not read"):
        for _ in range(200):
            running._process.write(b"x" * 4000)


def test_an_option_is_sent_in_the_engines_own_spelling_if_it_would_obey(start, tmp_path):
    log = tmp_path / "log"

    def shown(files):
        name, _, value = files["set"].replace("{three}", "\u0663").partition("=")
        log.write_text("")
        try:
            running = start({name: value}, option=files["option"], log=log)
        except EngineFault as fault:
            return [str(fault)]
        running.search(START, IN_TIME)
        assert running.options == {name: value}
        return [line for line in log.read_text().splitlines() if "setoption" in line]

    compare_cases(Path(__file__).with_name("options.txt"), shown)


def test_more_options_than_a_pipe_holds_are_taken(start, tmp_path):
    options = {f"Parameter{n:05}OfThirtyCharacters": "7" for n in range(2_500)}
    declared = [f"{name} type spin default 1 min 0 max 9" for name in options]
    running = start(options, option=declared, log=tmp_path / "log")
    first, *_ = (tmp_path / "log").read_text().split("isready\n")
    assert running.options == options and 16_000 < len(first) <= UNREAD_CAP
    assert running.search(START, IN_TIME).move == "e2e4"


def test_a_move_that_is_cut_in_two_by_the_end_of_its_time_is_read(tmp_path):
    path = tmp_path / "engine"
    path.write_text(
        "#!/bin/sh\nread -r uci; echo uciok; read -r position; read -r go\n"
        'printf best; sleep .1; printf "move e2"; read -r stop; printf "e4\\ninfo score cp 9\\n"\n'
        "read -r position; read -r go; echo bestmove d2d4; cat\n"
    )
    path.chmod(0o755)
    running = begun(faulty.spec(path), faulty.PATIENT)
    assert running.search(START, Limit(b"go\n", 0.3, 20.0)).move == "e2e4"
    assert running.search(START, IN_TIME).score is None, "what follows a move is of no search"
    running.close(at_once=True)


def test_a_program_still_open_for_writing_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(spawning, "_BUSY_TRIES", 4000)  # a second would do on a quiet machine
    program = tmp_path / "program"
    shutil.copy("/bin/sh", program)
    path = faulty.engine(tmp_path, "script", moves="e2e4")
    path.write_text(path.read_text().replace("#!/bin/sh", f"#!{program}"))
    with program.open("ab") as held:
        Timer(0.2, held.close).start()
        begun(faulty.spec(path), faulty.PATIENT).close(at_once=True)
        assert held.closed


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's parent-death signal")
def test_no_engine_outlives_the_thread_that_started_it(tmp_path):
    """And so no worker that is killed, even without an orphan reaper."""
    path = faulty.engine(tmp_path, "engine", moves="e2e4", fault="ignore-quit")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(begun, faulty.spec(path), faulty.PATIENT).result()
        (pid,) = faulty.children()
        assert faulty.alive(pid)
    faulty.wait_until(lambda: not faulty.alive(pid))
    running.close(at_once=True)


LONG = TimeControl(low=60.0, high=60.0)


@pytest.fixture
def pool():
    with Pool(1, faulty.PATIENT) as slots:
        yield slots


def job(plus, minus, **over):
    return faulty.job_of(
        faulty.spec(plus, **over.pop("options", {})), faulty.spec(minus, "minus"), **over
    )


def test_changed_options_are_sent_to_the_engine_that_runs(pool, tmp_path):
    declared = ["Margin type spin default 0 min 0 max 9", "Depth type spin default 0 min 0 max 9"]
    switches = {"log": tmp_path / "log", "option": declared}
    plus = faulty.engine(tmp_path, "plus", moves=faulty.WINNER, **switches)
    minus = faulty.engine(tmp_path, "minus", moves=faulty.LOSER)
    for options in ({"Margin": "1", "Depth": "2"}, {"Margin": "3", "Depth": "2"}, {"Margin": "3"}):
        assert events(pool, job(plus, minus, options=options))[-1] == JobEnded("job")
    log = (tmp_path / "log").read_text().splitlines()
    assert log.count("quit") == 1
    assert [line for line in log if line.startswith("setoption")] == [
        "setoption name Margin value 1",
        "setoption name Depth value 2",
        "setoption name Margin value 3",
        "setoption name Margin value 3",  # Depth went back to its default: a new process
    ]


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        ("nodes=1000", ["nodes 1000", "nodes 1000", "nodes 1100", "nodes 1200"]),
        ("depth=1", ["depth 1", "depth 1", "depth 2", "depth 2"]),
        ("movetime=0.2", ["movetime 200"] * 4),
    ],
)
def test_what_is_void_twice_is_played_with_more_nodes(pool, winner, tmp_path, limit, gone):
    switches = {"fault": "crash", "at_ply": 1, "log": tmp_path / "log"}
    minus = faulty.engine(tmp_path, "minus", moves=faulty.LOSER, **switches)
    *voids, end = events(pool, job(winner, minus, time_control=TimeControl.parse(limit)))
    assert len(voids) == 4 and end.culprit == "minus"
    log = (tmp_path / "log").read_text().splitlines()
    assert [line for line in log if line.startswith("go")] == [f"go {one}" for one in gone]


def test_a_job_that_waits_can_be_stopped_and_the_next_one_plays(pool, winner, loser, tmp_path):
    (log := tmp_path / "log").touch()
    switches = {"fault": "hang", "at_ply": 1, "log": log}
    hanging = faulty.engine(tmp_path, "hanging", moves=faulty.LOSER, **switches)
    pool.submit(job(winner, hanging, key="first", time_control=LONG))
    pool.submit(job(winner, loser, key="second"))
    pool.submit(job(winner, loser, key="third"))
    pool.stop("second")
    faulty.wait_until(lambda: "go" in log.read_text())
    pool.stop("first")
    assert faulty.until_the_end(pool) == [JobEnded("first", was_stopped=True)]
    assert faulty.until_the_end(pool) == [JobEnded("second", was_stopped=True)]
    assert faulty.until_the_end(pool)[-1] == JobEnded("third")
    assert not pool.unwanted


def test_a_refused_option_or_a_defect_costs_a_job_and_not_the_slot(
    pool, winner, loser, monkeypatch, tmp_path
):
    void, end = events(pool, job(winner, loser, options={"Nonsense": "1"}, max_void=9))
    assert void.fault.reason == "refused option"
    assert "is void and would be void again: plus: refused option: " in end.failure
    assert end.culprit == "plus"
    with monkeypatch.context() as patch:
        patch.setattr("worker.runner.pool.play_pair", Mock(side_effect=ZeroDivisionError))
        (end,) = events(pool, job(winner, loser))
    assert "ZeroDivisionError" in end.failure and not end.culprit
    assert events(pool, job(winner, loser))[-1] == JobEnded("job")
    assert (tmp_path / "winner.log").read_text().split().count("uci") == 3, "a new one each time"


def test_the_engines_of_the_next_job_start_early_and_those_of_no_job_end(tmp_path):
    def sides(name, **options):
        switches = {"log": tmp_path / name, "option": "Margin type spin default 0 min 0 max 9"}
        path = faulty.engine(tmp_path, f"{name}.engine", moves=faulty.WINNER, **switches)
        return faulty.spec(path, "plus", **options), faulty.spec(path, "minus", **options)

    with closing(EnginePair(faulty.PATIENT)) as pair:
        first = pair.engines(*sides("first", Margin="1"))
        pair.start_next(*sides("first", Margin="2"))
        assert len(faulty.children()) == 2, "these can serve it"
        for _ in range(2):
            pair.start_next(*sides("second"))
            assert len(faulty.children()) == 4
        pair.start_next(*sides("third"))
        assert len(faulty.children()) == 4
        assert pair.engines(*sides("first", Margin="3")) == first
        second = pair.engines(*sides("third"))
        assert len(faulty.children()) == 2 and second != first
        pair.start_next(*sides("second"))
    assert not faulty.children()
    told = {name: (tmp_path / name).read_text().count("quit") for name in ("first", "third")}
    assert told == {"first": 2, "third": 2}, "what has played is asked to quit"


def test_both_engines_are_started_before_either_is_waited_for(pool, tmp_path):
    pid = tmp_path / "pid"
    silent = faulty.engine(tmp_path, "silent", moves=faulty.WINNER, fault="no-uciok")
    pool.submit(job(silent, faulty.engine(tmp_path, "minus", moves=faulty.LOSER, pid=pid)))
    faulty.wait_until(pid.exists)
    pool.stop("job")
    assert faulty.until_the_end(pool) == [JobEnded("job", was_stopped=True)]
    assert not faulty.children()


def test_engines_are_started_once_and_told_of_every_new_game(pool, winner, loser, tmp_path):
    """Also those that the next job has beforehand."""
    log = tmp_path / "next.log"
    following = faulty.engine(tmp_path, "next", moves=faulty.LOSER, log=log)
    for key, minus in (("first", loser), ("second", following)):
        pool.submit(job(winner, minus, key=key, pairs=2))
    for _ in range(2):
        faulty.until_the_end(pool)
    commands = (tmp_path / "winner.log").read_text().splitlines()
    assert (commands.count("uci"), commands.count("ucinewgame")) == (1, 2 * 2 * 2)
    assert log.read_text().split().count("uci") == 1
