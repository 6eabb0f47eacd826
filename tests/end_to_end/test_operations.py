"""Masters and workers as processes that come, share, idle and go."""

import random
import re
import time
from collections.abc import Callable

import pytest
from asking import Store
from console import PATIENCE
from engines.faulty import wait_until
from shell import broken
from tuner import ENDLESS, Tuner, before_each_answer, engines_of, uci_tuner

from spsa.config.space import says
from spsa.lifecycle import Purpose, RunStatus

THINKING = 3.0
"""Seconds a move: a pair of games lasts for minutes, far longer than any test waits."""

SOON = 60.0
"""Seconds that a worker may take to leave: few beside a pair of games, many on a busy machine."""

pytestmark = pytest.mark.timeout(1200)

Begin = Callable[..., Tuner]


@pytest.fixture
def begin(tmp_path):
    def of(name, database="spsa.db", **over):
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
        "params.toml:1: [boldness] "
        "the engine would not accept it: boldness = 51 is outside 0 .. 50",
        "params.toml:7: [calm] the engine would not accept it: it declares no option 'calm'",
        "3 faults",
    ]
    assert not (tmp_path / "spsa.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("think", "drain", "signals"),
    [(THINKING, 1.0, 1), (THINKING, 0.0, 1), (THINKING, 300.0, 2), (0.02, 300.0, 1)],
)
def test_a_worker_that_is_asked_to_leave_does_so_in_time_and_leaves_nothing(
    begin, think, drain, signals
):
    """One that has the time for it reports what it finishes."""
    tuner = begin("some", think=think)
    tuner.master()
    tuner.wait_for_run()
    worker = tuner.worker("--drain", drain)
    wait_until(lambda: bool(engines_of(tuner)), PATIENCE)
    worker.terminate()
    if signals > 1:  # two signals at once are one to Linux
        worker.until(lambda: "interrupt again to stop at once" in worker.log)
        worker.terminate()
    assert worker.ended(SOON) == 0, tuner.account()
    assert engines_of(tuner) == []
    with Store(tuner.url) as store:
        found = {(one.status.value, one.attempt) for one in store.batches(store.run().id)}
    if think == THINKING:
        assert found == {("ready", 0)}, "nothing is leased, and no attempt is used up"
        assert "handed back" in worker.log
    else:
        statuses = {status for status, _ in found}
        assert "done" in statuses and "leased" not in statuses, tuner.words()


@pytest.mark.slow
def test_a_worker_retires_when_it_has_had_no_work_for_long_enough(begin):
    tuner = begin("done", iterations=1)
    master = tuner.master()
    tuner.wait_for_work()  # all there will ever be
    tuner.ends(master, tuner.worker("--idle-timeout", 3))
    assert engines_of(tuner) == []
    tuner.ends(tuner.worker("--idle-timeout", 0.5), codes=(3,))


@pytest.mark.slow
@pytest.mark.long_on("postgresql")
def test_a_run_is_steered_from_its_start_to_a_fork(tmp_path, empty_database_url):
    tuner = uci_tuner(tmp_path / "run", empty_database_url, iterations=5)
    tuner.params, _, calm = tuner.params.partition("[calm]")
    tuner.configure("[adjudication]", "[validation]\nevery = 2\nshare = 0.5\n[adjudication]")
    tuner.tune()
    tuner.ask("doctor")
    with Store(tuner.url) as store:
        run = store.run()
        assert run.applied == 5 and run.source_sha256 is None
        rows = store.iterations(run.id)
        assert len({sha for it in rows for sha in (it.plus_sha256, it.minus_sha256)}) == 1
        assert store.file(rows[-1].plus_sha256), "the binary travels through the database"
        measured = store.iterations(run.id, purpose=Purpose.VALIDATE)
        assert measured and all(it.is_background and it.is_played for it in measured)

    tuner.ask("set", "--iterations", 7)
    tuner.tune()
    tuner.ask("doctor")
    tuner.ask("report", "--html", "report.html", "--csv", "tables")
    assert tuner.ask_json("status")["iterations_applied"] == 7
    assert "all matches to result" in tuner.ask("status").stdout

    options = ("--theta", 4, "--against", 2, "--sprt", -50, 50, "--games", 8, "--json")
    tuner.validate(*options, "--also", "depth=2")
    with Store(tuner.url) as store:
        first, second = store.matches(store.run().id)[-2:]
    assert (first.compared.theta, first.compared.against) == ("4", "2")
    assert (first.compared.time_control, second.compared.time_control) == (None, "depth=2")
    assert 0 < first.tally.games <= 8

    params = tuner.folder / "params.toml"
    params.write_text(params.read_text().replace("max = 50", "max = 40") + f"[calm]{calm}")
    tuner.tune("--from", "small@4", "--run", "second", "--same-engine")
    (there,) = tuner.ask_json("replay", "--run", "small", "--to", 4)["parameters"]
    bold, calm = tuner.ask_json("status", "--run", "second")["parameters"]
    assert bold["start"] == pytest.approx(min(there["value"], 40))
    assert (calm["name"], calm["start"]) == ("calm", 10) and calm["value"] != 10
    tuner.ask("doctor")
    told = tuner.ask_json("status", "--events", "--run", "second")
    kinds = [row["kind"] for row in told["events"]]
    assert kinds[0] == "start" and kinds[kinds.index("finished") + 1 :] == 2 * ["news"]


