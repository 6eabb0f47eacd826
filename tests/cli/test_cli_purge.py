"""`purge` and `replay` as people and scripts call them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from builders import LEASE, new_validation
from console import call, master, write_project
from masters import RunUnderTest
from purges import BAD, moved

from spsa.cli import execute
from spsa.config import load_space, project_theta
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.migrate import upgrade

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
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path, params=OURS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    upgrade(f"sqlite:///{tmp_path / 'spsa.db'}")
    return tmp_path


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as opened:
        yield opened


@pytest.fixture
def tested(store: Store, project: Path) -> RunUnderTest:
    """A run half way, whose params.toml says where theta is."""
    made = RunUnderTest(store, iterations=6)
    moved(made)
    write_theta(project, made.now().theta)
    return made


def write_theta(project, theta):
    project_theta(project / "params.toml", theta)


def file_values(project):
    return {p.name: p.value for p in load_space(project / "params.toml").parameters}


def test_what_would_be_purged_is_shown_and_nothing_is_done(tested, project, capsys):
    before = tested.now()
    assert execute(["purge", "--worker", BAD, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("run tested: 24 games in 6 batches of 6 iterations (+24 -0 =0)\n")
    assert f"\n  {BAD}: 24 games\n" in shown
    assert "\n  8 games of open iterations will be played again\n" in shown
    assert "theta is computed anew from the" in shown and "without them" in shown
    assert tested.now() == before


def test_purged_and_written_out(tested, project, store, capsys):
    assert execute(["purge", "--host", "bad", "--yes", "--reason", "ECC errors"]) == 0
    said = capsys.readouterr()
    assert "purge 1: 24 games are removed" in said.out
    assert "params.toml has theta without them now" in said.err
    after = tested.now()
    assert file_values(project) == pytest.approx(after.theta, abs=1e-3)
    assert "# a person's words" in (project / "params.toml").read_text()
    (event,) = (e for e in store.events(after.id) if e.kind == "purge")
    assert event.detail["reason"] == "ECC errors" and "@" in event.actor
    assert execute(["status"]) == 0
    assert "24 games removed by 1 purge" in capsys.readouterr().out
    assert execute(["purge", "--host", "bad", "--yes"]) == 3
    assert "nothing to purge" in capsys.readouterr().err


def test_a_program_gets_all_of_it(tested, capsys):
    before = tested.now()
    arguments = ["purge", "--iteration", "1", "--batch", "2.0", "--json"]
    assert execute([*arguments, "--dry-run"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert (wanted["purge"], wanted["batches"]) == (None, [[1, 0], [1, 1], [2, 0]])
    assert execute([*arguments, "--yes"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done == wanted | {"purge": 1}
    after = tested.now()
    for parameter in done["parameters"]:
        name = parameter["name"]
        assert (parameter["before"], parameter["after"]) == (before.theta[name], after.theta[name])
    steps = [abs(p["steps"]) for p in done["parameters"]]
    assert steps == sorted(steps, reverse=True) and steps[0] > 0


def test_a_file_that_says_something_else_is_left_alone(tested, project):
    write_theta(project, {"margin": 11.0})
    before = (project / "params.toml").read_text()
    assert execute(["purge", "--worker", BAD, "--yes"]) == 0
    assert (project / "params.toml").read_text() == before


def test_a_file_that_was_not_written_after_the_commit_is_written_by_the_next_try(tested, project):
    stale = (project / "params.toml").read_text()
    assert execute(["purge", "--worker", BAD, "--yes"]) == 0
    mended = (project / "params.toml").read_text()
    (project / "params.toml").write_text(stale)
    assert execute(["purge", "--worker", BAD, "--yes"]) == 3
    assert (project / "params.toml").read_text() == mended != stale


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--iteration", "1", "--iteration", "99"], "has no iteration 99: nothing is purged"),
        (["--batch", "98.0"], "has no iteration 98"),
        (["--worker", "bad"], "no worker 'bad' has ever played"),
        (["--host", BAD], f"no host '{BAD}' has ever played"),
    ],
)
def test_names_that_do_not_exist_are_refused(tested, store, arguments, said, capsys):
    before = tested.now()
    assert execute(["purge", *arguments, "--yes"]) == 3
    assert said in capsys.readouterr().err
    assert tested.now() == before


def test_a_match_of_another_theta_is_told(tested, store, capsys):
    run = tested.now()
    space = Space.from_json(run.space)
    number = store.open_iteration(
        store.acquire_master_lease(run.id, "m", LEASE),
        new_validation(
            opened_on=run.applied,
            opened_purges=run.purges,
            plus_parameters=space.rounded(space.steps(run.theta)),
            minus_parameters=space.rounded(space.steps(run.start_theta)),
        ),
    )
    assert execute(["purge", "--host", "bad", "--yes"]) == 0
    said = capsys.readouterr().out
    assert f"iteration {number} was a match of theta before this purge" in said


def test_times_are_understood(tested, store, capsys):
    now = datetime.now(UTC)
    hour = timedelta(hours=1)
    every = ("--dry-run", "--json")
    for since in (
        "1h",
        "90m ago",
        "1d 2h",
        (now - hour).isoformat(),
        f"{now - hour:%Y-%m-%dT%H:%M}",
    ):
        assert execute(["purge", "--since", since, *every]) == 0, since
        assert len(json.loads(capsys.readouterr().out)["batches"]) > 1
    for nothing in (("--until", "1h"), ("--since", f"{now + hour:%Y-%m-%dT%H:%M}")):
        assert execute(["purge", *nothing, *every]) == 3
    assert execute(["purge", "--since", "2h", "--until", "1h", *every]) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give a condition"),
        (("--worker", "x"), "there is no terminal to ask on"),
        (("--worker", "x", "--json"), "there is no terminal to ask on"),
        (("--since", "yesterday"), "'yesterday' is no time"),
        (("--since", "9" * 30 + "d"), "is no time"),
        (("--since", "999999d", "--yes"), "there was no database"),
        (("--since", "1h", "--until", "2h", "--yes"), "is not before --until"),
        (("--batch", "7"), "'7' is no batch: write 12.3"),
        (("--batch", "1.9999999999", "--yes"), "is no batch"),
        (("--iteration", "0"), "0 is not in the range"),
        (("--suggested",), "there is no terminal to ask on"),
        (("--suggested", "--host", "x", "--yes"), "--suggested names a machine"),
    ],
)
def test_what_cannot_be_meant_is_refused(tested, project, arguments, words):
    done = call(master("purge", *arguments), project)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--worker", "gone"), "no worker 'gone' has ever played for this database"),
        (("--batch", "999999999.999999999"), "run tested has no iteration 999999999"),
        (("--until", "2001-01-01"), "no counted result of run tested is selected"),
    ],
)
def test_nothing_matches(tested, project, arguments, said):
    done = call(master("purge", *arguments, "--yes"), project)
    assert done.returncode == 3, done.stderr
    assert said in done.stderr


def test_theta_of_a_past_moment_is_printed(tested, store, capsys):
    before = tested.now()
    steps = store.steps(before.id)
    assert execute(["purge", "--iteration", "2", "--yes"]) == 0
    capsys.readouterr()
    for k in range(before.applied + 1):
        for option, same in ((("--as-applied",), True), ((), k < 2)):
            assert execute(["replay", "--to", str(k), "--json", *option]) == 0
            told = json.loads(capsys.readouterr().out)
            logged = steps[k - 1].theta_after if k else before.start_theta
            theta = {p["name"]: p["value"] for p in told["parameters"]}
            assert (theta == dict(logged)) == same
    assert theta == tested.now().theta
    assert execute(["replay"]) == 0
    shown = capsys.readouterr().out
    assert f"theta after {before.applied} of {before.applied} results, by the games" in shown
    assert "margin" in shown
    assert execute(["replay", "--to", "99"]) == 3
    assert "so no theta of k=99" in capsys.readouterr().err
