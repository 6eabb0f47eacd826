"""`status` of runs, once and watched, in every state, for people, programs, pipes and terminals."""

import json
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from builders import Stage, new_validation, new_worker, stage
from console import PARAMS, Running, Said, master, write_project
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
    sql.close()


STATES: dict[str, tuple[Callable[[Stage], object], list[str]]] = {
    "new": (lambda stage: None, []),
    "open": (lambda stage: stage.open(), ["1 worker on 4 slots", "\niterations"]),
    "won by plus alone": (one_sided, []),
    "paused": (
        lambda stage: stage.store.pause("first", "me", "for [/a] :reason:"),
        ["look; first: it is paused: for [/a] :reason:; continue it with `spsa-master resume`"],
    ),
    "stopped": (lambda stage: (stage.open(), stage.store.stop("first", "me", "enough")), []),
    "finished": (finish, ["not measured: `spsa-master validate`"]),
    "without a master": (
        lambda stage: stage.store.release_master_lease(stage.master),
        ["no master runs it; start `spsa-master run`"],
    ),
    "in validation": (validate, ["validations"]),
    "in a validation that was left": (
        left,
        ["left after 0 of 8 games; `spsa-master validate --run first` continues it, with the"],
    ),
    "without workers": (
        nobody_plays,
        ["no worker plays; start `compete --spsa", "2 workers of this database not heard"],
    ),
    "with a name of markup": (
        lambda stage: stage.store.register_worker(new_worker("[/bold] :smile: box")),
        ["[/bold] :smile: box"],
    ),
}


@pytest.mark.parametrize("state", STATES)
def test_a_run_in_any_state_is_shown_and_what_to_do(state, staged, ask):
    reach, words = STATES[state]
    reach(staged)
    shown = ask("status")
    assert shown.code == 0 and shown.out.startswith("run first: ")
    assert [word for word in words if word not in shown.out] == []
    asked = ask("status", "--json")
    assert asked.err == "" and asked.json["run"] == "first" and len(asked.json["parameters"]) == 3


@pytest.mark.usefixtures("project")
def test_runs_are_listed_in_the_order_in_which_they_are_served(project_store, ask):
    begun(project_store, name="usual").open()
    urgent = begun(project_store, name="urgent", priority=2, share=0.5)
    urgent.open()
    urgent.claim("a")
    over = begun(project_store, name="over")
    project_store.stop("over", "me", "enough")
    listed = ask("status", "--json", "--all").json["runs"]
    assert [
        (r["name"], r["priority"], r["share"], r["claimed_batches"], r["live"]) for r in listed
    ] == [("urgent", 2, 0.5, 1, True), ("usual", 0, 1.0, 0, True), ("over", 0, 1.0, 0, False)]
    project_store.open_iteration(over.master, new_validation())
    assert all(run["live"] for run in ask("status", "--json", "--all").json["runs"])
    shown = ask("status", "--all").out.splitlines()
    assert [line.split()[0] for line in shown[2:]] == ["urgent", "usual", "over"]


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


def test_who_names_a_database_needs_no_config_toml(project, staged, ask, tmp_path, monkeypatch):
    (project / "config.toml").write_text("[broken\n")
    assert ask("status").code == 2
    for words in (["status", "--json"], ["report", "--json"], ["workers", "list", "--json"]):
        assert ask(*words, "--database-url", staged.store.where).code == 0
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert ask("status").code == 2
    monkeypatch.setenv("DATABASE_URL", staged.store.where)
    assert ask("status").out.startswith("run first: ")
    assert list(empty.iterdir()) == []


def test_each_change_of_a_run_is_told(project, project_store, ask):
    begun(project_store)
    for words, told in (
        (["pause", "--reason", "lunch"], "first is paused"),
        (["resume"], "first is running"),
        (["set", "--iterations", 1], "first has 1 iteration now"),
        (["set", "--priority", 2], "first has priority 2 and share 1 now"),
        (["set", "--share", 0.5], "first has priority 2 and share 0.5 now"),
        (["stop"], "first is stopped"),
    ):
        assert ask(*words) == Said(0, f"{told}\n", "")
    refused = ask("set")
    assert refused.code == 2 and "give --iterations, --priority or --share" in refused.err
    assert ask("doctor") == Said(0, "all is well: first\n", "")
    with closing(Shell(project_store.where)) as sql:
        sql("UPDATE spsa_run SET applied = 1")
    heard = ask("doctor")
    assert heard.code == 1 and "first" in heard.out and "all is well" not in heard.out