CRASHES = """\
import os as _os, random as _random, sys as _sys
if "sick" in _sys.argv and _random.random() < 0.015:
    _os._exit(1)
"""


def prepared(folder, url):
    """A run of short games, whose engine now and then crashes on the machine `sick`."""
    tuner = uci_tuner(folder, url, iterations=500)
    tuner.configure("games_per_iteration = 4", "games_per_iteration = 16")
    aside = "[notify]\nafter = 1\n[fleet]\nset_aside = true"
    tuner.configure("max_moves = 20", f"max_moves = 5\n{aside}")
    before_each_answer(folder / "optional.py", CRASHES)
    engine = folder / "optional"
    start = engine.read_text().rstrip()
    chosen = 'case "$0" in */sick/*) what=sick;; esac\n'
    engine.write_text(start.replace("exec", f"{chosen}exec") + " $what\n")
    return tuner


@pytest.mark.slow
@pytest.mark.long_on("postgresql")
def test_a_planted_sick_machine_is_found_set_aside_and_purged(tmp_path, database_url, sql):
    tuner = prepared(tmp_path / "run", database_url)
    tuner.master()
    tuner.wait_for_work()
    for machine in ("sick", "one", "two", "three"):
        tuner.worker("--idle-timeout", 600, machine=machine)
    tuner.until(lambda _: sql("SELECT machine FROM spsa_set_aside"))
    tuner.kill_all()
    ((sick, sha256, reason),) = sql("SELECT machine, sha256, reason FROM spsa_set_aside")
    assert sha256 is None and "batches had a void game" in reason
    faulty = sql(
        "SELECT w.host FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id"
        " GROUP BY w.host HAVING MAX(LENGTH(CAST(b.voids AS TEXT))) > 4"
    )
    assert [row.host for row in faulty] == [sick]
    dry = tuner.ask("purge", "--host", sick, "--dry-run").stdout
    assert "games in" in dry and "purge 1" not in dry
    listed = tuner.ask_json("workers", "list")["workers"]
    shown = {one["machine"]: one["against_others"] for one in listed}
    assert [name for name, one in shown.items() if one["is_suspect"]] == [sick]
    assert len(shown) == 4 and shown[sick]["findings"][0]["kind"] == "worker_voids"
    tuner.ask("purge", "--host", sick, "--yes")
    ((count,),) = sql(
        "SELECT COUNT(*) FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id"
        " WHERE w.host = :sick AND b.status = 'done'",
        sick=sick,
    )
    assert count == 0
    tuner.ask("doctor")


@pytest.mark.slow
@pytest.mark.long_on("sqlite")
def test_a_machine_is_purged_from_a_run_that_goes_on(tmp_path, database_url, sql):
    tuner = uci_tuner(tmp_path, database_url, iterations=ENDLESS)
    master = tuner.master()
    tuner.wait_for_run()
    workers = [tuner.worker(), tuner.worker()]
    tuner.until(lambda store: store.run(None).applied >= 3)
    playing = tuner.ask_json("status")["workers"]
    bad = str(max(playing, key=lambda worker: worker["games"])["name"])  # that has played the most
    said = tuner.ask("purge", "--worker", bad, "--yes").stdout
    removed = re.search(r"purge 1: (\d+) games", said)
    assert removed is not None
    dice = random.Random(1)
    for number in (1, 4):
        purging = tuner.start("purge", "--iteration", number, "--yes")
        time.sleep(dice.uniform(0.2, 1.2))  # whatever it is at by then
        purging.kill()
        purging.wait()
    tuner.ask("doctor")
    last = tuner.end_soon()
    tuner.ends(master)
    tuner.ends(*workers, codes=(0, 3))  # one that never was the first to ask had nothing to do
    tuner.ask("purge", "--iteration", last, "--yes")
    tuner.ask("doctor")
    assert broken(sql) == []
    with Store(tuner.url) as store:
        run = store.run()
        assert (run.status, run.applied) == (RunStatus.FINISHED, last)
        assert 2 <= run.purges <= 4
        assert says(tuner.folder / "params.toml", run.theta)
        theta = tuner.ask_json("replay")["parameters"]
        assert {p["name"]: p["value"] for p in theta} == dict(run.theta)
        removed_games = sum(purge.games for purge in store.purges(run.id))
    assert tuner.ask_json("status")["purged_games"] == removed_games >= int(removed[1]) + 4
