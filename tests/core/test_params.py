"""The space: its units, what it plays, where values go, and its exact copies."""

import json
from dataclasses import replace

import builders
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spsa.core.parameter import Constraint, Knob, Location, assignments, circle, conflicts, feasible
from spsa.core.params import Space
from spsa.master.session import differences


def parameter(name, value, low, high, step, **more):
    facts = {"location": Location(name.upper()), "minimum": low, "maximum": high, "step": step}
    return builders.parameter(name, value=value, **facts | more)


MARGIN = parameter("margin", 200, 50, 400, 20)
DEPTH = parameter("depth", 3, 1, 6, 1)
RATIO = parameter("ratio", 0.75, 0.5, 1.5, 0.1, integral=False, scale=1000)
REAL = parameter("real", 2.5, 1.0, 4.0, 0.25, integral=False)
FROZEN = parameter("frozen", 7, 1, 12, 1, active=False)
SPACE = Space((MARGIN, FROZEN, DEPTH, RATIO, REAL))
unhurried = settings(deadline=None)  # the machine may be busy with games
draws = st.floats(0.0, 1.0, exclude_max=True)
offsets = st.one_of(st.just(0.0), st.floats(1e-6, 3.0), st.floats(-3.0, -1e-6))


def vectors(elements, size=4):
    return st.lists(elements, min_size=size, max_size=size).map(np.array)


def inside(space, fractions):
    return space.lower + fractions * (space.upper - space.lower)


def both(space, played):
    return space.steps(played.plus), space.steps(played.minus)


def test_theta_counts_steps_of_the_active_parameters_in_file_order():
    assert [p.name for p in SPACE.active] == ["margin", "depth", "ratio", "real"]
    np.testing.assert_allclose(SPACE.start(), [10, 3, 7.5, 10])
    np.testing.assert_allclose(SPACE.lower, [2.5, 1, 5, 4])
    np.testing.assert_allclose(SPACE.upper, [20, 6, 15, 16])
    np.testing.assert_allclose(SPACE.unit, [0.05, 1, 0.01, 0])
    assert SPACE.natural(SPACE.start())["frozen"] == 7


@unhurried
@given(vectors(st.floats(-100, 100)))
def test_natural_and_steps_undo_each_other(theta):
    np.testing.assert_allclose(SPACE.steps(SPACE.natural(theta)), theta, atol=1e-12)


@unhurried
@given(vectors(st.floats(0, 1)), vectors(offsets), vectors(draws))
def test_what_is_played_is_playable_and_symmetric(fractions, offset, uniform):
    played = SPACE.realise(inside(SPACE, fractions), offset, uniform)
    for side in (played.plus, played.minus):
        assert list(side) == [p.name for p in SPACE.parameters]
        assert side["frozen"] == 7
        for p in SPACE.active:
            assert p.minimum <= side[p.name] <= p.maximum
            assert side[p.name] == p.nearest(side[p.name])
    assert isinstance(played.plus["depth"], int)
    difference = np.subtract(*both(SPACE, played))
    wanted = np.sign(offset) * np.maximum(2 * np.abs(offset), SPACE.unit)
    wanted = np.clip(np.where(offset == 0, 0, wanted), -(SPACE.upper - SPACE.lower), SPACE.upper)
    assert np.all(np.abs(difference) <= SPACE.upper - SPACE.lower + 1e-9)
    room = 2 * np.abs(offset) <= SPACE.upper - SPACE.lower
    assert np.all(np.abs(difference - wanted)[room] <= SPACE.unit[room] + 1e-9)
    assert np.all(np.sign(difference) == np.sign(offset))


@settings(deadline=None, max_examples=25)
@given(st.floats(1, 6), st.floats(0.5, 2))
def test_rounding_is_right_on_average(centre, offset):
    space = Space((DEPTH,))
    grid = (np.arange(200) + 0.5) / 200
    asked = np.array([centre]), np.array([offset])
    played = [both(space, space.realise(*asked, np.array([u]))) for u in grid.tolist()]
    mean = np.mean([plus - minus for plus, minus in played])
    assert mean == pytest.approx(min(2 * offset, 5), abs=1 / 100)
    assert np.mean(played) == pytest.approx(np.clip(centre, 1 + offset, 6 - offset), abs=1 / 100)


