"""A run from its start to now as values: what figures and reports show."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from builders import space_from, stage

from spsa.master.verdict import verdict
from spsa.report.parameters import signal_to_noise
from spsa.report.report import history
from spsa.report.status import status

pytestmark = pytest.mark.slow_on("postgresql")

TABLE = "[{}]\nvalue = {}\nmin = {}\nmax = {}\nstep = {}\n"
PARAMS = (
    *(TABLE.format("margin", 200, 50, 400, 20), TABLE.format("depth", 3, 1, 8, 1)),
    TABLE.format("kept", 7, 0, 9, 1) + "active = false\n",
)


@pytest.fixture(scope="module")
def space():
    return space_from("".join(PARAMS))


def test_a_path_has_every_result_and_is_thinned_if_it_is_long(store, space):
    run = stage(store, space, 13).now()
    whole, thin = history(store, run), history(store, run, points=5)
    assert whole.ks == tuple(range(14)) and whole.games(whole.ks) == [*range(0, 105, 8)]
    assert [path.name for path in whole.parameters] == ["margin", "depth"]
    margin, steps = whole.parameters[0], store.steps(run.id)
    assert margin.path == (200.0, *(step.theta_after["margin"] for step in steps))
    assert thin.ks == (0, 3, 6, 9, 12, 13)
    assert thin.parameters[0].path == tuple(margin.path[k] for k in thin.ks)


def test_only_a_method_that_was_told_curvatures_has_a_deviation(store, space):
    for name in ("mixture", "spsa", "bspsas"):
        found = status(store, stage(store, space, 3, algorithm=name, name=name).now()).parameters
        assert all(p.supported is not None for p in found if p.active)
        assert all((p.supported_sd is None) == (name != "bspsas") for p in found if p.active)


def test_where_the_verdict_knows_no_gain_the_history_has_none(store, space):
    known = stage(store, space, 3).now()
    bounded = replace(known, theta={**known.theta, "margin": 400.0})  # one of two
    for run in (known, bounded, stage(store, space, 3, algorithm="spsa", name="s").now()):
        found, said = history(store, run), verdict(run)
        assert (found.gain is None) == bool(said.unknown)
        if found.gain is not None and said.gained is not None:
            assert found.gain[-1] == pytest.approx(said.gained)


def test_a_trend_stands_out_of_a_walk():
    assert signal_to_noise([1.0]) is None and signal_to_noise([2.0, 2.0]) is None
    assert signal_to_noise([0.0, 1.0, 2.0, 3.0, 4.0]) == pytest.approx(2.0)
    assert signal_to_noise([0.0, 1.0, 0.0, 1.0, 0.0]) == 0.0
    walks = np.random.default_rng(1).normal(size=(2000, 40)).cumsum(axis=1)
    found = [signal_to_noise(walk) or 0.0 for walk in walks]
    assert sqrt(np.mean(np.square(found))) == pytest.approx(1.0, abs=0.05)
    assert np.mean(np.array(found) < 2.0) == pytest.approx(0.95, abs=0.02)
