"""Masters and workers as processes that come, share, idle and go."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asking import Store
from engines.faulty import wait_until
from tuner import Tuner
from uci_tuner import CONFIG, PARAMS, engines_of, uci_tuner, wait_for_engines

THINKING = 3.0
"""Seconds a move: a pair of games lasts for minutes, far longer than any test waits."""

SOON = 60.0
"""Seconds that a worker may take to leave: few beside a pair of games, many on a busy machine."""

pytestmark = pytest.mark.timeout(600)

Start = Callable[..., Tuner]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    made: list[Tuner] = []

    def of(name: str, database: str = "spsa.db", **over: object) -> Tuner:
        url = f"sqlite:///{tmp_path / database}"
        made.append(uci_tuner(tmp_path / f"{name} in {database}", url, name=name, **over))
        return made[-1]

    yield of
    for tuner in made:
        tuner.kill_all()


@pytest.mark.slow
def test_two_masters_move_two_runs_and_one_worker_plays_both(start: Start) -> None:
    alone = start("alone", "alone.db", iterations=2)
    master = alone.master()
    alone.wait_for_tables()
    worker = alone.worker()
    assert (alone.ended(master), alone.ended(worker)) == (0, 0), alone.account()
    with Store(alone.url) as store:
        theta = store.run().theta  # the seed, and not the name, decides it
    usual, urgent = start("usual", iterations=2), start("urgent", iterations=2)
    masters = [usual.master()]
    usual.wait_for_tables()
    masters.append(urgent.master())
    changed = ("set", "--run", "urgent", "--priority", "1", "--share", "2")
    wait_until(lambda: usual.ask(*changed).returncode == 0)  # its row comes a moment later
    worker = usual.worker("--drain", "0")  # it stays, however late the second run begins
    ended = [usual.ended(masters[0]), urgent.ended(masters[1])]
    assert ended == [0, 0], usual.account() + urgent.account()
    worker.send_signal(signal.SIGTERM)
    assert usual.ended(worker) == 0, usual.account()
    with Store(usual.url) as store:
        found = {run.name: run.theta for run in store.runs()}
        assert found == {"usual": theta, "urgent": theta}
        assert (store.run("urgent").priority, store.run("urgent").share) == (1, 2.0)
    assert usual.ask("doctor").stdout == "all is well: usual, urgent\n"


def test_what_the_engine_would_not_obey_is_refused_before_anything_is_played(
    start: Start, tmp_path: Path
) -> None:
    tuner = start("wrong")
    wrong = PARAMS.replace('option = "patience"', "").replace("max = 50", "max = 51", 1)
    (tuner.folder / "params.toml").write_text(wrong)
    with (tuner.folder / "config.toml").open("a") as config:
        config.write("[engine.options]\nHash = 16\n")
    refused = tuner.ask("run")
    said = refused.stderr.splitlines()
    assert refused.returncode == 2, refused.stderr
    assert [line.partition(";")[0] for line in said] == [
        f"config.toml:{CONFIG.count(chr(10)) + 2}: [engine.options] "
        "the engine would not accept it: it declares no option 'Hash'",
        f"{tuner.folder}/params.toml:2: [boldness] "
        "the engine would not accept it: boldness = 51 is outside 0 .. 50",
        f"{tuner.folder}/params.toml:8: [calm] "
        "the engine would not accept it: it declares no option 'calm'",
        "3 faults",
    ]
    assert not (tmp_path / "spsa.db").exists()


@pytest.fixture
def at_work(start: Start) -> Callable[[float], tuple[Tuner, "subprocess.Popen[bytes]"]]:
    """A worker in the midst of a game, with a master beside it."""

    def begun(drain: float) -> "tuple[Tuner, subprocess.Popen[bytes]]":
        tuner = start("slow", think=THINKING)
        tuner.master()
        tuner.wait_for_tables()
        worker = tuner.worker("--drain", str(drain))
        wait_for_engines(tuner)
        return tuner, worker

    return begun


def handed_back(tuner: Tuner) -> bool:
    """Whether nothing is leased any more, and no attempt is used up."""
    with Store(tuner.url) as store:
        batches = store.batches(store.run().id)
    return {(batch.status.value, batch.attempt) for batch in batches} == {("ready", 0)}


@pytest.mark.slow
@pytest.mark.parametrize(("drain", "signals"), [(1.0, 1), (0.0, 1), (300.0, 2)])
def test_a_worker_that_is_asked_to_leave_does_so_in_time_and_leaves_nothing(
    at_work: Callable[..., "tuple[Tuner, subprocess.Popen[bytes]]"], drain: float, signals: int
) -> None:
    tuner, worker = at_work(drain)
    worker.send_signal(signal.SIGTERM)
    if signals > 1:  # two signals at once are one to Linux
        wait_until(lambda: "interrupt again to stop at once" in tuner.words())
        worker.send_signal(signal.SIGTERM)
    assert tuner.ended(worker, SOON) == 0, tuner.account()
    assert engines_of(tuner.folder) == []
    assert handed_back(tuner), tuner.account()
    assert "handed back" in tuner.words()


@pytest.mark.slow
def test_a_worker_that_drains_reports_what_it_finishes(start: Start) -> None:
    tuner = start("quick", think=0.02)
    tuner.master()
    tuner.wait_for_tables()
    worker = tuner.worker("--drain", "300")
    wait_for_engines(tuner)
    worker.send_signal(signal.SIGTERM)
    assert tuner.ended(worker) == 0, tuner.account()
    assert engines_of(tuner.folder) == []
    with Store(tuner.url) as store:
        batches = store.batches(store.run().id)
    assert "leased" not in {batch.status.value for batch in batches}
    assert "done" in {batch.status.value for batch in batches}, tuner.words()


@pytest.mark.slow
def test_a_worker_retires_when_it_has_had_no_work_for_long_enough(start: Start) -> None:
    tuner = start("done", iterations=1)
    master = tuner.master()
    tuner.wait_for_work()  # all there will ever be
    worker = tuner.worker("--idle-timeout", "3")
    assert (tuner.ended(master), tuner.ended(worker)) == (0, 0), tuner.account()
    assert engines_of(tuner.folder) == []
    never_needed = tuner.worker("--idle-timeout", "0.5")
    assert tuner.ended(never_needed) == 3, tuner.account()
