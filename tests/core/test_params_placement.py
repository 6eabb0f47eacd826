"""Where values go: locations as people write them, arrays of two knobs."""

import pytest

from spsa.core.params import Access, Location, Parameter, Role
from spsa.core.params.parameter import assignments, conflicts


def knob(name, location, **more):
    return Parameter(
        name=name,
        value=1,
        minimum=-999,
        maximum=999,
        step=1,
        location=location,
        option=name,
        **more,
    )


def source(*numbers):
    """A reader of sources in which every array holds `numbers`."""
    return lambda array: {array.at(i): number for i, number in enumerate(numbers)}


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("NAME", Location("NAME")),
        ("NAME[2]", Location("NAME", (Access(2),))),
        ("NAME.1", Location("NAME", (Access(1, field=True),))),
        ("NAME[1][2]", Location("NAME", (Access(1), Access(2)))),
        ("T[1].0", Location("T", (Access(1), Access(0, field=True)))),
        ("search::NAME", Location("NAME", scope=("search",))),
        ("src/search.rs::NAME", Location("NAME", file="src/search.rs")),
        ("src/a.rs::m::f::NAME[0]", Location("NAME", (Access(0),), ("m", "f"), "src/a.rs")),
    ],
)
def test_locations_are_read_and_written_alike(text, location):
    assert Location.parse(text) == location
    assert str(location) == text


@pytest.mark.parametrize(
    "text",
    ["", "2X", "A[", "A[-1]", "A[i]", "A.b-c", "a b", "/etc/x.rs::A", "../x.rs::A", "x.py::A"],
)
def test_what_names_no_constant_is_refused(text):
    with pytest.raises(ValueError, match=r"constant|source tree"):
        Location.parse(text)


def test_a_constant_takes_its_value_scaled():
    scaled = knob("lmr", Location("LMR"), integral=False, scale=1000)
    assert assignments([scaled], {"lmr": 0.75}, source()) == {Location("LMR"): 750}


def test_two_knobs_fill_an_array_of_the_kind_that_it_has():
    array = Location("LMP")
    roles = {"base": Role.BASE, "slope": Role.PER_INDEX}
    both = [knob(name, array, role=role, integral=False) for name, role in roles.items()]
    written = assignments(both, {"base": 8.4, "slope": 4.2}, source(0, 0, 0))
    assert written == {array.at(0): 8, array.at(1): 13, array.at(2): 17}
    real = assignments(both, {"base": 8.4, "slope": 4.2}, source(0.0, 0.0))
    assert [*real.values()] == pytest.approx([8.4, 12.6])


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("A", "A", True),
        ("A", "B", False),
        ("A[1]", "A[2]", False),
        ("A[1]", "A", True),
        ("m::A", "n::A", False),
        ("m::A", "A", True),
        ("x.rs::A", "A", False),
    ],
)
def test_two_parameters_may_not_write_one_number(first, second, clash):
    both = [knob(text, Location.parse(text)) for text in (first, second)]
    assert bool(list(conflicts(both))) is clash


def test_the_two_knobs_of_an_array_are_partners_and_a_third_is_a_conflict():
    roles = [Role.BASE, Role.PER_INDEX, Role.PER_INDEX]
    three = [knob(f"k{i}", Location("T"), role=role) for i, role in enumerate(roles)]
    assert [(a.name, b.name) for a, b in conflicts(three)] == [("k1", "k2")]
