"""`purge` and `replay` as people and scripts call them."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from masters import RunUnderTest
from purges import BAD, moved

from spsa.config.space import load_space, project_theta
from spsa.report.status import status


@pytest.fixture
def store(project_store, transcript):
    transcript("the parameters")
    return project_store


@pytest.fixture
def tested(store, project):
    """A run half way, whose params.toml says where theta is."""
    made = RunUnderTest(store, iterations=6)
    moved(made)
    project_theta(project / "params.toml", made.now().theta)
    return made


def test_what_would_be_purged_is_shown_and_what_cannot_be_meant_is_refused(
    tested, transcript, monkeypatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    before, now, hour = tested.now(), datetime.now(UTC), timedelta(hours=1)
    times = {"earlier": f"{now - hour:%Y-%m-%dT%H:%M:%S}", "later": f"{now + hour:%Y-%m-%dT%H:%M}"}
    transcript("what would be purged is shown and nothing is done", **times)
    transcript.refused("what cannot be meant is refused", **times)
    assert tested.now() == before


def test_purged_and_written_out(tested, project, store, transcript):
    left = status(store, tested.now()).games_left
    transcript("purged and written out")
    after = tested.now()
    written = {p.name: p.value for p in load_space(project / "params.toml").parameters}
    assert written == pytest.approx(after.theta, abs=1e-3)
    assert "# a person's words" in (project / "params.toml").read_text()
    assert status(store, after).games_left == left + 8, "closed iterations are not played again"


@pytest.mark.parametrize(("typed", "code", "purges"), [("n\n", 130, 0), ("y\n", 0, 1)])
def test_a_person_is_asked_once(tested, ask, monkeypatch, typed, code, purges):
    keyboard = io.StringIO(typed)
    keyboard.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", keyboard)
    heard = ask("purge", "--worker", BAD)
    assert (heard.code, tested.now().purges) == (code, purges)
    assert "remove them?" in heard.err and "remove them?" not in heard.out


def test_a_file_is_written_unless_it_says_something_else_and_by_the_next_try(tested, transcript):
    transcript("a file that says something else")
    assert tested.now().purges == 1


def test_theta_of_a_past_moment_is_printed(tested, store, ask, transcript):
    before = tested.now()
    steps = store.steps(before.id)
    assert ask("purge", "--iteration", "2", "--yes").code == 0
    for k in range(before.applied + 1):
        for option, same in ((("--as-applied",), True), ((), k < 2)):
            told = ask("replay", "--to", k, "--json", *option).json
            logged = steps[k - 1].theta_after if k else before.start_theta
            theta = {p["name"]: p["value"] for p in told["parameters"]}
            assert (told["k"], theta == dict(logged)) == (k, same)
    assert theta == tested.now().theta
    transcript("theta of a past moment")
