"""Files of any content: what is accepted makes sense, what is not is refused with its faults.

Each of the three suites takes some 150 inputs; SPSA_TEST_LONG=1 is 100,000 of each, and
SPSA_TEST_SEED=n another search.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from console import CONFIG, PARAMS
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from spsa.algorithms import settings_faults
from spsa.config import check_against_source, load_config, load_space
from spsa.database_url import parsed
from spsa.errors import InvalidInput
from spsa.params import Location, Parameter, Space
from spsa.proposals import propose
from spsa.rust_constants import (
    ConstantRefused,
    Element,
    RustFile,
    elements,
    parse,
    render,
    rewrite,
)
from spsa.terms import Terms

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SECONDS = 30.0
"""That one input may take on a busy machine; each is a few hundred characters."""

fuzz = settings(
    max_examples=int(os.environ.get("FUZZ_N", 100_000 if LONG else 150)),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
repeatable = seed(int(os.environ.get("SPSA_TEST_SEED", "1")))


def words(text: str) -> list[str]:
    return text.split(" ")


NUMBERS = (
    st.sampled_from(
        words(
            "0 -0 1 2 3 5 8 16 99 100 150 200 400 1000 -1 -5 65535 2147483647 2147483648 4294967296"
            " 9007199254740993 9223372036854775807 9223372036854775808 -9223372036854775809 0x1f32"
            " 0b101 0o17 0.0 -0.0 0.5 1.5 2.0 1e3 1e-3 1e-9 1e-300 1e-320 5e-324 1e15 1e16 1e17"
            " 1e300"
            " 1e308 -1e308 1.7976931348623157e308 1e309 inf -inf nan +nan 0.1 0.30000000000000004"
            " 1_0"
        )
    )
    | st.integers().map(str)
    | st.floats().map(repr)
)
TEXTS = st.sampled_from(
    [
        *("", "a", "A", "MARGIN", "margin", "DEPTHS[2]", "DEPTHS[99]", "PAIR.1", "m::X", "NAMES"),
        *("int", "float", "base", "per_index", "amplitude", "bias", "RATE", "SMALL", "DERIVED"),
        *("movetime", "clock", "nodes", "depth", "build", "uci", "spsa", "mixture", "auto"),
        *("sqlite:///x.db", "sqlite:///:memory:", "postgresql://u:p@h/d", "mysql://h/d", "builtin"),
        *("../x", "/dev/zero", "/dev/null", ".", "~", "~nobody at all/x", "a/../b", "x.rs::A"),
        *("a < b", "margin < depth", "depth <= margin", "depth < depth", "b > margin", "a=b"),
        *("\x1b[2J", "a\nb", "\u202eabc", "a\x00b", "\ud7ff", "x" * 300, "x" * 5000, "é", "a b"),
    ]
) | st.text(max_size=8)
VALUES = st.recursive(
    NUMBERS
    | TEXTS.map(lambda text: json.dumps(text))
    | st.sampled_from(["true", "false", "1979-05-27", "07:32:00", "'''\n'''", "[[", "{", "", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"k{i} = {item}" for i, item in enumerate(items)) + "}"
        )
    ),
    max_leaves=4,
)

MORE_CONFIG = """
[games]
book = "builtin"
plies = 8
iterations_in_flight = 2
max_attempts = 3
[adjudication]
max_moves = 60
draw = { move_number = 30, count = 8, score = 10 }
resign = { count = 3, score = 500 }
[validation]
games = 20
[delivery]
kind = "build"
"""
FULL_CONFIG = CONFIG.replace("[games]\n", MORE_CONFIG.partition("[adjudication]")[0].lstrip()) + (
    "[adjudication]" + MORE_CONFIG.partition("[adjudication]")[2]
)
KEYS = {
    "": ["run", "constraints", "margin", "games", "x"],
    "[run]": ["name", "seed", "priority", "share", "params"],
    "[database]": ["url"],
    "[time_control]": words("kind low high timelow timehigh increment moves margin"),
    "[games]": words("games_per_iteration batch_size iterations_in_flight max_attempts book plies"),
    "[spsa]": words("algorithm max_iterations a c A alpha gamma r noise_walk"),
    "[build]": words("source_path constants_file engines_path flags timeout bench at_once target"),
    "[engine.options]": ["Hash", "Clear Hash", "a\\nb"],
    "[adjudication]": ["max_moves", "draw", "resign"],
    "[validation]": ["games", "time_control"],
    "[delivery]": ["kind", "engine"],
    "[trust]": ["signing_key"],
}
PARAMETER_KEYS = words(
    "value min max step scale type group note constant option active array table knob first last"
)

FULL_PARAMS = (
    'constraints = ["depth <= margin"]\n'
    + PARAMS
    + """
