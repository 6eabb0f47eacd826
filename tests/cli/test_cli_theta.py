"""Which theta: the final or the supported one, as people and programs get it."""

import pytest
from builders import new_validation, stage
from masters import settings

from spsa.builds.tree import pin
from spsa.config import load_config
from spsa.config.space import load_space
from spsa.core import Estimates
from spsa.core.params import PlayedValues
from spsa.db.tables import Compared
from spsa.master.delivery_setup import delivery_settings

START = {"margin": 200.0, "depth": 3.0}
SUPPORTED = {"margin": 252.6, "depth": 5.0}
KNOWN = {"supported": SUPPORTED, "better_step": {"margin": 3.0}}
FINAL = {"margin": 221.0123456789, "depth": 3.5}


@pytest.fixture
def fresh(project, project_store):
    """A run "first" of the project's own parameters, without any result."""
    config = load_config(project / "config.toml", {})
    ours = [project / name for name in ("config.toml", "params.toml", "engines")]
    return stage(
        project_store,
        load_space(project / "params.toml"),
        planned=3,
        settings=settings(1, 3).to_json() | {"delivery": delivery_settings(config)},
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


def test_each_theta_is_to_be_had_as_a_patch_and_validated(tuned, ask, transcript, monkeypatch):
    transcript("each theta is to be had as a patch")
    tuned.store.release_master_lease(tuned.master)
    asked = []
    monkeypatch.setattr("spsa.cli.validate.play_match", lambda _held, _run, it: asked.append(it))
    for name, margin, depth in (("final", 221, 4), ("supported", 253, 5)):
        words = () if name == "final" else ("--theta", name)
        assert ask("validate", *words, "--sprt", 0, 5).code == 130
        plus, minus = {"margin": margin, "depth": depth}, {"margin": 200, "depth": 3}
        assert asked[-1].sides == PlayedValues(plus=plus, minus=minus)
        assert asked[-1].asked == Compared(theta=name, sprt=(0.0, 5.0))


@pytest.mark.usefixtures("fresh")
def test_a_theta_that_is_not_known_yet_is_said(ask, transcript):
    transcript.refused("a theta that is not known yet is said")
    for parameter in ask("status", "--json").json["parameters"]:
        assert [parameter[what] for what in KNOWN] == [None] * len(KNOWN)


def test_a_validation_says_which_theta_it_measured(tuned, transcript):
    for plus, compared in (
        ({"margin": 221, "depth": 4}, {}),
        ({"margin": 300, "depth": 5}, {}),
        ({"x": 1}, {"theta": "supported"}),
        ({"x": 1}, {"theta": "1"}),
    ):
        match = {"plus_parameters": plus, "compared": Compared(**compared), "opened_on": 1}
        tuned.store.open_iteration(tuned.master, new_validation(k=None, **match))
    transcript("a validation says which theta it measured")
