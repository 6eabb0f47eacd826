"""Which theta: the final, the averaged or the supported one, as people and programs get it."""

import pytest
from builders import new_validation, stage
from console import SOURCE
from masters import settings

from spsa.builds.tree import pin
from spsa.config.projection import project_theta
from spsa.config.space import load_space
from spsa.core import Estimates
from spsa.core.params import PlayedValues
from spsa.db.tables import Compared

START = {"margin": 200.0, "depth": 3.0}
AVERAGED = {"margin": 231.4, "depth": 4.2}
SUPPORTED = {"margin": 252.6, "depth": 5.0}
KNOWN = {
    "averaged": AVERAGED,
    "averaged_sd": {"margin": 12.345, "depth": 0.0},
    "supported": SUPPORTED,
    "supported_sd": {"margin": 7.0, "depth": 0.25},
    "better_step": {"margin": 3.0},
}
FINAL = {"margin": 221.0123456789, "depth": 3.5}
DELIVERY = {
    "kind": "build",
    "require": [],
    "constants_file": "src/engine_constants.rs",
    "command": [],
    "package": None,
    "binary": None,
    "flags": ["--release"],
    "target": None,
    "levels": [],
    "where": "master",
}


@pytest.fixture
def fresh(project, project_store):
    """A run "first" of the project's own parameters, without any result."""
    ours = [project / name for name in ("config.toml", "params.toml", "engines")]
    return stage(
        project_store,
        load_space(project / "params.toml"),
        planned=3,
        settings=settings(1, 3).to_json() | {"delivery": DELIVERY},
        source_sha256=pin(project / "engine", project / ".tuning", ours).sha256,
    )


@pytest.fixture
def tuned(fresh):
    """The run with a result, after which everything is known."""
    fresh.open()
    fresh.play()
    delta = {name: FINAL[name] - START[name] for name in START}
    fresh.apply(delta=delta, theta=FINAL, estimates=Estimates(**KNOWN))
    return fresh


@pytest.mark.parametrize(
    ("options", "plus"),
    [
        ([], {"margin": 221, "depth": 4}),
        (["--theta", "averaged"], {"margin": 231, "depth": 4}),
        (["--theta", "supported"], {"margin": 253, "depth": 5}),
    ],
)
def test_each_theta_is_to_be_had_as_a_patch_and_validated(tuned, options, plus, ask, monkeypatch):
    told = ask("params", "diff", "--run", "first", *options)
    assert "the games suggest other steps: margin 3 instead of 20" in told.err
    patch = told.out.splitlines()
    added = [line for line in patch if line.startswith("+pub")]
    assert added == [f"+pub const {n.upper()}: i32 = {v};" for n, v in plus.items()]
    assert [line[1:] for line in patch if line.startswith("-pub")] == SOURCE.splitlines()
    tuned.store.release_master_lease(tuned.master)
    asked = []
    monkeypatch.setattr("spsa.cli.validate.play_match", lambda _held, _run, it: asked.append(it))
    assert ask("validate", *options, "--sprt", 0, 5).code == 130
    (match,) = asked
    assert match.sides == PlayedValues(plus=plus, minus={"margin": 200, "depth": 3})
    assert match.asked == Compared(theta=options[-1] if options else "final", sprt=(0.0, 5.0))


@pytest.mark.usefixtures("tuned")
def test_the_values_of_a_run_have_the_digits_that_its_master_writes(project, ask):
    export = ("params", "export", "--format", "toml")
    project_theta(project / "params.toml", FINAL)
    told = ask(*export, "--run", "first").out
    assert told == ask(*export).out and "\nvalue = 221.012\n" in told


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("command", "theta"), [("params diff", "averaged"), ("validate", "supported")]
)
def test_a_theta_that_is_not_known_yet_is_said(command, theta, ask):
    heard = ask(*command.split(), "--run", "first", "--theta", theta)
    assert (heard.code, heard.out) == (3, "")
    assert f"run first has no {theta} theta yet, after 0 results: use --theta final" in heard.err
    for parameter in ask("status", "--json").json["parameters"]:
        assert [parameter[what] for what in KNOWN] == [None] * len(KNOWN)


@pytest.mark.parametrize(
    ("plus", "compared", "theta", "shown"),
    [
        ({"margin": 221, "depth": 4}, {}, ["present"], " present"),
        ({"margin": 300, "depth": 5}, {}, [], ""),
        ({"x": 1}, {"theta": "averaged"}, [], " averaged after 1 result"),
        ({"x": 1}, {"theta": "1"}, [], " 1"),
    ],
)
def test_a_validation_says_which_theta_it_measured(tuned, plus, compared, theta, shown, ask):
    match = {"plus_parameters": plus, "compared": Compared(**compared)}
    tuned.store.open_iteration(tuned.master, new_validation(k=None, opened_on=1, **match))
    (found,) = ask("status", "--json").json["validations"]
    assert found["measured"] == theta
    assert shown in ask("status").out