[rate]
value = 0.5
min = 0.1
max = 2
step = 0.1
constant = "RATE"

[slope]
value = 2
min = 0
max = 9
step = 1
array = "DEPTHS"
knob = "per_index"
[start]
value = 2
min = 0
max = 9
step = 1
array = "DEPTHS"
knob = "base"
"""
)

SOURCE = """\
pub const MARGIN: i32 = 200; // about it
pub const DEPTH: u8 = 3;
pub const RATE: f32 = 0.5;
pub const SMALL: i8 = -5;
static DEPTHS: [i32; 4] = [1, 2, 3, 4];
pub const PAIR: (i32, f64) = (5, -1.5e3);
pub const NAMES: &str = "a";
pub const DERIVED: i32 = MARGIN * 2;
mod m { pub const X: u64 = 0x1f32; }
#[cfg(test)]
mod tests { const MARGIN: i32 = 1; }
type Score = i16;
const S: Score = 1_000;
"""
TOKENS = st.sampled_from(
    words(
        "const static pub mod fn impl type let mut : = ; , [ ] ( ) { } -> & - + * . :: < > # ! ' \""
        " i32"
        " u8 f64 f32 Score A B MARGIN DEPTHS 0 1 5 -1 1_0 0x1f32 0b1 1e309 1.5e3"
        " 99999999999999999999"
        " 0xffu8 1u8 // /* */ #[cfg(test)] #[test] \n \x00 \ud7ff"
    )
)


@st.composite
def edited(draw, text: str, insertions: st.SearchStrategy[str]) -> str:
    """A text after a few changes of a person who slips: lines, values, single characters."""
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3, 4]))):
        lines = text.split("\n")
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from([0, 1, 2, 3, 3, 3, 3, 3, 4])):
            case 0:
                lines[at : at + draw(st.integers(1, 3))] = []
            case 1:
                lines.insert(at, draw(insertions))
            case 2:
                lines.insert(at, lines[draw(st.integers(0, len(lines) - 1))])
            case 3:
                name, equals, _ = lines[at].partition(" = ")
                lines[at] = f"{name}{equals}{draw(VALUES)}" if equals else draw(insertions)
            case 4:
                where = draw(st.integers(0, len(lines[at])))
                length = draw(st.integers(0, 2))
                new = draw(st.sampled_from(["", "=", "[", '"', ".", "\t", "\x00", "é", "0"]))
                lines[at] = lines[at][:where] + new + lines[at][where + length :]
        text = "\n".join(lines)
    return text


def assignment(names: list[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(names), VALUES).map(" = ".join)


CONFIG_LINES = st.sampled_from([*KEYS]) | st.one_of(*map(assignment, KEYS.values()))
PARAM_LINES = (
    st.sampled_from(["[a]", "[margin]", "[a.b]", '["a b"]', "[[a]]", "[class]"])
    | assignment(PARAMETER_KEYS)
    | assignment(["constraints"])
)


@contextmanager
def ends_in_time(content: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SECONDS, content


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def hold_refusal(refused: InvalidInput) -> None:
    """Faults are few, short, printable and have a remedy."""
    assert refused.exit_code == 2 and 0 < len(refused.faults) <= 100
    for fault in refused.faults:
        line = str(fault)
        assert line.isprintable() and len(line) < 1700 and "; " in line


def leaves(value: object) -> Iterator[object]:
    """Every number and text in nested values."""
    if is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from leaves(getattr(value, one.name))
    elif isinstance(value, dict | MappingProxyType):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from leaves(inner)
    else:
        yield value


def hold_config(path: Path) -> None:
    config = load_config(path, {})
    for leaf in leaves(config):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            assert isfinite(leaf) and abs(leaf) < 2**63, leaf
        if isinstance(leaf, str):
            assert leaf.isprintable() and len(leaf) <= 10_000, leaf
    games, control = config.games, config.terms.time_control
    assert 0 < games.batch_size <= games.per_iteration <= 1_000_000
    assert games.batch_size % 2 == games.per_iteration % 2 == config.validation.games % 2 == 0
    assert 0 < control.low <= control.high <= 10**12
    assert control.increment >= 0 <= control.margin
    assert config.share > 0 and 0 < config.max_iterations <= 10**7
    assert settings_faults(config.algorithm, config.settings) == []
    assert Terms.from_json(json.loads(json.dumps(config.terms.to_json()))) == config.terms
    parsed(config.database_url)


def hold_parameter(p: Parameter) -> None:
    assert all(isfinite(x) for x in (p.value, p.minimum, p.maximum, p.step))
    assert p.minimum <= p.value <= p.maximum and p.minimum < p.maximum
    assert 0 < p.step <= p.maximum - p.minimum
    for x in (p.value, p.minimum, p.maximum):
        assert x + p.step != x != x - p.step
    assert p.option.isprintable() and p.group.isprintable()
    assert p.scale is None or p.scale > 0


def hold_space(space: Space) -> None:
    for p in space.parameters:
        hold_parameter(p)
    assert Space.from_json(json.loads(json.dumps(space.to_json(), allow_nan=False))) == space
    start = space.start()
    assert np.isfinite(start).all() and start.size == len(space.active) > 0
    offset = np.where(np.arange(start.size) % 2, -1.5, 1.5)
    played = space.realise(start, offset, np.full(start.size, 0.5))
    assert np.isfinite(space.difference(played)).all()
    for values in (space.rounded(start), played.plus, played.minus):
        for p in space.parameters:
            slack = 1e-9 * max(abs(p.minimum), abs(p.maximum))
            assert p.minimum - slack - p.unit <= values[p.name] <= p.maximum + slack + p.unit
        for constraint in space.constraints:
            assert constraint.holds(values), (constraint, values)


def numbers_of(file: RustFile) -> Iterator[Element]:
    for constant in file.constants:
        try:
            where = Location(constant.name, (), constant.scope or ("crate",))
            yield from elements(file, where).values()
        except ConstantRefused as refused:
            assert len(str(refused)) < 3000


def raised(element: Element) -> int | float:
    """The number after it, where its type has one."""
    try:
        element.check(element.literal.number + 1)
    except ConstantRefused:
        return element.literal.number
    return element.literal.number + 1


def hold_source(text: str) -> None:
    """Every number that is found can be written anew, and is read again as it was written."""
    file = parse(text)
    propose(file)
    found = list(numbers_of(file))
    assert all(isfinite(element.literal.number) for element in found)
    new = {element.location: raised(element) for element in found}
    try:
        again = numbers_of(parse(rewrite(text, new)))
        assert {element.location: element.literal.number for element in again} == new
    except ConstantRefused as refused:  # a number that is written where its type has no room
        assert "cannot hold" in str(refused)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@repeatable
@fuzz
@given(text=edited(FULL_CONFIG, CONFIG_LINES))
def test_a_config_is_sound_or_refused(folder: Path, text: str) -> None:
    path = written(folder, "config.toml", text)
    with ends_in_time(text):
        try:
            hold_config(path)
        except InvalidInput as refused:
            hold_refusal(refused)


@repeatable
@fuzz
@given(text=edited(FULL_PARAMS, PARAM_LINES))
def test_a_space_is_sound_or_refused(folder: Path, text: str) -> None:
    path = written(folder, "params.toml", text)
    with ends_in_time(text):
        try:
            space = load_space(path)
            hold_space(space)
        except InvalidInput as refused:
            hold_refusal(refused)
            return
        if not check_against_source(space, {"c.rs": SOURCE}, "c.rs"):
            for values in (space.rounded(space.lower), space.rounded(space.upper)):
                render(space, values, {"c.rs": SOURCE})


@repeatable
@fuzz
@given(
    text=edited(SOURCE, st.lists(TOKENS, max_size=12).map(" ".join))
    | st.lists(TOKENS, max_size=40).map(" ".join)
)
def test_a_source_is_read_or_refused(text: str) -> None:
    with ends_in_time(text):
        hold_source(text)
