"""Pictures by what is on them: series and their lengths, labels, bounds, and odd names."""

import re
import shutil
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread
from tuned import space_from, tuned, validated

from spsa.core.params import Space
from spsa.db import Store
from spsa.planning.strength import StrengthCurve
from spsa.report import pictures
from spsa.report.drawing import Kind, views
from spsa.report.history import RunHistory, Strength, history
from spsa.report.pictures import NoMatplotlib, NoSuchParameter, chosen, drawn

HOSTILE = "</text><script>alert(1)</script> $x_{$ \u202e"


def space_of(count: int) -> Space:
    return space_from(
        "".join(f"[p{i}]\nvalue = 100\nmin = 0\nmax = 200\nstep = 10\n" for i in range(count))
    )


@pytest.fixture(scope="module")
def told(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> RunHistory:
    """A run of three parameters and ten iterations of eight games, validated once."""
    path = shutil.copy(sqlite_template, tmp_path_factory.mktemp("told") / "spsa.db")
    with Store(f"sqlite:///{path}", durable=False) as store:
        staged = tuned(store, space_of(3), 10)
        validated(staged)
        return history(store, staged.now())


def ids(svg: bytes) -> dict[str, ElementTree.Element]:
    return {at: e for e in ElementTree.fromstring(svg).iter() if (at := e.get("id"))}


def points(svg: bytes, series: str) -> int:
    """How many points a line or a band has."""
    path = next(e for e in ids(svg)[series].iter() if e.tag.endswith("path"))
    return len(re.findall("[ML]", path.get("d", "")))


def texts(svg: bytes) -> list[str]:
    return [
        "".join(e.itertext()) for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("}text")
    ]


def test_the_path_of_theta_has_every_point_its_average_and_a_band(told: RunHistory) -> None:
    svg = drawn(told, [Kind.THETA], "svg", paths=told.parameters)
    for i in range(3):
        assert points(svg, f"theta-{i}") == points(svg, f"averaged-{i}") == len(told.ks) == 11
        assert points(svg, f"band-{i}") >= 2 * len(told.ks)
    assert {"theta", "averaged", "± one deviation", "p0", "0 to 200"} <= set(texts(svg))


def test_a_bound_is_drawn_where_the_path_is_near(told: RunHistory) -> None:
    assert (
        not {"min-0", "max-0"} & ids(drawn(told, [Kind.THETA], "svg", paths=told.parameters)).keys()
    )
    near = replace(told.parameters[0], maximum=max(told.parameters[0].theta) + 1.0)
    found = ids(drawn(told, [Kind.THETA], "svg", paths=[near]))
    assert "max-0" in found and "min-0" not in found


def test_normalised_says_so(told: RunHistory) -> None:
    svg = drawn(told, [Kind.THETA], "svg", paths=told.parameters[:1], normalised=True)
    said = texts(svg)
    assert {"p0", "-10 to 10"} <= set(said)
    assert "Path of theta, in steps from the start (1 of 3 parameters)" in said


def test_panels_in_steps_share_a_view_that_holds_all_paths(told: RunHistory) -> None:
    paths = [path.normalised for path in told.parameters]
    (view, *others) = views(paths, alike=True)
    assert others == [view] * 2
    assert all(view[0] < min(path.theta) <= max(path.theta) < view[1] for path in paths)
    assert len(set(views(told.parameters, alike=False))) == 3


def test_gain_results_validations_and_workers(told: RunHistory) -> None:
    assert told.gain is not None
    svg = drawn(told, list(Kind), "svg", paths=told.parameters)
    found, said = ids(svg), texts(svg)
    assert points(svg, "gain") == 11
    assert len([at for at in found if re.fullmatch(r"pairs-\d-\d+", at)]) == 5 * 10
    assert {"validations", "result-errors"} <= found.keys() and "strength" not in found
    assert "games-0" in found and "speed-0" in found and "games-1" not in found
    (match,) = told.validations
    assert any(text.endswith(f"({match.tally.games} games)") for text in said)
    assert {"80", "3,600", "machine-1", "1 worker"} <= set(said), "games, an hour, who"


def test_several_validations_have_one_curve_with_its_band(told: RunHistory) -> None:
    curve = StrengthCurve(ks=(0, 5, 10), elo=(0.0, 8.0, 12.0), deviation=(0.0, 4.0, 3.0))
    both = replace(told, strength=Strength(games=(0, 40, 80), curve=curve))
    svg = drawn(both, [Kind.VALIDATIONS], "svg", paths=())
    assert points(svg, "strength") == 3 and "validation-band" in ids(svg)


def test_many_iterations_become_few_bars(told: RunHistory) -> None:
    (one, *_) = told.results
    long = replace(told, results=tuple(replace(one, first_k=k, last_k=k) for k in range(1, 351)))
    svg = drawn(long, [Kind.RESULTS], "svg", paths=())
    assert len([at for at in ids(svg) if at.startswith("pairs-0-")]) == 88
    assert "Results: plus against minus, 4 iterations a point" in texts(svg)


def test_a_run_without_anything_says_so(sqlite_url: str) -> None:
    with Store(sqlite_url, durable=False) as store:
        new = history(store, tuned(store, space_of(1), 0).now())
    said = texts(drawn(new, list(Kind), "svg", paths=new.parameters))
    assert {
        "It is not known, because there is no result yet.",
        "No validation has been played; `spsa-master validate` plays one.",
        "No iteration is complete yet.",
        "No worker has reported a batch yet.",
    } <= set(said)


def test_hostile_names_are_text(told: RunHistory) -> None:
    odd = replace(
        told,
        parameters=(replace(told.parameters[0], name=HOSTILE),),
        workers=(replace(told.workers[0], worker=HOSTILE),),
    )
    svg = drawn(odd, list(Kind), "svg", paths=odd.parameters)
    assert b"<script" not in svg and "\u202e" not in svg.decode()
    assert len([text for text in texts(svg) if text.startswith("</text><script>")]) == 2


def test_the_same_run_gives_the_same_bytes(told: RunHistory) -> None:
    first, second = (drawn(told, [Kind.GAIN], "svg", paths=()) for _ in range(2))
    assert first == second


def test_a_png_has_the_height_of_its_parts(told: RunHistory) -> None:
    small = imread(BytesIO(drawn(told, [Kind.GAIN], "png", paths=())))
    large = imread(BytesIO(drawn(told, [Kind.GAIN, Kind.RESULTS], "png", paths=())))
    assert small.shape[1] == large.shape[1] == 1100
    assert (small.shape[0], large.shape[0]) == (374, 924)
    assert small[..., :3].std() > 0.01, "something is drawn"


def test_many_parameters_show_those_that_moved_most(told: RunHistory) -> None:
    path = told.parameters[0]
    many = [
        replace(path, name=f"p{i}", group="even" if i % 2 == 0 else "odd", theta=(0.0, float(i)))
        for i in range(70)
    ]
    assert [one.name for one in chosen(many)] == [f"p{i}" for i in range(58, 70)]
    assert len(chosen(many, group="even")) == 35
    assert [one.name for one in chosen(many, ["p3", "p1"])] == ["p1", "p3"]
    assert [one.name for one in chosen(many, ["p3", "p4"], "odd")] == ["p3"]
    assert len(chosen(many, [one.name for one in many])) == 36


@pytest.mark.parametrize(
    ("names", "group", "said"),
    [
        (["pp0"], None, "the run has no active parameter 'pp0'; did you mean 'p0'?"),
        (["zzz"], None, "the run has no active parameter 'zzz'; `status` lists the parameters"),
        ([], "none", "the run has no group 'none'"),
    ],
)
def test_unknown_names_are_refused(
    names: list[str], group: str | None, said: str, told: RunHistory
) -> None:
    with pytest.raises(NoSuchParameter, match=re.escape(said)):
        chosen(told.parameters, names, group)


def test_without_matplotlib_a_sentence_says_how_to_get_it(
    told: RunHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(NoMatplotlib, match=r"pip install 'spsa-tuner\[plot\]'"):
        drawn(told, [Kind.GAIN], "svg", paths=())
