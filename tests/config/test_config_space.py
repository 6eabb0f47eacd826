"""params.toml: what it may say, and every way it can be wrong."""

from pathlib import Path

import pytest

from spsa.config.source import check_against_source, read_sources
from spsa.config.space import load_space
from spsa.core.params import Constraint, Location, Role
from spsa.errors import InvalidInput

FIXTURES = Path(__file__).parents[1] / "fixtures" / "rust"


@pytest.fixture
def params(tmp_path):
    path = tmp_path / "params.toml"

    def write(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def faults(path):
    with pytest.raises(InvalidInput) as refused:
        load_space(path)
    assert refused.value.exit_code == 2
    return [str(fault).replace(str(path), "params.toml") for fault in refused.value.faults]


def table(name="margin", **keys):
    usual = {"value": 200, "min": 50, "max": 400, "step": 20} | keys
    lines = [f"{key} = {value}" for key, value in usual.items() if value is not None]
    return "\n".join([f"[{name}]", *lines, ""])


GOOD = """
constraints = ["depth < margin", "margin >= base"]   # kept on what is played

[margin]
value = 200.0   # the master writes here
min = 50
max = 400
step = 20
group = "search"
"""
DEPTH = {"value": 3.7, "min": 1, "max": 6, "step": 1, "active": "false"}
LMR = {"value": 0.75, "min": 0.5, "max": 1.5, "step": 0.1, "scale": 1000, "note": '"hm"'}


def test_every_kind_of_parameter_is_read(params):
    depth_table = table("depth", constant='"src/search.rs::pruning::DEPTHS[2]"', **DEPTH)
    lmr_table = table("lmr_base", option='"LMR Base"', **LMR)
    knobs = (table(knob, array='"MARGINS"', knob=f'"{knob}"') for knob in ("base", "per_index"))
    space = load_space(params("".join((GOOD, depth_table, lmr_table, *knobs))))
    margin, depth, lmr, base, slope = space.parameters
    assert (margin.location, margin.role) == (Location("MARGIN"), Role.VALUE)
    assert (margin.value, margin.group, margin.line, margin.integral) == (200.0, "search", 4, True)
    assert depth.location == Location.parse("src/search.rs::pruning::DEPTHS[2]")
    assert (depth.value, depth.integral, depth.active) == (3.7, True, False)
    assert (lmr.unit, lmr.integral, lmr.option, lmr.note) == (0.001, False, "LMR Base", "hm")
    assert (base.location, base.role) == (Location("MARGINS"), Role.BASE)
    assert (slope.location, slope.role) == (Location("MARGINS"), Role.PER_INDEX)
    orders = (Constraint("depth", "margin"), Constraint("base", "margin", strict=False))
    assert space.constraints == orders


@pytest.mark.parametrize(
    ("keys", "integral"),
    [
        ({}, True),
        ({"value": 201.25}, True),
        ({"step": 0.5}, False),
        ({"min": 0.5}, False),
        ({"type": '"float"'}, False),
        ({"type": '"int"', "step": 0.5}, True),
    ],
)
def test_a_parameter_is_whole_when_its_range_and_step_are(params, keys, integral):
    assert load_space(params(table(**keys))).parameters[0].integral is integral


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (table(value=None), "params.toml:1: [margin] value is missing"),
        (table(value=500), "toml:2: [margin] value 500 is outside its bounds; use 50 to 400"),
        (table(value='"x"'), ':2: [margin] value = "x" is refused; it has to be a valid number'),
        (table(max="inf"), "toml:4: [margin] max = inf is refused; it has to be a finite number"),
        (table(max="9" * 400), "less than or equal to 1000000000000000"),
        (table(step=1e-9, min=0.5), "step 1e-09 is lost beside values of 400; use at least 4e-07"),
        (table(option='"a\\nsetoption name b"'), "printable characters on one line"),
        (table("a" * 101), "is not a name for a parameter"),
        (table(constant='"' + "m::" * 9 + 'A"'), "does not name a constant"),
        (table(min=400), "params.toml:3: [margin] min 400 is not less than max 400"),
        (table(step=0), "params.toml:5: [margin] step = 0 is refused; it has to be greater than"),
        (table(step=0.4, type='"int"'), "step 0.4 is below what rounding to 1 can express"),
        (table(step=0.0004, scale=1000), "below what rounding to 0.001 can express"),
        (table(step=351), "step 351 is wider than the whole range"),
        (table(min=50.5, type='"int"'), "min 50.5 is no multiple of 1; use 51"),
        (table(max=400.0005, scale=1000), "max 400 is no multiple of 0.001"),
        (table(scale=10, type='"int"'), "scale does not go with type"),
        (table(stepp=3), "params.toml:6: [margin] unknown key 'stepp'; did you mean \"step\"?"),
        (table(stpe=3), "unknown key 'stpe'; did you mean \"step\"?"),
        (table(constant='"A[x]"'), "params.toml:6: [margin] 'A[x]' does not name a constant"),
        (table(constant='"../a.rs::A"'), "is not a path inside the source tree"),
        (table(array='"A"'), 'knob is missing; write knob = "base" or "per_index"'),
        (table(array='"A"', knob='"bias"'), 'it has to be "base" or "per_index"'),
        (table(array='"A"', constant='"B"'), "constant and array are both given"),
        (table(array='"A"', knob='"base"'), "A has no knob per_index"),
        (table(knob='"base"'), "knob is given without array"),
        (table("a-b"), "'a-b' is not a name for a parameter"),
        (table(active="false"), "nothing is to be tuned"),
        ("", "params.toml: [params.toml] nothing is to be tuned; add a table [name]"),
        ("margin = 5\n", "params.toml:1: [margin] 5 is not a table"),
        (table() + table(), "line 1 has [margin], and line 6 [margin]; write all its keys under"),
        ('a = "', "is not TOML"),
        ("a = " + "[" * 5000, "nested too deeply"),
        ("[margin]\n# \0\n", "params.toml:2: [params.toml] is not TOML"),
        (b"[margin]\n# \xff\n", "params.toml:2: [params.toml] is not UTF-8"),
        (table("a") + table("b", option='"a"'), "toml:11: [b] option 'a' is that of a already"),
        (table("a") + table("b", constant='"A"'), "params.toml:6: [b] A is written by a already"),
        ("constraints = 5\n" + table(), "params.toml:1: [constraints] 5 is not a list"),
        ('constraints = ["a"]\n' + table(), "'a' is not an order between two parameters"),
        ('constraints = ["margn < a"]\n' + table(), 'margn; did you mean "margin"?'),
        ('constraints = ["a < b", "b <= a"]\n' + table("a") + table("b"), "a, b are in a circle"),
        (
            'constraints = ["a < b"]\n' + table("a", active="false") + table("b", max=200),
            "nothing is left of b: at least 201 and at most 200",
        ),
    ],
)
def test_what_is_wrong_is_said_with_line_name_and_remedy(params, text, said):
    found = faults(params(text))
    assert any(said in fault for fault in found), found