@pytest.mark.parametrize(
    ("centre", "offset", "plus", "minus"), [(20.0, 1.0, 400, 360), (10.0, -50.0, 50, 400)]
)
def test_at_a_bound_the_centre_gives_way_and_not_the_difference(centre, offset, plus, minus):
    """Only a range that is narrower than twice the offset is played from end to end."""
    played = Space((MARGIN,)).realise(np.array([centre]), np.array([offset]), np.array([0.9]))
    assert (played.plus["margin"], played.minus["margin"]) == (plus, minus)


@unhurried
@given(
    vectors(st.floats(0, 1)), vectors(offsets), vectors(draws), st.sampled_from([0.25, 2, 8, 1024])
)
def test_the_unit_a_continuous_parameter_is_written_in_does_not_matter(
    fractions, offset, uniform, factor
):
    numbers = ("value", "minimum", "maximum", "step")
    scaled = replace(REAL, **{name: getattr(REAL, name) * factor for name in numbers})
    found = []
    for p in (REAL, scaled):
        space = Space(tuple(replace(p, name=f"p{i}") for i in range(4)))
        found.append(both(space, space.realise(inside(space, fractions), offset, uniform)))
    np.testing.assert_array_equal(*found)


def test_a_value_is_exact_on_its_grid():
    """What was written on the grid counts as on it, though 0.29 * 100 is less than 29."""
    assert RATIO.nearest(0.7504) == 0.75
    assert RATIO.to_engine(0.29) == 290
    free = replace(RATIO, scale=None)
    assert [free.to_engine(x) for x in (0.1 + 0.2, 1.3983208308938992)] == [0.3, 1.3983208308938992]
    assert RATIO.on_grid(289) == 0.289
    values = {"margin": 200, "frozen": 7, "depth": 3, "ratio": 0.75, "real": 2.5}
    assert SPACE.options(values) == {**values, "ratio": 750}
    rounded = SPACE.rounded(np.array([10.02, 3.5, 7.5049, 10.1]))
    assert rounded == {**values, "depth": 4, "real": 2.525}
    hundredths = replace(RATIO, scale=100)
    assert hundredths.below(0.29, strictly=False) == 0.29
    assert hundredths.below(0.29, strictly=True) == 0.28
    assert hundredths.above(0.07, strictly=False) == 0.07
    assert hundredths.above(0.07, strictly=True) == 0.08


def test_a_space_survives_json_to_the_bit():
    places = ((Location.parse("a.rs::m::X[3].1"), Knob.VALUE), (Location("A"), Knob.PER_INDEX))
    placed = (
        replace(DEPTH, name=f"p{i}", location=at, role=role) for i, (at, role) in enumerate(places)
    )
    space = Space((*SPACE.parameters, *placed), (Constraint.parse("depth <= frozen"),))
    assert Space.from_json(json.loads(json.dumps(space.to_json()))) == space


def test_differences_name_what_changed_and_ignore_values_that_move():
    moved = replace(MARGIN, value=211.5, group="search", note="hm", line=7)
    assert not [*differences(SPACE.fixed(), Space((FROZEN, moved, DEPTH, RATIO, REAL)).fixed())]
    wider, other = replace(MARGIN, maximum=500), replace(FROZEN, value=8)
    changed = Space(
        (wider, other, RATIO, replace(REAL, active=False), replace(REAL, name="x")),
        (Constraint("real", "margin"),),
    )
    assert [*differences(SPACE.fixed(), changed.fixed())] == [
        "constraint real < margin: the run has none, the files say one",
        "depth: the run has one, the files say none",
        "frozen.frozen: the run has 7, the files say 8",
        "margin.maximum: the run has 400, the files say 500",
        "real.frozen: the run has none, the files say 2.5",
        "x: the run has none, the files say one",
    ]


