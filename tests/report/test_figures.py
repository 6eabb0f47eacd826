"""A run from its start to now as values, and its figures of them, in which names are text."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copy

import pytest
from asking import Store
from builders import space_from, stage
from golden import compare

from spsa.core.scoring import Tally
from spsa.db.read_queries import WorkerShare
from spsa.master.verdict import verdict
from spsa.planning.strength import StrengthCurve
from spsa.report import parameters
from spsa.report.figures import compared_figures, figures, parameter_figures, worker_figures
from spsa.report.report import RunHistory, history

HOSTILE = "</text><script>alert(1)</script>\u202e"
PARAMS = "".join(f"[p{i}]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" for i in range(3))
CURVE = StrengthCurve(ks=(0, 5, 10), elo=(0.0, 8.0, 12.0), deviation=(0.0, 4.0, 3.0))


@pytest.fixture(scope="module")
def told(sqlite_template, tmp_path_factory):
    """Ten iterations of three parameters, and a match of 40 games."""
    path = copy(sqlite_template, tmp_path_factory.mktemp("figures") / "spsa.db")
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = stage(store, space_from(PARAMS), 10)
        staged.validate(games=40)
        return history(store, staged.now())


def test_each_figure_is_the_golden_one(told):
    lines = (
        line
        for heading, drawn in situations(told)
        for line in (f"== {heading}", *(_lines(drawn) if drawn else ["nothing"]))
    )
    compare(Path(__file__).with_name("figures.txt"), "".join(f"{line}\n" for line in lines))


def situations(told: RunHistory) -> Iterator[tuple[str, dict[str, dict]]]:
    yield "a run with one match", figures(told)
    path = told.parameters[0]
    several = replace(told, measured=replace(told.measured, curve=CURVE))
    yield "several matches have one curve with its band", {"elo": figures(several)["elo"]}
    yield "one parameter", parameter_figures(told, path.name)
    ends = min(path.path) - 1.0, max(path.path) + 1.0
    run = replace(told.run, max_iterations=0)
    moved = tuple(replace(each, path=each.path[:2]) for each in told.parameters)
    two = replace(told, run=run, ks=told.ks[:2], gain=(0.0, 9.0), parameters=moved)
    yield "a run with one result", {**figures(two), **parameter_figures(two, path.name)}
    rows = replace(told, parameters=told.parameters * 2)
    yield "many parameters are a higher figure", {"moved": figures(rows)["moved"]}
    near = replace(told, parameters=(replace(path, minimum=ends[0], maximum=ends[1]),))
    yield "a parameter whose bounds are near", parameter_figures(near, path.name)
    yield "a parameter that is not there", parameter_figures(told, "none")
    against = replace(told.measured, opponent="fish (1a2b)")
    unknown, short = (
        replace(told, gain=None, measured=against),
        replace(told, ks=told.ks[:1], gain=None),
    )
    yield (
        "runs compared: known, without an estimate, with one result",
        compared_figures([told, unknown, short]),
    )
    yield (
        "no runs, and no path of a run without a result",
        {**compared_figures([]), **parameter_figures(short, path.name)},
    )
    counts = dict.fromkeys(("batches", "void_games", "time_losses", "nodes", "think_seconds"), 1)
    games = {"tally": Tally(4, 2, 2, (0, 1, 2, 1, 0)), "seconds": 8.0}
    part = WorkerShare(worker=HOSTILE, machine="machine", **games, **counts)
    more = (replace(part, worker=f"w{i}", seconds=8.0 + i) for i in range(4))
    yield "workers", worker_figures((part, replace(part, group=1, seconds=0.0), *more))
    yield "no workers", worker_figures(())


def _lines(drawn):
    json.dumps(drawn, allow_nan=False)
    for name, figure in drawn.items():
        yield f"{name}: {_plain(figure['layout'])}"
        yield from (f"    {_plain(trace)}" for trace in figure["data"])


def _plain(value):
    """As JSON, floats with four digits."""
    found = json.loads(json.dumps(value), parse_float=lambda text: float(f"{float(text):.4g}"))
    return json.dumps(found, ensure_ascii=False)


def test_a_legend_of_many_parameters_is_left_out_and_hostile_names_are_text(told):
    many = replace(told, parameters=told.parameters * 9)
    assert figures(many)["parameters"]["layout"]["showlegend"] is False
    odd = replace(told, parameters=(replace(told.parameters[0], name=HOSTILE),))
    text = json.dumps(figures(odd), ensure_ascii=False)
    assert "<script" not in text and "\u202e" not in text
    assert "&lt;/text&gt;&lt;script&gt;alert(1)" in text


TABLE = "[{}]\nvalue = {}\nmin = {}\nmax = {}\nstep = {}\n"
THREE = (
    *(TABLE.format("margin", 200, 50, 400, 20), TABLE.format("depth", 3, 1, 8, 1)),
    TABLE.format("kept", 7, 0, 9, 1) + "active = false\n",
)


@pytest.fixture(scope="module")
def space():
    return space_from("".join(THREE))


def test_a_path_has_every_result_and_is_thinned_if_it_is_long(store, space, monkeypatch):
    run = stage(store, space, 13).now()
    whole, thin = history(store, run), history(store, run, points=5)
    assert whole.ks == tuple(range(14)) and whole.games(whole.ks) == [*range(0, 105, 8)]
    assert [path.name for path in whole.parameters] == ["margin", "depth"]
    margin, steps = whole.parameters[0], store.steps(run.id)
    assert margin.path == (200.0, *(step.theta_after["margin"] for step in steps))
    assert thin.ks == (0, 3, 6, 9, 12, 13)
    assert thin.parameters[0].path == tuple(margin.path[k] for k in thin.ks)
    monkeypatch.setattr(parameters, "POINTS", 6)
    assert tuple(point.k for point in parameters.trail(store, run)) == thin.ks


def test_where_the_verdict_knows_no_gain_the_history_has_none(store, space):
    known = stage(store, space, 3).now()
    bounded = replace(known, theta={**known.theta, "margin": 400.0})  # one of two
    for run in (known, bounded, stage(store, space, 3, algorithm="spsa", name="s").now()):
        found, said = history(store, run), verdict(run)
        assert (found.gain is None) == bool(said.unknown)
        if found.gain is not None and said.gained is not None:
            assert found.gain[-1] == pytest.approx(said.gained)
