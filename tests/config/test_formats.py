"""Formats of other tuners: what is read is written back equal, and faults have their line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spsa.algorithms.fishtest import ENTRY
from spsa.algorithms.rule import Problem
from spsa.algorithms.settings import values
from spsa.config import load_space
from spsa.config.formats import PEERS, read_file
from spsa.config.peer import PeerParameter, Plan, mapping_notes, peer_parameters
from spsa.config.projection import params_file, params_json
from spsa.core.params import Space
from spsa.errors import InvalidInput

_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_\[\]-]{0,30}", fullmatch=True)
_EVERY = settings(
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@st.composite
def _whole(draw: st.DrawFn) -> PeerParameter:
    low = draw(st.integers(-(10**6), 10**6))
    width = draw(st.integers(2, 10**5))
    value = draw(st.integers(low, low + width) | st.floats(low, low + width))
    c_end = draw(st.integers(1, width) | st.floats(0.5, width))
    return PeerParameter(
        name=draw(_NAMES), value=value, minimum=low, maximum=low + width, c_end=c_end, r_end=0.002,
        integral=True, line=None,
    )  # fmt: skip


@st.composite
def _real(draw: st.DrawFn) -> PeerParameter:
    low = draw(st.floats(-1000, 1000))
    high = low + draw(st.floats(0.5, 100))
    c_end = draw(st.floats(0.01, high - low))
    value = draw(st.floats(low, high))
    return PeerParameter(
        name=draw(_NAMES), value=value, minimum=low, maximum=high, c_end=c_end, r_end=0.002,
        integral=False, line=None,
    )  # fmt: skip


def _distinct(one: st.SearchStrategy[PeerParameter]) -> st.SearchStrategy[list[PeerParameter]]:
    return st.lists(one, min_size=1, max_size=8, unique_by=lambda p: p.name)


def _read(path: Path, text: str, kind: str | None = None, **plan: object):
    path.write_text(text, encoding="utf-8")
    return read_file(path, kind, Plan(**plan))


def _back(space: Space) -> list[PeerParameter]:
    return list(
        peer_parameters(space, {p.name: p.value for p in space.parameters}, c_end=1.0, r_end=0.002)
    )


def _said(parameters: list[PeerParameter], kind: str) -> list[PeerParameter]:
    """The parameters without what the format does not say."""
    left_out = {"line": None}
    left_out |= {"c_end": 0, "value": 0} if kind == "chess-tuning-tools" else {}
    return [replace(p, **left_out) for p in parameters]


@pytest.mark.parametrize("kind", PEERS)
@_EVERY
@given(data=st.data())
def test_formats_survive_a_round_trip(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    peer = PEERS[kind]
    each = data.draw(_distinct(_whole() | _real() if peer.has_fractions else _whole()))
    read = _read(tmp_path / "tune", peer.write(each))
    assert read.format == kind
    assert _said(_back(read.space), kind) == _said(each, kind)
    for p in read.space.parameters:
        assert p.minimum <= p.value <= p.maximum and p.step > 0


@pytest.mark.parametrize("write", [params_file, params_json])
@_EVERY
@given(each=_distinct(_whole() | _real()))
def test_our_own_formats_keep_all(
    write: Callable[[Space], str], each: list[PeerParameter], tmp_path: Path
) -> None:
    space = _read(tmp_path / "tune.txt", PEERS["openbench"].write(each)).space
    if write is params_file:
        (tmp_path / "params.toml").write_text(write(space))
        again = load_space(tmp_path / "params.toml")
    else:
        again = _read(tmp_path / "file", write(space)).space
    assert again == space


def test_json_keeps_placements_and_constraints(tmp_path: Path) -> None:
    (tmp_path / "params.toml").write_text(
        'constraints = ["a < b"]\n[a]\nvalue = 1\nmin = 0\nmax = 9\nstep = 1\nnote = "x\\ny"\n'
        "[b]\nvalue = 2.5\nmin = 0\nmax = 9\nstep = 0.5\nscale = 100\nactive = false\n"
        '[c]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\ntable = "src/x.rs::U[2]"\nknob = "bias"\n'
        '[d]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\narray = "T.1"\nfirst = 2\nknob = "base"\n'
        '[e]\nvalue = 3\nmin = 0\nmax = 9\nstep = 1\narray = "T.1"\nfirst = 2\n'
        'knob = "per_index"\n'
    )
    space = load_space(tmp_path / "params.toml")
    assert _read(tmp_path / "all.json", params_json(space)).space == space


TUNE = """Stockfish dev by the Stockfish developers (see AUTHORS file)
razor,446,0,892,44.6,0.0020
lmr_base,18,-20,60,4,0.0020
"""


def test_tune_output_is_found_among_other_lines(tmp_path: Path) -> None:
    read = _read(tmp_path / "out.txt", TUNE)
    assert read.format == "fishtest"
    assert [(p.name, p.step, p.integral) for p in read.space.parameters] == [
        ("razor", 44.6, True),
        ("lmr_base", 4, True),
    ]


def test_the_digest_of_a_running_tune_has_the_values_of_now(tmp_path: Path) -> None:
    text = (
        "Name,Curr,Start,Min,Max,C,C_end,R,R_end\n"
        "LMRBase,80.2511,75,0,200,12.0000,10.0000,0.0041,0.0020\n"
        "LMRDiv,2.1917,2.2500,1.5000,3.0000,0.3000,0.2500,0.0041,0.0020\n"
    )
    read = _read(tmp_path / "digest.csv", text)
    assert [(p.value, p.step, p.integral) for p in read.space.parameters] == [
        (80.2511, 10, True),
        (2.1917, 0.25, False),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A,1,0,9,1,0.002\nB,1,0,9,1\n", "f:2: [B] 5 fields instead of 6; write name,start,min"),
        ("A,one,0,9,1,0.002\n", 'f:1: [A] start "one" is not a number'),
        ("A,1,0,1e999,1,0.002\n", 'f:1: [A] max "1e999" is not a number'),
        ("A,1,0,9,1,0.002\nA,1,0,9,1,0.002\n", "f:2: [A] line 1 has it already"),
        ("A, integer, 1, 0, 9, 1, 0.002\n", 'f:1: [A] "integer" is no type; write int or float'),
        ("\nA,1,9,0,1,0.002\n", "f:2: [A] min 9 is not less than max 0"),
        ("A,10,0,9,1,0.002\n", "f:1: [A] value 10 is outside its bounds"),
        ("A,1,0,9,0,0.002\n", "f:1: [A] step = 0 is too small"),
        ("A,1,0.5,9,1,0.002\n", "f:1: [A] min 0.5 is no multiple of 1"),
        ('{"parameter_ranges": {"A": "Integer(0)"}}', 'f: [A] "Integer(0)" is no range of two'),
        ('{"parameter_ranges": {"A": "Real(0, x)"}}', 'f: [A] "Real(0, x)" is no range of two'),
        ('{"parameter_ranges": {"A": 3}}', "f: [A] 3 is no range of two numbers; write Integer("),
        ("hello\n", "f: [f] is of no known format; name its format: fishtest, openb"),
        ('{"A": {"value": 1, "min_value": 0}}', "f: [A] max is missing"),
        ('{"uci_params": 1}', "f: [params] 1 is no list"),
        ('{"args": {}}', "f: [args.spsa] None is no object"),
        ('{"A": {"value": 1,\n', "f:2: [f] is not JSON"),
        ('{"A": {"value": 1, "min": 0, "max": 9, "steps": 1}}', "f: [A] unknown key 'steps'"),
    ],
)
def test_faults_have_file_line_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        _read(tmp_path / "f", text)
    lines = [line.replace(str(tmp_path / "f"), "f") for line in refused.value.lines]
    assert any(line.startswith(said) and "; " in line for line in lines), lines


@_EVERY
@given(text=st.text(max_size=200) | st.text('{}[]",:0123456789.eE-+\n ab', max_size=60))
def test_any_text_is_read_or_refused(text: str, tmp_path: Path) -> None:
    try:
        _read(tmp_path / "f", text.encode("utf-8", "replace").decode())
    except InvalidInput as refused:
        assert refused.exit_code == 2


PROBLEM = Problem(
    start=np.zeros(1), lower=np.full(1, -9.0), upper=np.full(1, 9.0), unit=np.zeros(1),
    iterations=18_750, pairs=8,
)  # fmt: skip


def test_a_tune_of_openbench_goes_on_with_its_gains(tmp_path: Path) -> None:
    """(c_value, a_value) of OpenBench: c_end N^gamma, r_end c_end^2 (A + N)^alpha."""
    read = _read(
        tmp_path / "ob.txt", "LMR, int, 75, 0, 200, 10, 0.004\n", games=400_000, played=100_000
    )
    block = read.tune.schedule.settings(read.tune.r_end, 16)
    assert block.pop("algorithm") == "fishtest" and block.pop("max_iterations") == 18_750
    rule = ENTRY.build(PROBLEM, values(ENTRY.settings, block))
    for k in (1, 100, 18_750):
        ours = rule.ask(rule.start(), k, np.random.default_rng(1))
        iteration = 6_250 + k
        c = 10 * 25_000**0.101 / iteration**0.101
        r = 0.004 * 10**2 * (2_500 + 25_000) ** 0.602 / (2_500 + iteration) ** 0.602 / c**2
        assert ours.c_k * read.space.step[0] == pytest.approx(c)
        assert ours.a_k / ours.c_k**2 == pytest.approx(r)


def test_a_run_of_fishtest_goes_on_where_it_stands(tmp_path: Path) -> None:
    parameter = {
        "name": "x", "start": 50, "theta": 55.25, "min": 0.0, "max": 100.0, "c_end": 5.0,
        "r_end": 0.002,
    }  # fmt: skip
    spsa = {"A": 3_000, "alpha": 0.602, "gamma": 0.101, "iter": 10_000, "num_iter": 30_000}
    text = json.dumps({"args": {"spsa": {**spsa, "params": [parameter]}}})
    read = _read(tmp_path / "run.json", text)
    assert read.space.parameters[0].value == 55.25
    assert read.tune.schedule.settings(0.002, 20) == {
        "algorithm": "fishtest", "max_iterations": 2_000, "played": 1_000, "r_end": 0.002,
        "c_end": 1.0, "A": 300.0, "alpha": 0.602, "gamma": 0.101,
    }  # fmt: skip


def test_weather_factory_moves_parameters_as_far_here(tmp_path: Path) -> None:
    gains = {"a": 1.0, "c": 1.0, "A": 5_000, "alpha": 0.601, "gamma": 0.102}
    state = {
        "t": 3_200,
        "spsa_params": gains,
        "uci_params": [{"name": "x", "value": 50, "min_value": 0, "max_value": 100, "step": 10}],
    }
    read = _read(tmp_path / "state.json", json.dumps(state), games=32_000, games_per_iteration=32)
    block = read.tune.schedule.settings(read.tune.r_end, 32)
    assert (block.pop("algorithm"), block.pop("max_iterations")) == ("fishtest", 900)
    problem = replace(PROBLEM, iterations=900, pairs=16)
    rule = ENTRY.build(problem, values(ENTRY.settings, block))
    for k in (1, 900):
        ours = rule.ask(rule.start(), k, np.random.default_rng(1))
        t = 3_200 + 32 * k
        a_t, c_t = 1 / (t + 5_000) ** 0.601, 1 / t**0.102
        assert ours.c_k == pytest.approx(c_t)
        # one win more in 32 games: E = 1/32, moved a_t E / c_t steps
        assert ours.a_k / ours.c_k == pytest.approx(a_t / 32 / c_t)


def test_the_mapping_is_said(tmp_path: Path) -> None:
    text = "A,1,0,9,0.1,0.002\nB,1,0,9,1,0.002\nC,1,0,9,1,0.004\n"
    read = _read(tmp_path / "f", text)
    notes = "\n".join(mapping_notes(read.tune))
    assert "step = c_end" in notes
    assert "the step is 0.5: A" in notes and read.space.parameters[0].step == 0.5
    assert "0.002 is the median; another r_end had C" in notes
