"""Numbers in structs, calls, macros, functions and branches: found, typed and rewritten."""

from pathlib import Path

import pytest

from spsa.builds.sources import ConstantRefused, element, parse, rewrite
from spsa.core.params import Location

SHAPES = (Path(__file__).parents[1] / "fixtures" / "rust" / "shapes.rs").read_text(encoding="utf-8")
FILE = parse(SHAPES, "shapes.rs")

PLACES = {
    "DOUBLED.0": (-12, "i16"),
    "DOUBLED.1": (25, "i16"),
    "HANGING.0": (41, None),
    "HANGING.1": (-17, None),
    "OUTPOST.0": (63, None),
    "OUTPOST.1": (-4, None),
    "LADDER[1].0": (3, "i16"),
    "MARGINS.razor": (250, "u8"),
    "MARGINS.futility.base": (90, "i32"),
    "MARGINS.futility.slope": (1.25, "f32"),
    "CONTEMPT": (42, "i32"),
    "TEMPO": (28, "u8"),
    "SMALL": (25, "i8"),
    "WRAPPED": (7, None),
    "PAWN_DROP": (133, None),
    "NULL_BASE": (4, "u8"),
    "rook_lift": (31, None),
    "late::first": (0.75, "f32"),
    "late::counts[1]": (9, None),
    "asp_start": (17, "i32"),
    "asp_grow": (-33, "i32"),
    "nested::BISHOP_EYE": (9, "i32"),
    "feature_fast::WINDOW": (40, "i32"),
    "not_feature_fast::WINDOW": (55, "i32"),
    "build_reductions::shrink.0": (812, None),
    "build_reductions::shrink.1": (2450, None),
    "build_reductions::shrink.2": (1000, None),
    "build_reductions.1": (3, None),
    "futility.0": (77, None),
    "razor_margin": (310, "i32"),
    "Margins::default.razor": (3, "u8"),
    "Margins::default.futility.slope": (0.5, "f32"),
}


@pytest.mark.parametrize(("place", "found"), PLACES.items(), ids=PLACES)
def test_numbers_are_found_with_their_types(place, found):
    there = element(FILE, Location.parse(place))
    assert (there.number, there.type) == found


@pytest.mark.parametrize("place", PLACES)
def test_a_number_is_rewritten_and_nothing_else(place):
    location = Location.parse(place)
    old = element(FILE, location)
    number = old.number + (0.125 if old.real else 3 if old.number > 0 else -3)
    after = rewrite(SHAPES, {location: number})
    assert element(parse(after), location).number == number
    source, found = SHAPES.encode(), old
    changed = after.encode()[found.start : len(after.encode()) - len(source) + found.end]
    assert source[: found.start] + changed + source[found.end :] == after.encode()
    assert float(changed.decode().replace("i8", "").replace(" ", "")) == number


def test_all_of_them_at_once():
    wanted = {Location.parse(place): number for place, (number, _) in PLACES.items()}
    assert rewrite(SHAPES, wanted) == SHAPES
    raised = {place: number + 1 for place, number in wanted.items()}
    after = parse(rewrite(SHAPES, raised))
    assert {place: element(after, place).number for place in raised} == raised


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("MARGINS", "has 3 numbers; name one, such as MARGINS.razor, MARGINS.futility.base"),
        ("MARGINS.futility", "has 2 numbers; name one, such as MARGINS.futility.base"),
        ("MARGINS.depth", "is not among the 3 numbers of MARGINS; name one, such as MARGINS.razor"),
        ("MARGINS[0]", "name one, such as MARGINS.razor, MARGINS.futility.base"),
        ("DOUBLED[0]", "name one, such as DOUBLED.0, DOUBLED.1"),
        ("LADDER[2]", "LADDER[2] is an expression: Pair::NONE"),
        ("CORNER", "computed by a call: SMALL.max(3)"),
        ("SUM", "there is no constant SUM"),
        ("BOOK", "there is no constant BOOK"),
        ("WINDOW", "write crate::feature_fast::WINDOW or crate::not_feature_fast::WINDOW"),
        ("futility.1", "is not among the 1 number in expressions of futility"),
        ("build_reductions", "has 3 numbers in expressions; name one, such as build_reductions.0"),
    ],
)
def test_what_is_no_number_is_refused_with_a_remedy(place, said):
    with pytest.raises(ConstantRefused) as refused:
        element(FILE, Location.parse(place))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("place", "number"), [("MARGINS.razor", 256), ("TEMPO", -1), ("DOUBLED.0", 2**15)]
)
def test_the_type_of_a_field_bounds_it(place, number):
    with pytest.raises(ConstantRefused, match="cannot hold"):
        rewrite(SHAPES, {Location.parse(place): number})


def test_every_number_has_one_place():
    numbers = [one for owner in FILE.constants for one in owner.numbers()]
    assert len({(one.start, one.end) for one in numbers}) == len(numbers)
    paths = [owner.path for owner in FILE.constants if not owner.test_only]
    assert len(set(paths)) == len(paths)


def test_a_constant_goes_before_a_variable_of_its_name():
    file = parse("const A: i32 = 1; fn f() { let A = 2; } tunable! { A = 3; }")
    assert element(file, Location.parse("A")).number == 1
    assert element(file, Location.parse("f::A")).number == 2
