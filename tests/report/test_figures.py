"""The figures of a run: each series is the values of its history, and names are text."""

import json
from dataclasses import replace
from shutil import copy

import pytest
from asking import Store
from builders import space_from, stage

from spsa.core.scoring import Tally
from spsa.db.history_queries import WorkerShare
from spsa.planning.strength import StrengthCurve
from spsa.report.figures import compared_figures, figures, parameter_figures, worker_figures
from spsa.report.report import history
from spsa.report.table import estimate, number

HOSTILE = "</text><script>alert(1)</script>\u202e"
PARAMS = "".join(f"[p{i}]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" for i in range(3))


@pytest.fixture(scope="module")
def told(sqlite_template, tmp_path_factory):
    """Ten iterations of three parameters, and a match of 40 games."""
    path = copy(sqlite_template, tmp_path_factory.mktemp("figures") / "spsa.db")
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = stage(store, space_from(PARAMS), 10)
        staged.validate(games=40)
        return history(store, staged.now())


def traces(found, name):
    drawn = figures(found)
    json.dumps(drawn, allow_nan=False)
    return list(drawn[name]["data"])


def test_elo_is_measured_estimated_and_from_nothing_to_the_planned_total(told):
    model, matches = traces(told, "elo")
    assert told.gain is not None and model["y"] == list(told.gain)
    assert model["line"]["dash"] == "dash"
    found = estimate(told.validations[0].tally)
    assert found is not None
    assert (matches["x"], matches["y"]) == ([80], [found.value])
    assert matches["error_y"]["array"] == [found.error]
    layout = figures(told)["elo"]["layout"]
    assert layout["xaxis"]["range"] == [0, 80] and layout["yaxis"]["zeroline"] is True
    assert layout["annotations"][0]["text"] == f"{found.value:+.1f} ± {found.error:.1f}"


def test_several_matches_have_one_curve_with_its_band(told):
    curve = StrengthCurve(ks=(0, 5, 10), elo=(0.0, 8.0, 12.0), deviation=(0.0, 4.0, 3.0))
    band, line, *_ = traces(replace(told, measured=replace(told.measured, curve=curve)), "elo")
    assert (line["x"], line["y"]) == ([0, 40, 80], [0.0, 8.0, 12.0])
    least = [elo - error for elo, error in zip(curve.elo, curve.errors, strict=True)]
    most = [elo + error for elo, error in zip(curve.elo, curve.errors, strict=True)]
    assert band["x"] == [0, 40, 80, 80, 40, 0] and band["fill"] == "toself"
    assert band["y"] == [*least, *reversed(most)]


def test_all_paths_are_in_steps_and_the_dots_are_sorted_by_what_moved(told):
    paths = {trace["name"]: trace for trace in traces(told, "parameters")}
    for path in told.parameters:
        assert paths[path.name]["y"] == list(path.in_steps)
        assert paths[path.name]["customdata"] == [number(value) for value in path.path]
    for many, has_legend in ((told, True), (replace(told, parameters=told.parameters * 9), False)):
        assert figures(many)["parameters"]["layout"]["showlegend"] is has_legend
    (dots,) = traces(told, "moved")
    moved = {path.name: path.steps_moved for path in told.parameters}
    assert dots["text"] == sorted(moved, key=lambda name: abs(moved[name]))
    assert dots["x"] == [moved[name] for name in dots["text"]]


def test_workers_have_a_strip_of_games_an_hour():
    counts = dict.fromkeys(("batches", "void_games", "time_losses", "nodes", "think_seconds"), 1)
    games = {"tally": Tally(4, 2, 2, (0, 1, 2, 1, 0)), "seconds": 8.0}
    part = WorkerShare(worker=HOSTILE, machine="machine", **games, **counts)
    figure = worker_figures((part, replace(part, group=1, seconds=0.0)))["workers"]
    (strip,) = figure["data"]
    axis = figure["layout"]["yaxis"]
    assert (len(axis["ticktext"]), axis["tickvals"]) == (1, strip["y"]) and not axis["zeroline"]
    assert strip["z"] == [[3600.0, None]] and "<script" not in json.dumps(strip)
    assert worker_figures(()) == {}


def test_one_parameter_has_its_path_and_its_bounds(told):
    path = told.parameters[0]
    found = parameter_figures(told, path.name)
    assert [trace["name"] for trace in found["path"]["data"]] == ["theta"], "no bound is near"
    assert found["path"]["data"][0]["y"] == list(path.path)
    ends = min(path.path) - 1.0, max(path.path) + 1.0
    near = replace(told, parameters=(replace(path, minimum=ends[0], maximum=ends[1]),))
    *bounds, _ = parameter_figures(near, path.name)["path"]["data"]
    assert [(one["name"], *one["y"]) for one in bounds] == [("bound", end, end) for end in ends]
    assert parameter_figures(told, "none") == {}


def test_several_runs_are_compared_by_what_was_measured_and_what_is_estimated(told):
    unknown, short = replace(told, gain=None), replace(told, ks=told.ks[:1])
    names = [
        [trace["name"] for trace in compared_figures([one])["compared"]["data"]]
        for one in (told, unknown, short)
    ]
    assert names == [["first, estimate", "first, matches"], ["first, matches"], ["first, matches"]]
    assert compared_figures([]) == {}


def test_hostile_names_are_text(told):
    odd = replace(told, parameters=(replace(told.parameters[0], name=HOSTILE),))
    text = json.dumps(figures(odd), ensure_ascii=False)
    assert "<script" not in text and "\u202e" not in text
    assert "&lt;/text&gt;&lt;script&gt;alert(1)" in text
