"""Masters and workers as processes that come, share, idle and go."""

from collections.abc import Callable

import pytest
from asking import Store
from console import Running
from tuner import Tuner, engines_of, uci_tuner, wait_for_engines

THINKING = 3.0
"""Seconds a move: a pair of games lasts for minutes, far longer than any test waits."""

SOON = 60.0
"""Seconds that a worker may take to leave: few beside a pair of games, many on a busy machine."""

pytestmark = pytest.mark.timeout(600)

Begin = Callable[..., Tuner]


@pytest.fixture
def begin(tmp_path):
    def of(name: str, database: str = "spsa.db", **over: object) -> Tuner:
        url = f"sqlite:///{tmp_path / database}"
        return uci_tuner(tmp_path / f"{name} in {database}", url, name=name, **over)

    return of


@pytest.mark.slow
def test_two_masters_move_two_runs_and_one_worker_plays_both(begin):
    alone = begin("alone", "alone.db", iterations=2)
    alone.tune()
    with Store(alone.url) as store:
        theta = store.run().theta  # the seed, and not the name, decides it
    usual, urgent = begin("usual", iterations=2), begin("urgent", iterations=2)
    first = usual.master()
    usual.wait_for_run()
    second = urgent.master()
    urgent.until(lambda store: len(store.runs()) == 2)
    usual.ask("set", "--run", "urgent", "--priority", 1, "--share", 2)
    worker = usual.worker("--drain", 0)  # it stays, however late the second run begins
    usual.ends(first)
    urgent.ends(second)
    worker.terminate()
    usual.ends(worker)
    with Store(usual.url) as store:
        found = {run.name: run.theta for run in store.runs()}
        assert found == {"usual": theta, "urgent": theta}
        assert (store.run("urgent").priority, store.run("urgent").share) == (1, 2.0)
    assert usual.ask("doctor").stdout == "all is well: usual, urgent\n"


def test_what_the_engine_would_not_obey_is_refused_before_anything_is_played(begin, tmp_path):
    tuner = begin("wrong")
    tuner.params = tuner.params.replace('option = "patience"', "").replace(
        "max = 50", "max = 51", 1
    )
    tuner.configure("[adjudication]", "[engine.options]\nHash = 16\n[adjudication]")
    line = tuner.config.splitlines().index("Hash = 16") + 1
    said = tuner.ask("run", code=2).stderr.splitlines()
    assert [line.partition(";")[0] for line in said] == [
        f"config.toml:{line}: [engine.options] "
        "the engine would not accept it: it declares no option 'Hash'",
        "params.toml:2: [boldness] "
        "the engine would not accept it: boldness = 51 is outside 0 .. 50",
        "params.toml:8: [calm] the engine would not accept it: it declares no option 'calm'",
        "3 faults",
    ]
    assert not (tmp_path / "spsa.db").exists()


def at_work(tuner: Tuner, drain: float) -> Running:
    """A worker in the midst of a game, with a master beside it."""
    tuner.master()
    tuner.wait_for_run()
    worker = tuner.worker("--drain", drain)
    wait_for_engines(tuner)
    return worker


def batches(tuner: Tuner) -> set[tuple[str, int]]:
    """The statuses and attempts of batches, when the worker and all engines are gone."""
    assert engines_of(tuner) == []
    with Store(tuner.url) as store:
        return {(one.status.value, one.attempt) for one in store.batches(store.run().id)}


@pytest.mark.slow
@pytest.mark.parametrize(("drain", "signals"), [(1.0, 1), (0.0, 1), (300.0, 2)])
def test_a_worker_that_is_asked_to_leave_does_so_in_time_and_leaves_nothing(begin, drain, signals):
    tuner = begin("slow", think=THINKING)
    worker = at_work(tuner, drain)
    worker.terminate()
    if signals > 1:  # two signals at once are one to Linux
        worker.until(lambda: "interrupt again to stop at once" in worker.log)
        worker.terminate()
    assert worker.ended(SOON) == 0, tuner.account()
    assert batches(tuner) == {("ready", 0)}, "nothing is leased, and no attempt is used up"
    assert "handed back" in worker.log


@pytest.mark.slow
def test_a_worker_that_drains_reports_what_it_finishes(begin):
    tuner = begin("quick", think=0.02)
    worker = at_work(tuner, 300)
    worker.terminate()
    tuner.ends(worker)
    statuses = {status for status, _ in batches(tuner)}
    assert "done" in statuses and "leased" not in statuses, tuner.words()


@pytest.mark.slow
def test_a_worker_retires_when_it_has_had_no_work_for_long_enough(begin):
    tuner = begin("done", iterations=1)
    master = tuner.master()
    tuner.wait_for_work()  # all there will ever be
    tuner.ends(master, tuner.worker("--idle-timeout", 3))
    assert engines_of(tuner) == []
    tuner.ends(tuner.worker("--idle-timeout", 0.5), codes=(3,))
