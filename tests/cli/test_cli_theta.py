"""Which theta: the final, the averaged or the supported one, as people and programs get it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import Stage, new_validation, stage
from console import SOURCE, call, master, write_project
from masters import settings

from spsa.algorithms.tuning import tuning
from spsa.builds.source import pin
from spsa.cli import execute
from spsa.config import load_space
from spsa.core.estimates import Estimates
from spsa.core.params import PlayedValues
from spsa.db import Store
from spsa.db.migrate import upgrade
from spsa.db.tables import Compared
from spsa.report.text import estimated

START = {"margin": 200.0, "depth": 3.0}
AVERAGED = {"margin": 231.4, "depth": 4.2}
SUPPORTED = {"margin": 252.6, "depth": 5.0}
KNOWN = {
    "averaged": AVERAGED,
    "averaged_sd": {"margin": 12.345, "depth": 0.0},
    "supported": SUPPORTED,
    "supported_sd": {"margin": 7.0, "depth": 0.25},
}
FINAL = {"margin": 221.0, "depth": 3.5}
DELIVERY = {
    "kind": "build",
    "constants_file": "src/engine_constants.rs",
    "binary": None,
    "flags": ["--release"],
    "target": None,
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    upgrade(f"sqlite:///{tmp_path / 'spsa.db'}")
    return tmp_path


@pytest.fixture
def fresh(project: Path) -> Iterator[Stage]:
    """A run "first" of the project's own parameters, without any result."""
    ours = [project / name for name in ("config.toml", "params.toml", "engines")]
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as store:
        yield stage(
            store,
            space=load_space(project / "params.toml").to_json(),
            theta=START,
            settings=settings(1, 3).to_json() | {"delivery": DELIVERY},
            source_sha256=pin(project / "engine", project / ".tuning", ours).sha256,
        )


@pytest.fixture
def tuned(fresh: Stage) -> Stage:
    """The run with a result, after which everything is known."""
    fresh.open()
    fresh.play()
    delta = {name: FINAL[name] - START[name] for name in START}
    fresh.apply(delta=delta, theta_after=FINAL, estimates=Estimates(**KNOWN))
    return fresh


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "margin", "depth"),
    [
        ((), 221, 4),
        (("--theta", "final"), 221, 4),
        (("--theta", "averaged"), 231, 4),
        (("--theta", "supported"), 253, 5),
    ],
)
@pytest.mark.usefixtures("tuned")
def test_each_theta_is_to_be_had_as_a_patch(
    options: tuple[str, ...], margin: int, depth: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["params", "diff", "--run", "first", *options]) == 0
    patch = capsys.readouterr().out.splitlines()
    added = [line for line in patch if line.startswith("+pub")]
    assert added == [f"+pub const MARGIN: i32 = {margin};", f"+pub const DEPTH: i32 = {depth};"]
    assert [line[1:] for line in patch if line.startswith("-pub")] == SOURCE.splitlines()


@pytest.mark.usefixtures("tuned")
def test_the_start_is_no_patch(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["params", "diff", "--run", "first", "--theta", "start"]) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", [["params", "diff"], ["validate"]])
@pytest.mark.parametrize("theta", ["averaged", "supported"])
@pytest.mark.usefixtures("fresh")
def test_a_theta_that_is_not_known_yet_is_said(
    command: list[str], theta: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*command, "--run", "first", "--theta", theta]) == 3
    heard = capsys.readouterr()
    assert heard.out == ""
    assert f"run first has no {theta} theta yet, after 0 results: use --theta final" in heard.err


@pytest.mark.parametrize(
    "options",
    [
        ["--theta", "averaged"],
        ["--run", "first", "--theta", "best"],
    ],
)
@pytest.mark.usefixtures("tuned")
def test_what_makes_no_sense_is_usage(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["params", "diff", *options]) == 2
    heard = capsys.readouterr()
    assert heard.out == "" and "Error:" in heard.err


