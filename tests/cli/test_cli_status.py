"""`status` of runs, once and watched, in every state, for people, programs, pipes and terminals."""

import json
import signal
from pathlib import Path

import pytest
from builders import stage
from console import PARAMS, Running, master, write_project
from stories import Story
from transcripts import headings

from spsa.config.space import load_space


@pytest.fixture
def params(project):
    """Three parameters."""
    ratio = "[ratio]\nvalue = 0.3\nmin = 0\nmax = 1\nstep = 0.25\nscale = 100\n"
    write_project(project, params=PARAMS + ratio)


@pytest.fixture
def staged(params, project_store):
    """A run "first" in the database of the project, with its master and a worker."""
    return begun(project_store)


def begun(store, **over):
    return stage(store, load_space(Path("params.toml")), planned=3, **over)


class Shown(Story):
    """Runs of the project's parameters."""

    def begin(self, name="first", **over) -> None:
        staged = begun(self.store, name=name, **over)
        self._masters[name], self._workers["machine"] = staged.master, staged.worker


STORY = Shown
*STATES, LISTED, NAMED, NAMED_ALONE, CHANGES = headings(__file__)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.usefixtures("params")
def test_a_run_in_any_state_is_shown_and_what_to_do(state, told, ask):
    told(state)
    asked = ask("status", "--json")
    assert asked.err == "" and asked.json["run"] == "first" and len(asked.json["parameters"]) == 3


@pytest.mark.parametrize("heading", [LISTED, CHANGES])
@pytest.mark.usefixtures("project")
def test_runs_and_changes_are_listed(heading, told):
    told(heading)


@pytest.mark.slow
def test_a_watch_ends_with_its_run(staged, ask):
    for _ in range(3):
        staged.whole_iteration()
    staged.store.finish(staged.master)
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
    transcript(NAMED, url=staged.store.where)
    empty = project / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    transcript(NAMED_ALONE, url=staged.store.where)
    assert list(empty.iterdir()) == []
