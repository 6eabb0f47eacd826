"""Formats of other tuners: what is read is written back equal, and faults have their line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import space_from
from golden import compare_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outcomes import problem

from spsa.algorithms import create
from spsa.config.formats import exported, read_file, spsa_tables
from spsa.config.space import load_space, params_file
from spsa.errors import InvalidInput

_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_\[\]-]{0,30}", fullmatch=True)
_EVERY = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def _row(draw, kind):
    """Name, type, start, min, max, c_end and r_end of a line of OpenBench."""
    if kind == "int":
        low, width = draw(st.integers(-(10**6), 10**6)), draw(st.integers(2, 10**5))
        start: float = draw(st.integers(low, low + width) | st.floats(low, low + width))
        c_end: float = draw(st.integers(1, width) | st.floats(0.5, width))
        numbers: tuple[float, ...] = (start, low, low + width, c_end)
    else:
        real = draw(st.floats(-1000, 1000))
        high = real + draw(st.floats(0.5, 100))
        numbers = (draw(st.floats(real, high)), real, high, draw(st.floats(0.01, high - real)))
    plain = (n if isinstance(n, int) or n != int(n) else int(n) for n in numbers)
    return [draw(_NAMES), kind, *(str(n) for n in plain), "0.002"]


def _rows(*kinds):
    row = st.one_of([_row(kind) for kind in kinds])
    return st.lists(row, min_size=1, max_size=8, unique_by=lambda one: one[0])


def _read(path, text):
    path.write_text(text, encoding="utf-8")
    return read_file(path)


@pytest.mark.parametrize("kind", ["fishtest", "openbench"])
@_EVERY
@given(data=st.data())
def test_what_is_read_is_written_back(kind, data, tmp_path):
    if kind == "openbench":
        lines = [", ".join(row) for row in data.draw(_rows("int", "float"))]
    else:
        lines = [",".join([row[0], *row[2:]]) for row in data.draw(_rows("int"))]
    read = _read(tmp_path / "tune", "".join(f"{line}\n" for line in lines))
    assert read.format == kind
    assert exported(kind, read.space, {}, "f").splitlines() == lines
    (tmp_path / "params.toml").write_text(params_file(read.space))
    assert load_space(tmp_path / "params.toml") == read.space


def _listed(space, *, ranges_alone):
    values = () if ranges_alone else ("value", "step")
    names = ("option", "minimum", "maximum", "integral", *values)
    return [tuple(getattr(p, name) for name in names) for p in space.parameters]


@pytest.mark.parametrize("kind", ["weather-factory", "chess-tuning-tools", "json"])
@_EVERY
@given(data=st.data())
def test_objects_are_read_as_they_were_written(kind, data, tmp_path):
    kinds = ("int",) if kind == "weather-factory" else ("int", "float")
    lines = "".join(f"{', '.join(row)}\n" for row in data.draw(_rows(*kinds)))
    space = _read(tmp_path / "list", lines).space
    text = exported(kind, space, {}, "f")
    read = _read(tmp_path / "tune", text)
    assert read.format == kind and text.startswith('{\n  "'), "people read it"
    alone = kind == "chess-tuning-tools"
    assert _listed(read.space, ranges_alone=alone) == _listed(space, ranges_alone=alone)


def test_json_and_params_toml_keep_every_key(tmp_path):
    space = space_from(
        'constraints = ["a < b"]\n[a]\nvalue = 1\nmin = 0\nmax = 9\nstep = 1\nnote = "x\\ny"\n'
        "[b]\nvalue = 2.5\nmin = 0\nmax = 9\nstep = 0.5\nscale = 100\nactive = false\n"
        '[c]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\ntype = "float"\narray = "T.1"\n'
        'knob = "base"\noption = "My C"\ngroup = "g"\n'
        '[d]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\narray = "T.1"\nknob = "per_index"\n'
        '[e]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\nconstant = "src/x.rs::m::U[2]"\n'
    )
    assert _read(tmp_path / "all.json", exported("json", space, {}, "f")).space == space
    assert space_from(params_file(space)) == space


def test_what_is_read_of_files_of_peers_and_what_is_wrong_with_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def shown(files):
        try:
            read = _read(Path("f"), files["f"])
        except InvalidInput as refused:
            return refused.lines
        parameters = json.loads(exported("json", read.space, {}, "f"))
        return [
            f"{read.format}, r_end {read.r_end:g}",
            *(f"{name}: {json.dumps(keys)}" for name, keys in parameters.items()),
            *read.notes,
        ]

    compare_cases(Path(__file__).with_name("formats.txt"), shown)


@_EVERY
@given(text=st.text(max_size=200) | st.text('{}[]",:0123456789.eE-+\n ab', max_size=60))
def test_any_text_is_read_or_refused(text, tmp_path):
    try:
        _read(tmp_path / "f", text.encode("utf-8", "replace").decode())
    except InvalidInput as refused:
        assert refused.exit_code == 2


def test_a_tune_of_openbench_goes_on_with_its_gains(tmp_path):
    """(c_value, a_value) of OpenBench: c_end N^gamma, r_end c_end^2 (A + N)^alpha."""
    read = _read(tmp_path / "ob.txt", "LMR, int, 75, 0, 200, 10, 0.004\n")
    tables = spsa_tables(read.r_end, games=400_000, played=100_000, games_per_iteration=16)
    block: dict[str, Any] = tables["spsa"]
    assert block.pop("algorithm") == "fishtest" and block.pop("max_iterations") == 18_750
    rule = create("fishtest", block, problem(np.zeros(1), iterations=18_750, pairs=8))
    for k in (1, 100, 18_750):
        ours = rule.ask(rule.start(), k, np.random.default_rng(1))
        iteration = 6_250 + k
        c = 10 * 25_000**0.101 / iteration**0.101
        r = 0.004 * 10**2 * (2_500 + 25_000) ** 0.602 / (2_500 + iteration) ** 0.602 / c**2
        assert ours.c_k * read.space.step[0] == pytest.approx(c)
        assert ours.a_k / ours.c_k**2 == pytest.approx(r)
