"""Reading and rewriting Rust: exact ranges, and refusals that say what to do."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.builds.sources import (
    ConstantRefused,
    Kind,
    Opaque,
    RewriteDiffers,
    element,
    elements,
    parse,
    rewrite,
    unified_patch,
)
from spsa.builds.sources.constant import Notation
from spsa.core.params import Location, Number

HOSTILE = (Path(__file__).parents[1] / "fixtures" / "rust" / "hostile.rs").read_text(
    encoding="utf-8"
)
FILE = parse(HOSTILE, "hostile.rs")
ENGINE = Path(__file__).parents[2] / "engine" / "src" / "engine_constants.rs"


def at(text: str) -> Location:
    return Location.parse(text)


def refusal(location: str, number: Number | None = None) -> str:
    with pytest.raises(ConstantRefused) as refused:
        found = element(FILE, at(location))
        assert number is not None
        found.check(number)
    return str(refused.value)


def changed(text: str, **numbers: Number) -> str:
    """The lines that a rewrite changes, new text only."""
    after = rewrite(text, {at(name): number for name, number in numbers.items()})
    pairs = zip(text.split("\n"), after.split("\n"), strict=True)
    return "\n".join(new for old, new in pairs if old != new)


@pytest.mark.parametrize(
    ("location", "number", "kind"),
    [
        ("MARGIN", 200, "i32"),
        ("MARGIN_PER_DEPTH", -64, "i32"),
        ("GAP", 16, "i16"),
        ("MAX_DEPTH", 4, "u8"),
        ("COUNTER", 10000, "usize"),
        ("NODES", 1000000, "u64"),
        ("RATE", 0.75, "f64"),
        ("RATE32", 1000.5, "f32"),
        ("BARE", 2.0, "f32"),
        ("PAREN", 5, "i32"),
        ("PAIR.1", 200, "i32"),
        ("LMP[2]", 11, "u8"),
        ("TABLE[2]", 12, "i32"),
        ("TABLE[5]", -3, "i32"),
        ("GRID[0][1]", -2, "i16"),
        ("PAIRS[1].0", -3, "i16"),
        ("PAIRS[1].1", 4, "u8"),
        ("HALF[1][0]", 1, "u8"),
        ("ALIASED", 77, None),
        ("PATH_TYPE", 7, None),
        ("LN[1]", 693, "u32"),
        ("make_table::MARGIN_LOCAL", 3, "u32"),
        ("old::DEPTH", 1, "i32"),
        ("old::older::DEPTH", 2, "i32"),
        ("older::DEPTH", 2, "i32"),
        ("Engine::CONTEMPT", 12, "i32"),
        ("Engine::DEPTH", 3, None),
        ("crate::LAST", 9, "i32"),
        ("CAST", 5, "i32"),
        ("feature_a::SPLIT", 1, "i32"),
        ("crate::not_feature_a::SPLIT", 2, "i32"),
    ],
)
def test_numbers_are_found_with_their_types(location, number, kind):
    found = element(FILE, at(location))
    assert (found.number, found.type) == (number, kind)
    raw = HOSTILE.encode()[found.start : found.end].decode()
    assert raw == found.text


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("MARGINS", "there is no constant MARGINS in hostile.rs; did you mean MARGIN?"),
        ("DOC", "there is no constant DOC"),
        ("BLOCKED", "there is no constant"),
        ("COMMENTED", "there is no constant"),
        ("IN_STRING", "there is no constant"),
        ("IN_RAW", "there is no constant"),
        ("IN_MACRO", "there is no constant"),
        ("nowhere::LAST", 'write constant = "crate::LAST"'),
        ("SPLIT", "SPLIT is twice in hostile.rs, on lines 81 and 83"),
        ("SPLIT", "write crate::feature_a::SPLIT or crate::not_feature_a::SPLIT"),
        ("DEPTH", "3 times in hostile.rs"),
        ("DEPTH", "write old::DEPTH or old::older::DEPTH or Engine::DEPTH"),
        ("ONLY_HERE", "only in tests"),
        ("AVERAGE", "derived from other constants: (PAIR.0 + PAIR.1) / 2"),
        ("AVERAGE", "it follows by itself: tune PAIR"),
        ("NEGATED", "tune MARGIN"),
        ("LIMIT", "an expression: i32::MAX / 2"),
        ("DEBUG", "a bool: false"),
        ("TEXT", "a string"),
        ("LETTER", "a character"),
        ("LMR[0][0]", "LMR is computed by a call: make_table()"),
        ("ZEROS[1]", "ZEROS is one number repeated: [0; 4]; write its elements out"),
        ("HALF[0][1]", "HALF[0] is one number repeated"),
        ("REQUIRED", "declared without a value"),
        ("PAIR", "PAIR has 2 numbers; name one, such as PAIR.0, PAIR.1"),
        (
            "LMP",
            "LMP has 4 numbers; name one, such as LMP[0], LMP[1], LMP[2], LMP[3], or",
        ),
        ("TABLE", "TABLE[0], TABLE[1], TABLE[2], ... TABLE[5], or use array or table knobs"),
        ("PAIR[1]", "not among the 2 numbers of PAIR; name one, such as PAIR.0, PAIR.1"),
        ("LMP.1", "LMP.1 is not among the 4 numbers of LMP; name one, such as LMP[0], LMP[1]"),
        ("LMP[4]", "LMP[4] is not among the 4 numbers of LMP"),
        ("MARGIN[0]", "MARGIN[0] is not among the 1 number of MARGIN; name one, such as MARGIN"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_with_a_remedy(location, said):
    assert said in refusal(location)


@pytest.mark.parametrize(
    ("location", "number", "said"),
    [
        ("MAX_DEPTH", 256, "of type u8 and cannot hold 256; keep min and max within 0 to 255"),
        ("MAX_DEPTH", -1, "cannot hold -1"),
        ("GAP", 32768, "keep min and max within -32768 to 32767"),
        ("MARGIN", 2**31, "i32"),
        ("MARGIN", 1.5, 'type = "int" or a scale'),
        ("PAIRS[0].1", 300, "u8"),
        ("ALIASED", 0.5, "of type a whole number and cannot hold 0.5"),
    ],
)
def test_what_a_type_cannot_hold_is_refused(location, number, said):
    assert said in refusal(location, number)


def test_what_a_type_can_hold_is_not():
    for location, number in (("GAP", -32768), ("RATE", 3.25), ("ALIASED", 10**12), ("RATE", 1)):
        element(FILE, at(location)).check(number)


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        (
            {"MARGIN": 7},
            'pub const MARGIN: Score = 7; // per depth, not "pub const MARGIN: Score = 1;"',
        ),
        ({"MARGIN_PER_DEPTH": 5}, "pub const MARGIN_PER_DEPTH: Score = 5;"),
        ({"GAP": -3}, "pub(crate) const GAP  :  i16  =  -3 ;"),
        ({"MAX_DEPTH": 12}, "const MAX_DEPTH: u8 = 12_u8;"),
        ({"COUNTER": 1234567}, "static mut COUNTER: usize = 1_234_567;"),
        ({"NODES": 999}, "pub static NODES: u64 = 999_u64;"),
        ({"RATE": 1}, "const RATE: f64 = 1.0;"),
        ({"RATE32": 12345.25}, "const RATE32: f32 = 12_345.25_f32;"),
        ({"BARE": 0.5}, "const BARE: f32 = 0.5f32;"),
        ({"PAREN": -5}, "const PAREN: i32 = (-5);"),
        ({"PAIR.0": 1, "PAIR.1": 22222}, "pub const PAIR: ScorePair = (1, 22222);"),
        ({"TABLE[2]": -7}, "    /* 7 */ -7, 20,"),
        ({"TABLE[5]": 4}, "    25, 4,"),
        ({"GRID[0][1]": 0}, "pub const GRID: [[i16; 2]; 2] = [[1, 0], [3, 4]];"),
    ],
)
def test_a_number_changes_and_nothing_else(numbers, line):
    assert changed(HOSTILE, **numbers) == line


def test_writing_what_is_there_gives_the_same_bytes():
    same = {at("MARGIN"): 200, at("TABLE[3]"): 20, at("RATE32"): 1000.5, at("NODES"): 1000000}
    assert rewrite(HOSTILE, same) == HOSTILE
    assert rewrite(HOSTILE, {}) == HOSTILE


@pytest.mark.parametrize("prefix", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends_stay(prefix, newline):
    text = prefix + HOSTILE.replace("\n", newline)
    after = rewrite(text, {at("MARGIN"): 201, at("LAST"): -1})
    assert after == text.replace("= 200;", "= 201;").replace("LAST: i32 = 9", "LAST: i32 = -1")


unhurried = settings(deadline=None)  # the machine may be busy with games

places = st.sampled_from(["MARGIN", "MARGIN_PER_DEPTH", "TABLE[0]", "TABLE[4]", "PAIR.0", "LAST"])


@pytest.mark.slow
@unhurried
@given(st.dictionaries(places, st.integers(-(2**31), 2**31 - 1)))
def test_what_was_written_reads_back(numbers):
    after = parse(rewrite(HOSTILE, {at(name): number for name, number in numbers.items()}))
    for name, number in numbers.items():
        assert element(after, at(name)).number == number


@pytest.mark.slow
@unhurried
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_to_the_bit(number):
    after = parse(rewrite(HOSTILE, {at("RATE"): number}))
    assert element(after, at("RATE")).number == number


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_never_written(number):
    for name in ("RATE", "MARGIN"):
        with pytest.raises(ConstantRefused, match="finite"):
            rewrite(HOSTILE, {at(name): number})


def test_elements_come_in_the_order_of_the_text():
    found = elements(FILE, at("GRID"))
    assert {str(place): one.number for place, one in found.items()} == {
        "GRID[0][0]": 1,
        "GRID[0][1]": -2,
        "GRID[1][0]": 3,
        "GRID[1][1]": 4,
    }


def test_elements_of_a_computed_table_are_refused():
    for name in ("LMR", "HALF", "ZEROS"):
        with pytest.raises(ConstantRefused):
            elements(FILE, at(name))


@pytest.mark.parametrize(
    "text", ["const A: i32 = 5\nconst B: i32 = 6;", "const A: i32 = ;", "mod m { const A: i32 = 5;"]
)
def test_a_text_that_is_not_rust_is_refused(text):
    with pytest.raises(ConstantRefused, match="not valid Rust"):
        rewrite(text, {at("A"): 1})


def test_a_rewrite_that_reads_back_otherwise_is_loud(monkeypatch):
    monkeypatch.setattr(Notation, "write", lambda *_, **__: "41 + 1")
    with pytest.raises(RewriteDiffers, match="MARGIN reads back"):
        rewrite(HOSTILE, {at("MARGIN"): 42})
    monkeypatch.setattr(Notation, "write", lambda *_, **__: "42; //")
    with pytest.raises(RewriteDiffers):
        rewrite(HOSTILE, {at("MARGIN"): 42})


def test_a_file_of_deep_brackets_does_not_exhaust_the_stack():
    deep = f"const A: i32 = 1;\nfn f() {{ {'(' * 3000}1{')' * 3000}; }}"
    assert "A: i32 = 2" in rewrite(deep, {at("A"): 2})


def test_the_bundled_engine_is_rewritten_exactly():
    text = ENGINE.read_text(encoding="utf-8")
    file = parse(text)
    written = [
        location
        for one in file.constants
        if one.kind is Kind.CONSTANT and not any(isinstance(item, Opaque) for item in one.items)
        for location in elements(file, Location(one.name, scope=one.scope))
    ]
    assert len(written) > 100
    numbers = {location: element(file, location).number for location in written}
    assert rewrite(text, numbers) == text
    raised = {location: number + 1 for location, number in numbers.items()}
    after = parse(rewrite(text, raised))
    assert {place: element(after, place).number for place in raised} == raised


@pytest.mark.parametrize("end", ["\n", ""])
def test_patches_apply(tmp_path, end):
    before = "a\nb\x0cc\nd" + end
    after = "a\nb\x0cC\nd" + end
    (tmp_path / "x.rs").write_text(before)
    patch = unified_patch(before, after, "x.rs")
    applied = ["git", "apply", "-p1", "-"]
    subprocess.run(applied, input=patch.encode(), cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "x.rs").read_text() == after
    assert unified_patch(before, before, "x.rs") == ""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "const A: i32 = " + "[" * 3000 + "1" + "]" * 3000 + ";",
        "const A: i32 = " + "(" * 3000 + "1" + ")" * 3000 + ";",
        "const A: " + "[" * 3000 + "i32" + "; 1]" * 3000 + " = 1;",
        "const A: " + "&" * 3000 + "i32 = 1;",
        "const A: i32 = " + "-" * 3000 + "1;",
        "const A: i32 = " + " + ".join("B" * 3000) + ";",
        "mod a { " * 3000 + "const A: i32 = 1;" + "}" * 3000,
        "// about\n" * 20_000 + "#[inline]\n" * 3000 + "const A: i32 = [1, 2];",
        "const A: i32 = 1;\n" * 10_000,
    ],
    ids=["array", "brackets", "type", "references", "minus", "sum", "mod", "comments", "many"],
)
def test_what_is_deep_or_long_is_read_in_linear_time(text):
    try:
        assert element(parse(text), at("A")).number == 1
    except ConstantRefused as refused:
        assert len(str(refused)) < 400


@pytest.mark.parametrize(
    ("literal", "number"),
    [
        ("0x1f32", 0x1F32),
        ("0x1_f64", 0x1F64),
        ("0xffu8", 255),
        ("0b1_0i8", 2),
        ("1f32", 1.0),
        ("1e308", 1e308),
    ],
)
def test_a_hexadecimal_number_has_no_suffix_of_a_float(literal, number):
    (found,) = elements(parse(f"const A: X = {literal};"), at("A")).values()
    assert found.number == number


@pytest.mark.parametrize("literal", ["1e309", "9" * 500, "0x" + "f" * 5000, "1" + "0" * 5000])
def test_a_number_that_python_cannot_hold_or_print_is_refused(literal):
    with pytest.raises(ConstantRefused, match="only numbers that are written out"):
        element(parse(f"const A: f64 = {literal};"), at("A"))
