"""What `init` proposes for an engine's constants, and that it can be started from as it stands."""

import re
from pathlib import Path

import pytest

from spsa.builds.rust import elements, parse
from spsa.config import (
    check_against_source,
    load_config,
    load_space,
    starter_config,
    starter_params,
)
from spsa.config.proposals import Proposed, propose
from spsa.core.params import assignments

ROOT = Path(__file__).parents[2]
SOURCES = [
    ROOT / "engine" / "src" / "engine_constants.rs",
    ROOT / "tests" / "fixtures" / "rust" / "hostile.rs",
]


def proposed(text: str) -> dict[str, Proposed]:
    return {one.name: one for one in propose(parse(text))}


def one(declaration: str) -> tuple[float, float, float, float]:
    (found,) = propose(parse(declaration))
    return found.value, found.minimum, found.maximum, found.step


@pytest.mark.parametrize(
    ("declaration", "numbers"),
    [
        ("const A: i32 = 200;", (200, 100, 400, 18)),
        ("const A: i32 = -4000;", (-4000, -8000, -2000, 360)),
        ("const A: u8 = 3;", (3, 1, 6, 1)),
        ("const A: u8 = 1;", (1, 0, 3, 1)),
        ("const A: f64 = 0.5;", (0.5, 0.25, 1.0, 0.045)),
    ],
)
def test_range_and_step_follow_the_value(declaration, numbers):
    assert one(declaration) == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("const HASH_MB: usize = 64;", "HASH looks like"),
        ("const MAX_PLY: usize = 64;", "PLY looks like"),
        ("const A: i32 = 0;", "switched off"),
        ("const A: u64 = 0xFFFF_FFFF;", "limit"),
        ("const MARGIN: i32 = 64;", ""),
    ],
)
def test_what_is_hardly_meant_to_be_tuned_has_a_reason(declaration, reason):
    (found,) = propose(parse(declaration))
    assert reason in found.reason
    assert bool(reason) == bool(found.reason)


def test_what_cannot_be_rewritten_is_not_proposed():
    text = (
        "const A: bool = true; const B: i32 = C + 1; const Z: [u8; 9] = [0; 9]; const L: u8 = f();"
    )
    assert proposed(text) == {}
    assert proposed("#[cfg(test)] mod t { const A: i32 = 5; }") == {}


def test_arrays_are_proposed_by_their_knobs():
    text = "const LINE: [i32; 3] = [128, 192, 256]; const CURVE: [i32; 4] = [-15, 0, 12, 20];"
    found = proposed(text)
    assert list(found) == ["line_base", "line_per_index", "curve_amplitude", "curve_bias"]
    assert (found["line_base"].value, found["line_per_index"].value) == (128, 64)
    assert found["curve_bias"].keys == {"table": "CURVE", "knob": "bias"}
    assert all(one.reason for one in found.values())


def test_tuples_constants_in_scopes_and_namesakes_say_where_they_are():
    text = "const P: (i32, i32) = (1, 2); fn f() { const Q: i32 = 5; } const R: i32 = 1;"
    text += "mod m { const R: i32 = 2; }"
    assert {name: dict(one.keys) for name, one in proposed(text).items()} == {
        "p_0": {"constant": "P.0"},
        "p_1": {"constant": "P.1"},
        "q": {"constant": "f::Q"},
        "r": {"constant": "crate::R"},
    }


def test_headings_become_groups():
    text = "// ---- Search: pruning ----\n\nconst A: i32 = 5;\n// about B\nconst B: i32 = 6;\n"
    assert {one.group for one in propose(parse(text))} == {"search-pruning"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_starter_files_are_right_as_they_stand(tmp_path, source):
    text = source.read_text(encoding="utf-8")
    starter = starter_params(propose(parse(text)), "src/engine_constants.rs")
    path = tmp_path / "params.toml"
    path.write_text(starter, encoding="utf-8")
    space = load_space(path)
    assert len(space.parameters) > 10
    assert check_against_source(space, {"c.rs": text}, "c.rs") == ()

    file = parse(text)

    def current(location):
        return {place: one.literal.number for place, one in elements(file, location).items()}

    values = {parameter.name: parameter.value for parameter in space.parameters}
    for location, number in assignments(space, values, current).items():
        assert current(location) == {location: number}


def test_what_is_commented_out_is_right_too_once_the_signs_are_dropped(tmp_path):
    text = SOURCES[0].read_text(encoding="utf-8")
    starter = starter_params(propose(parse(text)), "c.rs")
    keys = "value|min|max|step|constant|array|table|knob|group"
    path = tmp_path / "params.toml"
    path.write_text(re.sub(rf"(?m)^# (\[\w+\]|(?:{keys}) = )", r"\1", starter), encoding="utf-8")
    space = load_space(path)
    assert any(parameter.name == "alpha_prune_margins_base" for parameter in space.parameters)
    assert check_against_source(space, {"c.rs": text}, "c.rs") == ()


def test_the_starter_config_is_right_as_it_stands(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(starter_config('../my "engine"', "src/consts.rs"), encoding="utf-8")
    config = load_config(path, {})
    assert config.build.source_path == tmp_path.parent / 'my "engine"'
    assert config.build.constants_file == "src/consts.rs"
    assert config.games.per_iteration == 150
