"""Reading and rewriting sources: exact places and types, and refusals that say what to do."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest
from golden import compare_cases
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spsa.builds.sources import rewriting
from spsa.builds.sources.constant import ConstantRefused, Notation, Opaque
from spsa.builds.sources.reading import LANGUAGES, parse
from spsa.config.space import load_space
from spsa.config.suggestions import select
from spsa.core.parameter import SOURCE_SUFFIXES, Location, Number

FIXTURES = Path(__file__).parents[1] / "fixtures"
ENGINE = Path(__file__).parents[2] / "engine" / "src" / "engine_constants.rs"
PATHS = (
    FIXTURES / "rust" / "hostile.rs",
    FIXTURES / "rust" / "shapes.rs",
    FIXTURES / "constants.h",
)
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PATHS}
HOSTILE = TEXTS["hostile.rs"]
FILES = {name: parse(text, name) for name, text in TEXTS.items()}


def at(text: str) -> Location:
    return Location.parse(text)


def test_what_stands_at_each_place_of_a_file_and_how_it_is_rewritten():
    def shown(files):
        ((file, asked),) = files.items()
        place, *numbers = asked.split(" = ")
        try:
            if place.endswith(" ..."):
                found = rewriting.elements(FILES[file], at(place.removesuffix(" ...")))
                return [f"{one}: {element.number}" for one, element in found.items()]
            return rewritten(file, asked) if numbers else [located(file, at(place))]
        except ConstantRefused as refused:
            assert refused.exit_code == 2
            return [str(refused)]

    compare_cases(Path(__file__).with_name("places.txt"), shown)


def located(file, place):
    """A number with its type and its line, when all but that number stays with another one."""
    old, source = rewriting.element(FILES[file], place), TEXTS[file].encode()
    number = old.number + (0.125 if old.real else 3 if old.number > 0 else -3)
    after = rewriting.rewrite(TEXTS[file], {place: number}, file).encode()
    assert rewriting.element(parse(after.decode(), file), place).number == number
    assert source[old.start : old.end].decode() == old.text
    assert after.startswith(source[: old.start]) and after.endswith(source[old.end :])
    return f"line {source[: old.start].count(10) + 1}: {old.number} {old.type or '-'}"


def rewritten(file, asked):
    wanted = {}
    for each in asked.split(", "):
        place, number = each.split(" = ")
        wanted[at(place)] = int(number) if number.lstrip("-").isdigit() else float(number)
    texts = TEXTS[file], rewriting.rewrite(TEXTS[file], wanted, file)
    before, after = (text.split("\n") for text in texts)
    return [new for old, new in zip(before, after, strict=True) if old != new]


def test_the_numbers_of_small_sources_and_the_names_of_lengths():
    def shown(files):
        ((name, text),) = files.items()
        file = parse(text, name)
        for one in file.constants:
            for item in one.items:
                place = f"{one.kind} {'::'.join((*one.scope, str(item.location)))}"
                if isinstance(item, Opaque):
                    yield f"{place}: {item.text}"
                else:
                    beside = f" beside {item.beside}" if item.beside else ""
                    yield f"{place} = {item.number} {item.type or '-'}{beside}"
        yield "defined:" + "".join(f" {name or '-'}" for name, _ in file.definitions)
        if file.lengths:
            yield f"lengths: {' '.join(sorted(file.lengths))}"
        if file.broken:
            yield f"broken in line {file.broken}"

    compare_cases(Path(__file__).with_name("sources.txt"), shown)


def test_of_a_float_that_is_the_same_but_for_rounding_the_digits_stay():
    """And a constant goes before a variable of its name."""
    text = "const A: f64 = -1.805; const B: f64 = 2.8; fn f() { let A = 2; } tunable! { A = 3; }"
    wanted = {at("A"): -1.8050000000000002, at("B"): 2.8000000001, at("f::A"): 4}
    after = text.replace("2.8", "2.8000000001").replace("A = 2", "A = 4")
    assert rewriting.rewrite(text, wanted) == after


@pytest.mark.parametrize("file", [*FILES, "engine_constants.rs"])
def test_every_number_has_one_place_and_all_change_at_once(file):
    text = TEXTS.get(file) or ENGINE.read_text(encoding="utf-8")
    parsed = FILES.get(file) or parse(text)
    numbers = [one for owner in parsed.constants for one in owner.numbers()]
    assert len({one.start for one in numbers}) == len(numbers)
    owners = [one for one in parsed.constants if not one.test_only]
    wanted = {
        replace(parsed.location_of(owner), accesses=one.location.accesses): one.number
        for owner in owners
        if len(parsed.by_name[owner.name]) == 1
        for one in owner.numbers()
    }
    assert len(wanted) > 20
    assert rewriting.rewrite(text, wanted, file) == text
    raised = {place: number + 1 for place, number in wanted.items()}
    after = parse(rewriting.rewrite(text, raised, file), file)
    assert {place: rewriting.element(after, place).number for place in raised} == raised


def test_the_suffixes_of_all_languages_are_those_of_locations():
    assert {s for language in LANGUAGES for s in language.suffixes} == set(SOURCE_SUFFIXES)


@pytest.mark.parametrize("prefix", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_byte_order_marks_and_line_ends_stay(prefix, newline):
    text = prefix + HOSTILE.replace("\n", newline)
    after = rewriting.rewrite(text, {at("MARGIN"): 201, at("LAST"): -1})
    assert after == text.replace("= 200;", "= 201;").replace("LAST: i32 = 9", "LAST: i32 = -1")


@pytest.mark.slow
@settings(deadline=None)  # the machine may be busy with games
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_read_back_to_the_bit(number):
    after = parse(rewriting.rewrite(HOSTILE, {at("RATE"): number}))
    assert rewriting.element(after, at("RATE")).number == number


def test_a_rewrite_that_reads_back_otherwise_is_loud(monkeypatch):
    monkeypatch.setattr(Notation, "write", lambda *_, **__: "41 + 1")
    with pytest.raises(rewriting.RewriteDiffers, match="does not read back"):
        rewriting.rewrite(HOSTILE, {at("MARGIN"): 42})
    monkeypatch.setattr(Notation, "write", lambda *_, **__: "42; const B: i32 = 3")
    with pytest.raises(rewriting.RewriteDiffers):
        rewriting.rewrite(HOSTILE, {at("MARGIN"): 42})


@pytest.mark.parametrize("end", [b"\n", b""])
def test_patches_apply(tmp_path, end):
    before = b"a\nb\x0cc \xe4 \x85\r\nd" + end
    after = before.replace(b"c", b"C")
    (tmp_path / "x.rs").write_bytes(before)
    patch = rewriting.unified_patch(before, after, "x.rs")
    applied = ["git", "apply", "-p1", "-"]
    subprocess.run(applied, input=patch, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "x.rs").read_bytes() == after
    assert rewriting.unified_patch(before, before, "x.rs") == b""


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "const A: i32 = " + "[" * 3000 + "1" + "]" * 3000 + ";",
        "const A: " + "[" * 3000 + "i32" + "; 1]" * 3000 + " = 1;",
        "const A: i32 = " + "-" * 3000 + "1;",
        "mod a { " * 1000 + "const A: i32 = 1;" + "}" * 1000,
        "tunable! " + "{ b " * 3000 + "A = 1;" + "}" * 3000,
        "// about\n" * 20_000 + "#[inline]\n" * 3000 + "const A: i32 = [1, 2];",
        "const A: i32 = 1;\n" * 5_000,
    ],
    ids=["array", "type", "minus", "mod", "macro", "comments", "many"],
)
def test_what_is_deep_or_long_is_read_in_linear_time(text):
    try:
        assert rewriting.element(parse(text), at("A")).number == 1
    except ConstantRefused as refused:
        assert len(str(refused)) < 400


MARKS = ("{", "}", "(", ")", "[", "]", "#if X\n", "#endif\n", '"', "/*", "\n", "é")
TOKENS = [*TEXTS["constants.h"].split(), *HOSTILE.split(), *MARKS]


@settings(max_examples=60, deadline=None)
@example(["PARAMS_H", "PARAMS_H", "2,", "=", "200u;"], "a.c")
@given(
    st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(["a.c", "a.h", "a.cpp", "a.rs"])
)
def test_of_any_text_every_number_that_is_found_can_be_rewritten(tokens, name):
    text = " ".join(tokens)
    file = parse(text, name)
    select({name: text})
    for one in file.constants[:5]:
        place = Location.parse(one.path.removeprefix("crate::"))
        try:
            numbers = rewriting.elements(file, place)
        except ConstantRefused:
            continue
        wanted = {at: number.number + 1 for at, number in numbers.items()}
        after = rewriting.elements(parse(rewriting.rewrite(text, wanted, name), name), place)
        assert {at: number.number for at, number in after.items()} == wanted


def test_a_long_table_is_rewritten_in_one_pass():
    """Looking through all numbers for each of them would take a minute and more."""
    count = 6000
    text = f"static TABLE: [i32; {count}] = [{', '.join(map(str, range(count)))}];\n"
    table = Location("TABLE")
    numbers: dict[Location, Number] = {table.at(i): i + 1 for i in range(count)}
    began = time.process_time()
    assert rewriting.rewrite(text, numbers).endswith(f"{count - 1}, {count}];\n")
    assert time.process_time() - began < 20


def test_every_value_arrives_in_its_file(tmp_path):
    def shown(files):
        (tmp_path / "params.toml").write_text(files.pop("params.toml"))
        space = load_space(tmp_path / "params.toml")
        assert rewriting.sources_of(space, "src/constants.rs") == tuple(files)
        try:
            written = rewriting.render(space, space.rounded(space.start()), files)
        except ConstantRefused as refused:
            yield str(refused)
            return
        for name, text in files.items():
            lines = zip(text.split("\n"), written[name].split("\n"), strict=True)
            yield from (f"{name}: {new}" for old, new in lines if old != new)

    compare_cases(Path(__file__).with_name("rendered.txt"), shown)
