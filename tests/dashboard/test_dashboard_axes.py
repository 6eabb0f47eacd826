"""Scales, ticks and paths of the charts, and what is masked in texts."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis.strategies import floats, integers, lists

from spsa.dashboard.axes import Scale, band, polyline, span, ticks
from spsa.dashboard.json_values import plain, without_passwords

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


def test_a_scale_keeps_values_within_its_edges() -> None:
    scale = Scale(0.0, 10.0, 200.0, 0.0)
    assert [scale(value) for value in (0.0, 5.0, 10.0, 20.0, -1.0)] == [200, 100, 0, 0, 200]


def test_paths() -> None:
    assert polyline([0, 1.5], [2, 3]) == "M0,2L1.5,3"
    assert band([0, 1], [5, 6], [3, 4]) == "M0,3L1,4L1,6L0,5Z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://u:geheim@h/d failed", "postgresql://u:***@h/d failed"),
        ("x://:p@h and y://a:b@h", "x://:***@h and y://a:***@h"),
        ("x://u:a/b@c@h/d", "x://u:***@h/d"),
        ("x://h/d?password=geheim&sslmode=require", "x://h/d?password=***&sslmode=require"),
        ("http://h:8080/path", "http://h:8080/path"),
        ("nothing to hide: a@b", "nothing to hide: a@b"),
    ],
)
def test_passwords_of_urls_are_masked(text: str, shown: str) -> None:
    assert without_passwords(text) == shown


def test_json_has_no_infinite_numbers() -> None:
    assert plain({"a": (inf, -inf, nan, 1.5, 2, True, None)}) == {
        "a": [None, None, None, 1.5, 2, True, None]
    }