ORDERED = Space(
    (
        parameter("reduction", 7, 3, 12, 1),
        parameter("minimum", 10, 4, 28, 1),
        parameter("ceiling", 20, 6, 30, 1),
    ),
    (Constraint.parse("reduction < minimum"), Constraint.parse("ceiling >= minimum")),
)


@unhurried
@given(vectors(st.floats(0, 1), 3), vectors(st.floats(-9, 9), 3), vectors(draws, 3))
def test_constraints_hold_for_plus_minus_and_base(fractions, offset, uniform):
    centre = inside(ORDERED, fractions)
    played = ORDERED.realise(centre, offset, uniform)
    for values in (played.plus, played.minus, ORDERED.rounded(centre)):
        assert all(constraint.holds(values) for constraint in ORDERED.constraints)
        assert all(p.minimum <= values[p.name] <= p.maximum for p in ORDERED.parameters)


@unhurried
@given(st.floats(0.5, 1.5), st.floats(0, 9), st.integers(0, 9))
def test_constraints_hold_between_grids_of_different_units(ratio, real, whole):
    first, last = parameter("whole", 1, 0, 9, 1), parameter("real", 2, 0, 9, 1, integral=False)
    rules = (Constraint("ratio", "real"), Constraint("whole", "ratio", strict=False))
    space = Space((first, RATIO, last), rules)
    values = space.rounded(np.array([whole, ratio * 10, real]))
    assert values["whole"] <= values["ratio"] < values["real"]


def test_a_frozen_parameter_never_gives_way():
    frozen = replace(ORDERED.parameters[0], active=False, value=9)
    space = Space((frozen, *ORDERED.parameters[1:]), ORDERED.constraints)
    assert space.rounded(np.array([4.0, 6.0])) == {"reduction": 9, "minimum": 10, "ceiling": 10}


def test_impossible_constraints_are_recognised():
    narrow = (replace(DEPTH, minimum=5), replace(DEPTH, name="other", maximum=5))
    low, high = feasible(narrow, (Constraint("depth", "other"),))["depth"]
    assert low > high
    round_trip = (Constraint("a", "b"), Constraint("b", "c", strict=False), Constraint("c", "a"))
    assert set(circle((*round_trip, Constraint("a", "x")))) == {"a", "b", "c"}
    assert circle((Constraint("a", "a"),)) == ("a",)
    assert circle((Constraint("a", "b"), Constraint("a", "c"))) == ()


def knob(name, location, **more):
    return parameter(name, 1, -999, 999, 1, location=location, **more)


def source(*numbers):
    """A reader of sources in which every array holds `numbers`."""
    return lambda array: {array.at(i): number for i, number in enumerate(numbers)}


def test_a_constant_takes_its_value_scaled_and_two_knobs_fill_an_array_of_its_kind():
    scaled = knob("lmr", Location("LMR"), integral=False, scale=1000)
    assert assignments([scaled], {"lmr": 0.75}, source()) == {Location("LMR"): 750}
    array = Location("LMP")
    roles = {"base": Knob.BASE, "slope": Knob.PER_INDEX}
    both = [knob(name, array, role=role, integral=False) for name, role in roles.items()]
    written = assignments(both, {"base": 8.4, "slope": 4.2}, source(0, 0, 0))
    assert written == {array.at(0): 8, array.at(1): 13, array.at(2): 17}
    real = assignments(both, {"base": 8.4, "slope": 4.2}, source(0.0, 0.0))
    assert [*real.values()] == pytest.approx([8.4, 12.6])


def test_two_parameters_may_not_write_one_number():
    clashing = "A A", "A[1] A", "m::A A"
    others = "A B", "A[1] A[2]", "m::A n::A", "x.rs::A A"
    for places in (*clashing, *others):
        both = [knob(place, Location.parse(place)) for place in places.split()]
        assert bool(list(conflicts(both))) is (places in clashing), places
    # the two knobs of an array are partners
    roles = [Knob.BASE, Knob.PER_INDEX, Knob.PER_INDEX]
    three = [knob(f"k{i}", Location("T"), role=role) for i, role in enumerate(roles)]
    assert [(a.name, b.name) for a, b in conflicts(three)] == [("k1", "k2")]