@pytest.mark.parametrize(
    ("options", "plus"),
    [
        ((), {"margin": 221, "depth": 4}),
        (("--theta", "averaged"), {"margin": 231, "depth": 4}),
        (("--theta", "supported"), {"margin": 253, "depth": 5}),
    ],
)
def test_the_theta_that_is_asked_for_is_validated(
    tuned: Stage, options: tuple[str, ...], plus: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    tuned.store.release_master_lease(tuned.master)
    asked: list[PlayedValues] = []

    def play_match(_seat: Any, _run: Any, sides: PlayedValues, *_: Any) -> None:
        asked.append(sides)

    monkeypatch.setattr("spsa.cli.validate.play_match", play_match)
    assert execute(["validate", *options]) == 130
    assert asked == [PlayedValues(plus=plus, minus={"margin": 200, "depth": 3})]


@pytest.mark.parametrize(
    ("plus", "theta"),
    [
        ({"margin": 221, "depth": 4}, ["final"]),
        ({"margin": 253, "depth": 5}, ["supported"]),
        ({"margin": 300, "depth": 5}, []),
    ],
)
def test_a_validation_says_which_theta_it_measured(
    tuned: Stage, plus: dict[str, int], theta: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    tuned.store.open_iteration(
        tuned.master, new_validation(k=None, opened_on=1, plus_parameters=plus)
    )
    assert execute(["status", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["validations"]
    assert found["theta"] == theta
    assert execute(["status"]) == 0
    assert all(f" {name}" in capsys.readouterr().out for name in theta)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("final", "final after 1 result"), ("averaged", "averaged after 1 result"), ("1", "1")],
)
def test_a_match_of_a_theta_that_moved_on_says_when_it_was(
    tuned: Stage, asked: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tuned.store.open_iteration(
        tuned.master,
        new_validation(
            k=None, opened_on=1, plus_parameters={"x": 1}, compared=Compared(theta=asked)
        ),
    )
    assert execute(["status"]) == 0
    assert f" {shown}" in capsys.readouterr().out


@pytest.mark.usefixtures("tuned")
def test_programs_get_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", "--json"]) == 0
    found = {p["name"]: p for p in json.loads(capsys.readouterr().out)["parameters"]}
    for name, start in START.items():
        assert (found[name]["start"], found[name]["value"]) == (start, FINAL[name])
        assert all(found[name][what] == values[name] for what, values in KNOWN.items())


@pytest.mark.usefixtures("fresh")
def test_programs_get_null_for_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status", "--json"]) == 0
    for parameter in json.loads(capsys.readouterr().out)["parameters"]:
        assert [parameter[what] for what in KNOWN] == [None] * 4


def table_of_parameters(text: str) -> list[list[str]]:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    first = lines.index("parameters") + 1
    return [line.replace(" ± ", "±").split() for line in lines[first : first + 3]]


@pytest.mark.usefixtures("tuned")
def test_people_get_them_with_their_deviations(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status"]) == 0
    head, margin, depth = table_of_parameters(capsys.readouterr().out)
    assert head[:7] == ["name", "start", "final", "averaged±sd", "supported±sd", "played", "as"]
    assert margin[:5] == ["margin", "200", "221", "231±12", "252.6±7.0"]
    assert depth[:5] == ["depth", "3", "3.5", "4.2", "5.00±0.25"]


@pytest.mark.usefixtures("fresh")
def test_people_get_a_dash_for_what_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["status"]) == 0
    _, margin, _ = table_of_parameters(capsys.readouterr().out)
    assert margin[:5] == ["margin", "200", "200", "-", "-"]


@pytest.mark.parametrize(
    ("value", "deviation", "said"),
    [
        (None, None, "-"),
        (541.23456, None, "541.235"),
        (541.23456, 0.0, "541.235"),
        (541.23456, 12.3, "541 ± 12"),
        (541.23456, 1.23, "541.2 ± 1.2"),
        (-0.123456, 0.00234, "-0.1235 ± 0.0023"),
        (54123.0, 1234.0, "54123 ± 1234"),
        (0.5, 0.0996, "0.500 ± 0.100"),
    ],
)
def test_an_estimate_has_the_digits_that_mean_something(
    value: float | None, deviation: float | None, said: str
) -> None:
    assert estimated(value, deviation) == said


@pytest.mark.slow
def test_the_state_of_another_rule_ends_in_a_sentence(project: Path, fresh: Stage) -> None:
    space = load_space(project / "params.toml")
    other = tuning(space, "mixture", {}, iterations=3, pairs=4, seed=1)
    fresh.open()
    fresh.play()
    fresh.apply(state=other.start()[1])
    fresh.store.release_master_lease(fresh.master)
    done = call(master("run", "--run", "first"), project)
    assert done.returncode == 2
    assert "spsa cannot use the saved state: unknown: evidence, " in done.stderr
