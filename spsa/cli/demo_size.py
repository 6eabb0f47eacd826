"""How much the demo plays: as much as this machine can in the time that it is given."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from subprocess import PIPE
from typing import Any

import click
import tomlkit

from spsa.config import Config
from spsa.core.params import Space
from spsa.errors import TuningError
from spsa.lab.planning.question import Fleet, Shape, pace
from spsa.master.build_queue import BuildThreads
from spsa.master.delivery_setup import delivery_of, delivery_settings

_GAMES_A_SLOT = 4
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds that the two engines of an iteration take to build, and one game of a slot."""

    builds: float
    game: float


def chosen_size(speed: Speed, slots: int, batch_games: int, seconds: float) -> Size:
    """The largest size that ends within `seconds`, or else the smallest."""
    fits = (size for size in SIZES if _seconds(size, speed, slots, batch_games) <= seconds)
    return next(fits, SIZES[-1])


def _seconds(size: Size, speed: Speed, slots: int, batch_games: int) -> float:
    shape = Shape(iterations=size.iterations, games=size.games, batch_games=batch_games, depth=1)
    fleet = Fleet(concurrency=slots, build_seconds=speed.builds + _BETWEEN_SECONDS)
    match = replace(shape, iterations=1, games=size.match_games)
    return pace(shape, fleet, speed.game).run + pace(match, fleet, speed.game).run


def measured_speed(config: Config, space: Space, slots: int, stopping: threading.Event) -> Speed:
    """Build engines twice, the second time with warm caches as in a run, and let them play.

    Raises:
        BuildFailed: with the compiler's words.
        click.Abort: `stopping` was set meanwhile.
    """
    delivery, _ = delivery_of(config, space, delivery_settings(config), None)
    with BuildThreads(delivery) as threads:
        _engines(threads, space, 2.0, stopping)
        began = time.monotonic()
        engines = _engines(threads, space, 1.0, stopping)
        builds = time.monotonic() - began
    return Speed(builds=builds, game=_game_seconds(engines, config, slots, stopping))


def _engines(
    threads: BuildThreads, space: Space, steps: float, stopping: threading.Event
) -> Sequence[str]:
    """Two engines whose values lie so many steps to either side of the start."""
    start = space.start()
    building = threads.start(space.rounded(start + steps), space.rounded(start - steps))
    _wait(building.done, stopping)
    sides = building.result()
    return [str(sides.plus.path), str(sides.minus.path)]


def _game_seconds(
    engines: Sequence[str], config: Config, slots: int, stopping: threading.Event
) -> float:
    """Seconds that a slot takes for a game while all slots play."""
    games = 2 * ceil(_GAMES_A_SLOT * slots / 2)
    nodes = str(int(config.terms.time_control.low))
    command = [sys.executable, "-m", "worker", *engines, "--json", "--games", str(games)]
    command += ["--nodes", nodes, "-c", str(slots), "--force"]
    with subprocess.Popen(command, cwd=config.path.parent, stdout=PIPE, stderr=PIPE) as match:
        try:
            _wait(lambda: match.poll() is not None, stopping)
        finally:
            match.terminate()
        output, errors = match.communicate()
    try:
        return float(json.loads(output)["seconds"]) * slots / games
    except (ValueError, KeyError):
        raise TuningError(f"no games could be played: {errors.decode().strip()}") from None


def _wait(done: Callable[[], bool], stopping: threading.Event) -> None:
    while not done():
        if stopping.wait(0.1):
            raise click.Abort


def write_size(path: Path, size: Size) -> None:
    """Write a size into the demo's config.toml."""
    document: Any = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["games"]["games_per_iteration"] = size.games
    document["spsa"]["max_iterations"] = size.iterations
    document["validation"]["games"] = size.match_games
    path.write_text(tomlkit.dumps(document), encoding="utf-8")
