"""What builds and games take here by past runs and trials, and how large a demo may be."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit

from spsa.cli.common import actor
from spsa.cli.trial import Speed
from spsa.config import Config
from spsa.core.builds import Builds
from spsa.core.game_settings import Book
from spsa.core.stored_json import as_written
from spsa.db import Store, migrate
from spsa.db.read_queries import Costs
from spsa.db.run_queries import MEASURED
from spsa.db.tables import Run
from spsa.errors import InvalidInput, TuningError
from spsa.master.delivery_setup import delivery_settings
from spsa.planning.plan_inputs import Capacity, Shape, pace

MIN_GAMES = 50
"""Below, assumptions are better than what was measured."""

_RUNS = 20  # the youngest of a database, which are looked at
_TRIALS = 100
_SECONDS = ("build_seconds", "game_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What past runs and trials tell, None where they tell nothing.

    `costs` are those of games with the same time control, from `book`, `plies` those of any game;
    `nps` are a slot's nodes a second, `builds` the seconds of an iteration's builds by the same
    command. `trial` is the last one with the same command and time control.
    """

    costs: Costs | None = None
    book: Book | None = None
    plies: float | None = None
    nps: float | None = None
    builds: float | None = None
    trial: Speed | None = None


def measured(config: Config) -> Measured:
    """What the youngest runs of the database have measured; nothing without a database."""
    try:
        with Store(config.database.url) as store:
            return _of_runs(store, config)
    except InvalidInput:
        raise
    except TuningError:
        return Measured()  # no database yet is the usual case before the first run


def _of_runs(store: Store, config: Config) -> Measured:
    runs = list(reversed(store.runs()))[:_RUNS]
    costs = [(run, store.costs(run.id)) for run in runs]
    enough = [(run, cost) for run, cost in costs if cost.tally.games >= MIN_GAMES]
    alike = next(((run, cost) for run, cost in enough if _plays_alike(run, config)), None)
    speeds = [worker.nps for worker in store.workers() if worker.nps]
    builds = (_usual(run) for run in runs if _builds_alike(run, config))
    return Measured(
        costs=None if alike is None else alike[1],
        book=None if alike is None else alike[0].game_settings.book,
        plies=next((cost.plies / cost.tally.games for _, cost in enough if cost.plies), None),
        nps=sum(speeds) / len(speeds) if speeds else None,
        builds=next((seconds for seconds in builds if seconds is not None), None),
        trial=next(_trials(store, config), None),
    )


def _plays_alike(run: Run, config: Config) -> bool:
    return run.game_settings.time_control == config.game_settings.time_control


def _builds_alike(run: Run, config: Config) -> bool:
    return run.settings.get("delivery") == delivery_settings(config)


def _trials(store: Store, config: Config) -> Iterator[Speed]:
    """The stored trials with the same builds and time control, the last one first."""
    alike = _conditions(config)
    for event in reversed(store.events(None, _TRIALS, kinds=(MEASURED,))):
        with as_written("a column `detail`"):
            if all(event.detail[name] == value for name, value in alike.items()):
                builds, game = (float(event.detail[name]) for name in _SECONDS)
                source = f"measured by `plan --measure` on {event.at:%Y-%m-%d}"
                yield Speed(builds=builds, game=game, source=source)


def _conditions(config: Config) -> dict[str, Any]:
    return {
        "delivery": delivery_settings(config),
        "time_control": config.game_settings.to_json()["time_control"],
    }


def store_trial(config: Config, speed: Speed, slots: int) -> None:
    """Store a trial for later plans, in a database that is made if there is none."""
    seconds = dict(zip(_SECONDS, (speed.builds, speed.game), strict=True))
    migrate.upgrade(config.database.url)
    with Store(config.database.url) as store:
        store.add_measurement(actor(), {**_conditions(config), **seconds, "slots": slots})


def _usual(run: Run) -> float | None:
    return Builds.from_json(run.builds).usual


_BETWEEN_SECONDS = 1.0  # from the last game of an iteration to its step and the next build


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Iterations of a demo, games of each, and games of the match at its end."""

    iterations: int
    games: int
    match_games: int


SIZES = (
    Size(iterations=48, games=32, match_games=400),
    Size(iterations=36, games=24, match_games=300),
    Size(iterations=24, games=24, match_games=240),
    Size(iterations=20, games=20, match_games=200),
    Size(iterations=16, games=20, match_games=160),
)
"""From the whole demo to the smallest that shows its gain.

`pytest tests/cli/test_demo_size.py -s` prints the part of the Elo that each recovers on simulated
engines: 0.98, 0.98, 0.95, 0.92 and 0.86 on average.
"""


def chosen_size(speed: Speed, slots: int, batch_games: int, seconds: float) -> Size:
    """The largest size that ends within `seconds`, or else the smallest."""
    fits = (size for size in SIZES if _seconds(size, speed, slots, batch_games) <= seconds)
    return next(fits, SIZES[-1])


def _seconds(size: Size, speed: Speed, slots: int, batch_games: int) -> float:
    shape = Shape(
        iterations=size.iterations, games=size.games, batch_games=batch_games, in_flight=1
    )
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
