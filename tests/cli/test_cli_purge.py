"""`purge` and `replay` as people and scripts call them."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from masters import RunUnderTest
from purges import BAD, moved

from spsa.config.projection import project_theta
from spsa.config.space import load_space
from spsa.report.status import status

OURS = """\
[margin]
value = 50  # a person's words
min = 0
max = 100
step = 8

[ratio]
value = 0.3
min = 0.1
max = 0.9
step = 0.1
scale = 100

[still]
value = 50
min = 0
max = 100
step = 8
active = false
"""


@pytest.fixture
def store(project, project_store):
    (project / "params.toml").write_text(OURS)
    return project_store


@pytest.fixture
def tested(store, project):
    """A run half way, whose params.toml says where theta is."""
    made = RunUnderTest(store, iterations=6)
    moved(made)
    write_theta(project, made.now().theta)
    return made


def write_theta(project, theta):
    project_theta(project / "params.toml", theta)


def file_values(project):
    return {p.name: p.value for p in load_space(project / "params.toml").parameters}


def test_what_would_be_purged_is_shown_and_nothing_is_done(tested, project, ask):
    before = tested.now()
    shown = ask("purge", "--worker", BAD, "--dry-run").out
    assert shown.startswith("run tested: 24 games in 6 batches of 6 iterations (+24 -0 =0)\n")
    assert f"\n  {BAD}: 24 games\n" in shown
    assert "\n  8 games of open iterations will be played again\n" in shown
    assert "theta is computed anew from the" in shown and "without them" in shown
    some = ask("purge", "--iteration", "1", "--batch", "2", "0", "--dry-run").out
    assert "in 3 batches of 2 iterations" in some
    assert tested.now() == before


def test_purged_and_written_out(tested, project, store, ask):
    left = status(store, tested.now()).games_left
    said = ask("purge", "--host", "bad", "--yes", "--reason", "ECC errors")
    assert said.code == 0
    assert "purge 1: 24 games are removed" in said.out
    assert "params.toml has theta without them now" in said.err
    after = tested.now()
    assert file_values(project) == pytest.approx(after.theta, abs=1e-3)
    assert "# a person's words" in (project / "params.toml").read_text()
    (event,) = (e for e in store.events(after.id) if e.kind == "purge")
    assert event.detail["reason"] == "ECC errors" and "@" in event.actor
    heard = ask("status")
    assert heard.code == 0 and "24 games removed by 1 purge" in heard.out
    assert status(store, after).games_left == left + 8, "closed iterations are not played again"
    heard = ask("purge", "--host", "bad", "--yes")
    assert heard.code == 3 and "nothing to purge" in heard.err


@pytest.mark.parametrize(("typed", "code", "purges"), [("n\n", 130, 0), ("y\n", 0, 1)])
def test_a_person_is_asked_once(tested, ask, monkeypatch, typed, code, purges):
    keyboard = io.StringIO(typed)
    keyboard.isatty = lambda: True
    monkeypatch.setattr("sys.stdin", keyboard)
    heard = ask("purge", "--worker", BAD)
    assert (heard.code, tested.now().purges) == (code, purges)
    assert "remove them?" in heard.err and "remove them?" not in heard.out


def test_a_file_that_says_something_else_is_left_alone(tested, project, ask):
    write_theta(project, {"margin": 11.0})
    before = (project / "params.toml").read_text()
    assert ask("purge", "--worker", BAD, "--yes").code == 0
    assert (project / "params.toml").read_text() == before


def test_a_file_that_was_not_written_is_written_by_the_next_try(tested, project, ask):
    stale = (project / "params.toml").read_text()
    assert ask("purge", "--worker", BAD, "--yes").code == 0
    mended = (project / "params.toml").read_text()
    (project / "params.toml").write_text(stale)
    assert ask("purge", "--worker", BAD, "--yes").code == 3
    assert (project / "params.toml").read_text() == mended != stale


def test_times_are_in_utc(tested, ask):
    now, hour = datetime.now(UTC), timedelta(hours=1)
    for since in (f"{now - hour:%Y-%m-%dT%H:%M}", f"{now - hour:%Y-%m-%dT%H:%M:%S}"):
        assert ask("purge", "--since", since, "--dry-run").code == 0, since
    for nothing in (
        ("--until", f"{now - hour:%Y-%m-%d}"),
        ("--since", f"{now + hour:%Y-%m-%dT%H:%M}"),
    ):
        assert ask("purge", *nothing, "--dry-run").code == 3


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("", 2, "give a condition"),
        ("--worker x", 2, "there is no terminal to ask on"),
        ("--worker bda-1 --yes", 2, "the database knows no 'bda-1'; did you mean"),
        ("--host x --yes", 2, "--host: the database knows no 'x'; use one of"),
        ("--worker bad --yes", 2, "it is a machine: --host bad"),
        ("--since yesterday", 2, "'yesterday' does not match the formats"),
        ("--iteration 99 --yes", 3, "no counted result of run tested is selected"),
    ],
)
def test_what_cannot_be_meant_is_refused(tested, line, code, words, ask, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    before = tested.now()
    heard = ask("purge", *line.split())
    assert heard.code == code and words in heard.err
    assert tested.now() == before


def test_theta_of_a_past_moment_is_printed(tested, store, ask):
    before = tested.now()
    steps = store.steps(before.id)
    assert ask("purge", "--iteration", "2", "--yes").code == 0
    for k in range(before.applied + 1):
        for option, same in ((("--as-applied",), True), ((), k < 2)):
            told = ask("replay", "--to", k, "--json", *option).json
            logged = steps[k - 1].theta_after if k else before.start_theta
            theta = {p["name"]: p["value"] for p in told["parameters"]}
            assert (theta == dict(logged)) == same
    assert theta == tested.now().theta
    shown = ask("replay").out
    assert f"theta after {before.applied} of {before.applied} results, by the games" in shown
    assert shown.splitlines()[2].split()[:4] == ["name", "start", "theta", "averaged"]
    heard = ask("replay", "--to", "99")
    assert heard.code == 3 and "so no theta of k=99" in heard.err