def test_a_byte_order_mark_is_no_part_of_the_file(params):
    assert load_space(params(table().encode("utf-8-sig"))) == load_space(params(table()))


def test_all_faults_are_told_in_one_go(params):
    text = (
        'constraints = ["a < nobody"]\n'
        + table("a", stepp=1)
        + table("b", step=None, min=1000)
        + table("c")
        + table("d", constant='"C"')
    )
    assert [fault.split(";")[0] for fault in faults(params(text))] == [
        "params.toml:1: [constraints] 'a < nobody': no parameter nobody",
        "params.toml:7: [a] unknown key 'stepp'",
        "params.toml:8: [b] step is missing",
    ]  # and what is wrong between parameters once each is right by itself


def test_missing_files_and_folders_are_faults(tmp_path):
    assert "does not exist" in faults(tmp_path / "none.toml")[0]
    assert "Is a directory" in faults(tmp_path)[0]
    assert "cannot be read" in faults(tmp_path / ("x" * 5000))[0]
    assert "cannot be read" in faults(Path("a\0b"))[0]
    (tmp_path / "loop").symlink_to("loop")
    assert "cannot be read" in faults(tmp_path / "loop")[0]


def test_what_is_said_of_megabytes_of_nonsense_is_short(params):
    (fault,) = faults(params("x" * 5_000_000))
    assert len(fault) < 500


