"""How much the demo plays: as much as this machine can in the time that it is given."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit

from spsa.cli.measuring import Speed
from spsa.lab.planning.plan_inputs import Capacity, Shape, pace

_BETWEEN_SECONDS = 1.0  # from the last game of an iteration to its step and the next build


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Iterations of a demo, games of each, and games of the match at its end."""

    iterations: int
    games: int
    match_games: int


SIZES = (
    Size(iterations=24, games=60, match_games=400),
    Size(iterations=20, games=48, match_games=300),
    Size(iterations=16, games=48, match_games=240),
    Size(iterations=12, games=40, match_games=200),
    Size(iterations=10, games=32, match_games=120),
)
"""From the whole demo to the smallest that shows its gain.

`pytest tests/cli/test_demo_size.py -s` prints the part of the Elo that each recovers on simulated
engines: 0.92, 0.87, 0.79, 0.73 and 0.65 on average.
"""


def chosen_size(speed: Speed, slots: int, batch_games: int, seconds: float) -> Size:
    """The largest size that ends within `seconds`, or else the smallest."""
    fits = (size for size in SIZES if _seconds(size, speed, slots, batch_games) <= seconds)
    return next(fits, SIZES[-1])


def _seconds(size: Size, speed: Speed, slots: int, batch_games: int) -> float:
    shape = Shape(iterations=size.iterations, games=size.games, batch_games=batch_games, depth=1)
    fleet = Capacity(concurrency=slots, build_seconds=speed.builds + _BETWEEN_SECONDS)
    match = replace(shape, iterations=1, games=size.match_games)
    return pace(shape, fleet, speed.game).run + pace(match, fleet, speed.game).run


def write_size(path: Path, size: Size) -> None:
    """Write a size into the demo's config.toml."""
    document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["games"]["games_per_iteration"] = size.games
    document["spsa"]["max_iterations"] = size.iterations
    document["validation"]["games"] = size.match_games
    path.write_text(tomlkit.dumps(document), encoding="utf-8")
