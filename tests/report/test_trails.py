"""A parameter's path in one line of a terminal."""

import pytest

from spsa.report.trails import Trail, gauge


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ((1.0,), ""),
        ((2.0, 2.0), "▁▁"),
        ((0.0, 7.0, 3.0), "▁█▄"),
        (tuple(float(i) for i in range(8)), "▁▂▃▄▅▆▇█"),
        ((-1e300, 1e300), "▁█"),
    ],
)
def test_a_sparkline_has_a_character_a_point(values: tuple[float, ...], drawn: str) -> None:
    assert Trail(values).sparkline == drawn


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        (0.0, "●──────────"),
        (50.0, "─────●─────"),
        (100.0, "──────────●"),
        (-9.0, "●──────────"),
    ],
)
def test_a_gauge_shows_the_place_between_the_bounds(value: float, drawn: str) -> None:
    assert gauge(value, 0.0, 100.0) == drawn
