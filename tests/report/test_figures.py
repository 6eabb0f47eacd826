"""The figures of a run: each series is the values of its history, and names are text."""

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
from spsa.db.history_queries import WorkerShare
from spsa.planning.strength import StrengthCurve
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
    near = replace(told, parameters=(replace(path, minimum=ends[0], maximum=ends[1]),))
    yield "a parameter whose bounds are near", parameter_figures(near, path.name)
    yield "a parameter that is not there", parameter_figures(told, "none")
    unknown, short = replace(told, gain=None), replace(told, ks=told.ks[:1])
    yield (
        "runs compared: known, without an estimate, with one result",
        compared_figures([told, unknown, short]),
    )
    yield "no runs", compared_figures([])
    counts = dict.fromkeys(("batches", "void_games", "time_losses", "nodes", "think_seconds"), 1)
    games = {"tally": Tally(4, 2, 2, (0, 1, 2, 1, 0)), "seconds": 8.0}
    part = WorkerShare(worker=HOSTILE, machine="machine", **games, **counts)
    yield "workers", worker_figures((part, replace(part, group=1, seconds=0.0)))
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