HOSTILE = (FIXTURES / "hostile.rs").read_text(encoding="utf-8")


def against(path, text=HOSTILE):
    found = check_against_source(load_space(path), {"src/c.rs": text})
    return [str(fault) for fault in found]


def test_a_space_that_fits_its_source_has_no_faults(params):
    fits = (
        table("margin")
        + table("rate", constant='"RATE"', min=0.5)
        + table("lmp", constant='"LMP[2]"', max=255)
        + table("scaled", constant='"PAREN"', value=0.7, min=0.5, max=1, step=0.1, scale=100)
        + table("base", array='"GRID[0]"', knob='"base"')
        + table("slope", array='"GRID[0]"', knob='"per_index"')
    )
    assert against(params(fits)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (table("margim"), "params.toml:1: [margim] there is no constant MARGIM in src/c.rs"),
        (table("split"), "SPLIT is 2 times in src/c.rs"),
        (table("average"), "what is computed from them follows"),
        (table("max_depth"), "MAX_DEPTH is of type u8 and cannot hold 400; keep min and max"),
        (table("margin", min=50.5), "cannot hold 50.5"),
        (table("a", constant='"LMP[7]"'), "LMP[7] is not among the 4 numbers of LMP"),
        (
            table("b", array='"LMP"', knob='"base"', max=300)
            + table("s", array='"LMP"', knob='"per_index"', value=0, min=0, max=1, step=1),
            "LMP[0] is of type u8 and cannot hold 300",
        ),
        (
            table("b", array='"LMP"', knob='"base"', max=250, value=60)
            + table("s", array='"LMP"', knob='"per_index"', value=0, min=-20, max=2, step=1),
            "LMP[3] is of type u8 and cannot hold -10",
        ),
    ],
)
def test_what_does_not_fit_the_source_is_told_before_cargo_runs(params, text, said):
    found = against(params(text))
    assert len(found) == 1
    assert said in found[0]


def test_a_broken_source_is_told_once_a_parameter(params):
    found = against(params(table("margin")), "const MARGIN: i32 = ;")
    assert "src/c.rs:1 is not valid Rust" in found[0]


def test_sources_are_read_with_their_line_ends(tmp_path, params):
    (tmp_path / "a.rs").write_bytes(b"const A: i32 = 1;\r\n")
    space = load_space(params(table("a")))
    assert read_sources(space, tmp_path, "a.rs") == {"a.rs": "const A: i32 = 1;\r\n"}
    (tmp_path / "bad.rs").write_bytes(b"\xff")
    space = load_space(params(table("a") + table("b", constant='"bad.rs::B"')))
    with pytest.raises(InvalidInput) as refused:
        read_sources(space, tmp_path, "none.rs")
    own, other = refused.value.lines
    assert own.startswith(f"{tmp_path}/none.rs: [none.rs] cannot be read: No such file")
    assert other.startswith(f"params.toml:6: [b] {tmp_path}/bad.rs cannot be read: it is not UTF-8")


def test_more_parameters_than_a_run_can_have_are_refused(params):
    text = "".join(f"[p{i}]\n" for i in range(5001))
    (found, *_) = faults(params(text))
    assert "5001 parameters are too many; tune at most 5000" in found


@pytest.mark.timeout(60)
def test_a_long_chain_of_constraints_is_kept_in_linear_time(params):
    chain = ", ".join(f'"p{i} <= p{i + 1}"' for i in reversed(range(2999)))
    keys = "value = 5\nmin = 0\nmax = 100\nstep = 5\n"
    many = "".join(f"[p{i}]\n{keys}" for i in range(3000))
    space = load_space(params(f"constraints = [{chain}]\n{many}"))
    values = {p.name: 100 - i % 100 for i, p in enumerate(space.parameters)}
    kept = [*space.rounded(space.steps(values)).values()]
    assert kept == sorted(kept) and kept[-1] == values["p2999"]
