"""Scales, ticks and paths of the charts, and numbers that JSON does not have."""

from math import inf, nan

from hypothesis import given
from hypothesis.strategies import floats, integers, lists

from spsa.report.status import plain
from spsa.server.charts import Scale, band, labels, polyline, span, ticks

ORDINARY = floats(-1e12, 1e12)


@given(lists(ORDINARY | floats(), max_size=8))
def test_a_span_is_never_empty(values: list[float]) -> None:
    low, high = span(values)
    assert low < high
    assert all(low <= value <= high for value in values if abs(value) < 1e300)


@given(ORDINARY, floats(1e-3, 1e9), integers(2, 9))
def test_ticks_are_round_few_and_inside(low: float, width: float, most: int) -> None:
    high = low + width
    if not low < high:
        return
    found = ticks(low, high, most)
    assert len(found) <= most + 1
    slack = 1e-9 * max(abs(low), abs(high))
    assert all(low - slack <= tick <= high + slack for tick in found)


def test_ticks_of_an_ordinary_axis() -> None:
    assert ticks(0.0, 100.0, 5) == (0, 20, 40, 60, 80, 100)
    assert ticks(-4.9, 4.2, 5) == (-4, -2, 0, 2, 4)
    assert ticks(0.0, 2.0, 5, least=1.0) == (0, 1, 2), "there is no half iteration"


def test_labels_of_an_axis_have_the_same_decimals() -> None:
    assert labels(ticks(0.0, 0.02, 5)) == ("0.000", "0.005", "0.010", "0.015", "0.020")
    assert labels(ticks(-0.25, 0.15, 5)) == ("-0.2", "-0.1", "0.0", "0.1")
    assert labels(ticks(1_235_000.0, 1_265_000.0, 4)) == ("1240000", "1250000", "1260000")
    assert labels((0.0, 1e-9)) == ("0", "1e-09"), "there is no room for nine zeros"
    assert labels((5.0,)) == ("5",) and labels(()) == ()


def test_a_scale_keeps_values_within_its_edges() -> None:
    scale = Scale(0.0, 10.0, 200.0, 0.0)
    assert [scale(value) for value in (0.0, 5.0, 10.0, 20.0, -1.0)] == [200, 100, 0, 0, 200]


def test_paths() -> None:
    assert polyline([0, 1.5], [2, 3]) == "M0,2L1.5,3"
    assert band([0, 1], [5, 6], [3, 4]) == "M0,3L1,4L1,6L0,5Z"


def test_json_has_no_infinite_numbers() -> None:
    assert plain({"a": (inf, -inf, nan, 1.5, 2, True, None)}) == {
        "a": [None, None, None, 1.5, 2, True, None]
    }
