"""`status` of runs, once and watched, in every state, for people, programs, pipes and terminals."""

import json
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from builders import Stage, new_validation, new_worker, stage
from console import PARAMS, Running, master, write_project
from shell import Shell

from spsa.config.space import load_space
from spsa.core.scoring import Tally
from spsa.protocol import BatchResult


@pytest.fixture
def staged(project, project_store):
    """A run "first" in the database of the project, with its master and a worker."""
    ratio = "[ratio]\nvalue = 0.3\nmin = 0\nmax = 1\nstep = 0.25\nscale = 100\n"
    write_project(project, params=PARAMS + ratio)
    return begun(project_store)


def begun(store, **over):
    return stage(store, load_space(Path("params.toml")), planned=3, **over)


def one_sided(stage):
    """A played iteration in which plus won everything: the estimate that could be infinite."""
    stage.open(target_games=2, batch_games=2)
    claim = stage.claim("c")
    assert claim is not None
    stage.store.report(claim, BatchResult(tally=Tally.of_pair(2, 2)))


def finish(stage):
    for _ in range(3):
        stage.whole_iteration()
    stage.store.finish(stage.master)


def validate(stage):
    finish(stage)
    stage.store.open_iteration(stage.master, new_validation(k=None, opened_on=3))


def left(stage):
    validate(stage)
    stage.store.release_master_lease(stage.master)


def nobody_plays(stage):
    stage.open()
    stage.store.register_worker(new_worker("gone"))
    sql = Shell(stage.store.where)
    sql("UPDATE spsa_worker SET last_seen_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 hour')")
    sql("UPDATE spsa_run SET created_at = '2020-01-01 00:00:00.000'")
    sql.close()


STATES: dict[str, Callable[[Stage], object]] = {
    "new": lambda stage: None,
    "open": lambda stage: stage.open(),
    "won by plus alone": one_sided,
    "paused": lambda stage: stage.store.pause("first", "me", "for [/a] :reason:"),
    "stopped": lambda stage: (stage.open(), stage.store.stop("first", "me", "enough")),
    "finished": finish,
    "without a master": lambda stage: stage.store.release_master_lease(stage.master),
    "in validation": validate,
    "in a validation that was left": left,
    "without workers": nobody_plays,
    "with a name of markup": lambda stage: stage.store.register_worker(new_worker("[/b] :box:")),
}


@pytest.mark.parametrize("state", STATES)
def test_a_run_in_any_state_is_shown_and_what_to_do(state, staged, ask, transcript):
    STATES[state](staged)
    transcript(state)
    asked = ask("status", "--json")
    assert asked.err == "" and asked.json["run"] == "first" and len(asked.json["parameters"]) == 3


@pytest.mark.usefixtures("project")
def test_runs_are_listed_in_the_order_in_which_they_are_served(project_store, ask, transcript):
    begun(project_store, name="usual").open()
    urgent = begun(project_store, name="urgent", priority=2, share=0.5)
    urgent.open()
    urgent.claim("a")
    over = begun(project_store, name="over")
    project_store.stop("over", "me", "enough")
    transcript("runs are listed in the order in which they are served")
    listed = ask("status", "--json", "--all").json["runs"]
    assert [run["live"] for run in listed] == [True, True, False]
    project_store.open_iteration(over.master, new_validation())
    assert all(run["live"] for run in ask("status", "--json", "--all").json["runs"])


@pytest.mark.slow
def test_a_watch_ends_with_its_run(staged, ask):
    finish(staged)
    watched = ask("status", "--watch")
    assert watched.code == 0 and "\x1b" not in watched.out
    assert watched.out.startswith("run first: finished") and watched.out.endswith("\n")
    lines = ask("status", "--watch", "--json").out.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["finished"]


@pytest.mark.slow
def test_a_watch_tells_every_change_and_ends_at_ctrl_c(staged, project):
    words = ("status", "--watch", "--interval", 0.1, "--json")
    watching = Running(master(*words), project)

    def opened():
        """What was open in each line so far."""
        whole = watching.out.rpartition("\n")[0]
        return [json.loads(line)["open"] for line in whole.splitlines()]

    watching.until(opened)
    assert opened()[0] == []
    staged.open()
    watching.until(lambda: opened()[-1])
    watching.send_signal(signal.SIGINT)
    assert watching.ended() == 130 and watching.log.strip() == ""


def test_who_names_a_database_needs_no_config_toml(project, staged, transcript, monkeypatch):
    (project / "config.toml").write_text("[broken\n")
    transcript("a database that is named", url=staged.store.where)
    empty = project / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    transcript("a database that is named, without a config.toml", url=staged.store.where)
    assert list(empty.iterdir()) == []


def test_each_change_of_a_run_is_told(project, project_store, transcript):
    begun(project_store)
    transcript("each change of a run is told")
    with closing(Shell(project_store.where)) as sql:
        sql("UPDATE spsa_run SET applied = 1")
    transcript("doctor of a damaged run")
