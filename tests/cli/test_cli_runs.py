"""Several runs of one database, as their owners see and steer them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import Stage, new_validation, stage
from console import CONFIG, call, master, write_project

from spsa.config import load_config, load_space
from spsa.db import Store
from spsa.db.migrate import upgrade
from spsa.errors import InvalidInput


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path)
    upgrade(f"sqlite:///{tmp_path / 'spsa.db'}")
    return tmp_path


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as opened:
        yield opened


def begin(store: Store, project: Path, **over: object) -> Stage:
    space = load_space(project / "params.toml").to_json()
    return stage(store, space=space, theta={"margin": 200.0, "depth": 3.0}, **over)


def look(project: Path, *options: str) -> dict[str, object]:
    return dict(json.loads(call(master("status", "--json", *options), project).stdout))


@pytest.mark.slow
def test_runs_are_listed_in_the_order_in_which_they_are_served(store: Store, project: Path) -> None:
    begin(store, project, name="usual").open()
    urgent = begin(store, project, name="urgent", priority=2, share=0.5)
    urgent.open()
    urgent.claim("a")
    over = begin(store, project, name="over")
    store.stop("over", "me", "enough")
    listed = look(project, "--all")["runs"]
    assert isinstance(listed, list)
    assert [(r["name"], r["priority"], r["share"], r["slots"]) for r in listed] == [
        ("urgent", 2, 0.5, 1),
        ("usual", 0, 1.0, 0),
        ("over", 0, 1.0, 0),
    ]
    assert [run["live"] for run in listed] == [True, True, False]
    beside = look(project)["runs"]
    assert beside == [run for run in listed if run["live"]]
    store.open_iteration(over.master, new_validation())
    assert [run["live"] for run in look(project, "--all")["runs"]] == [True, True, True]  # type: ignore[attr-defined]
    shown = call(master("status", "--all"), project).stdout.splitlines()
    assert [line.split()[0] for line in shown[2:]] == ["urgent", "usual", "over"]


@pytest.mark.slow
def test_a_run_alone_is_not_listed(store: Store, project: Path) -> None:
    begin(store, project)
    assert look(project)["runs"] == []
    assert "slots now" not in call(master("status"), project).stdout


def test_a_run_is_given_another_priority_and_share_while_it_is_live(
    store: Store, project: Path
) -> None:
    begin(store, project, name="first")
    begin(store, project, name="second")
    done = call(master("set", "--run", "first", "--priority", "-3", "--share", "2.5"), project)
    assert done.stdout == "first has priority -3 and share 2.5 now\n"
    assert (store.run("first").priority, store.run("first").share) == (-3, 2.5)
    (told,) = [e for e in store.events(store.run("first").id) if e.kind == "prioritize"]
    assert told.detail == {"priority": -3, "share": 2.5}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "give --iterations, --priority or --share"),
        (("--share", "0"), "0.0 is not in the range"),
        (("--share", "nan"), "nan is no number"),
        (("--share", "inf"), "inf is not in the range"),
        (("--priority", "1001"), "1001 is not in the range"),
        (("--priority", "high"), "'high' is not a valid integer"),
    ],
)
def test_what_is_no_priority_or_share_is_usage(
    store: Store, project: Path, options: tuple[str, ...], said: str
) -> None:
    begin(store, project)
    done = call(master("set", *options), project)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert (store.run().priority, store.run().share) == (0, 1.0)


def test_the_configuration_says_how_a_new_run_is_served(project: Path) -> None:
    served = "[run]\npriority = -2\nshare = 0.25"
    (project / "config.toml").write_text(CONFIG.replace("[run]", served))
    config = load_config(project / "config.toml", {})
    assert (config.run.priority, config.run.share) == (-2, 0.25)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("priority = 1.5", "priority = 1.5 is not a whole number; write priority = 3, say"),
        ("priority = -1001", "priority = -1001 is too small; use at least -1000"),
        ("priority = 1001", "priority = 1001 is too large; use at most 1000"),
        ("share = 0", "share = 0 is too small; use at least 1e-06"),
        ('share = "all"', 'share = "all" is not a finite number'),
    ],
)
def test_a_wrong_priority_or_share_is_refused_with_its_line(
    project: Path, line: str, said: str
) -> None:
    (project / "config.toml").write_text(CONFIG.replace("[run]", f"[run]\n{line}"))
    with pytest.raises(InvalidInput) as refused:
        load_config(project / "config.toml", {})
    assert f"config.toml:2: [run] {said}" in str(refused.value)
