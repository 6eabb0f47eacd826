"""`status` of runs, once and watched, in every state, for people, programs, pipes and terminals."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from builders import new_validation, stage
from console import PARAMS, write_project
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
*STATES, LISTED, NAMED, NAMED_ALONE, CHANGES, WATCHED = headings(__file__)


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


def test_a_watch_tells_each_change_until_no_master_is_left(staged, ask, transcript, monkeypatch):
    store, master = staged.store, staged.master

    def measured():
        for _ in range(3):
            staged.whole_iteration()
        store.finish(master)
        store.open_iteration(master, new_validation())

    def slept(seconds):
        next(steps)()
        assert seconds == 7.5

    steps = iter((int, measured, lambda: store.release_master_lease(master)))
    monkeypatch.setattr("spsa.cli.status.time", SimpleNamespace(sleep=slept))
    watched = ask("status", "--watch", "--interval", 7.5)
    assert watched.code == 0 and watched.err == ""
    transcript.shows(WATCHED, re.sub(r"left: \d.*;", "left: {by the clock};", watched.out))


def test_who_names_a_database_needs_no_config_toml(project, staged, transcript, monkeypatch):
    (project / "config.toml").write_text("[broken\n")
    transcript(NAMED, url=staged.store.where)
    empty = project / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    transcript(NAMED_ALONE, url=staged.store.where)
    assert list(empty.iterdir()) == []
