"""What builds and games take here: measured by past runs of the database, or now by a short trial;
and the size of a demo that takes as long as it may here.

A trial builds the engines of one iteration and lets them play a few games with all slots.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from subprocess import PIPE
from typing import Any

import click
import tomlkit

from spsa.cli.common import actor
from spsa.config import Config
from spsa.core.builds import Builds
from spsa.core.game_settings import Book, DrawRule, GameSettings, ResignRule, TimeControl, TimeKind
from spsa.core.game_settings.numbers import MOST_CENTIPAWNS, MOST_MOVES
from spsa.core.params import Space
from spsa.core.stored_json import as_written
from spsa.db import migrate
from spsa.db.run_status import MEASURED
from spsa.db.store import Costs, Run, Store, open_store
from spsa.errors import InvalidInput, TuningError
from spsa.lab.planning.plan_inputs import Capacity, Shape, pace
from spsa.master.build_queue import BuildThreads
from spsa.master.delivery import Sides
from spsa.master.delivery_setup import delivery_of, delivery_settings
from spsa.text import LINE_LENGTH, printable

FEWEST_GAMES = 50
"""Below, assumptions are better than what was measured."""

_RUNS = 20  # the youngest of a database, which are looked at
_TRIALS = 100
_SECONDS = ("build_seconds", "game_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds that the two engines of an iteration take to build, and one game of a slot."""

    builds: float
    game: float
    source: str = "measured now"


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
        with open_store(config.database_url) as store:
            return _of_runs(store, config)
    except InvalidInput:
        raise
    except TuningError:
        return Measured()  # no database yet is the usual case before the first run


def _of_runs(store: Store, config: Config) -> Measured:
    runs = list(reversed(store.runs()))[:_RUNS]
    costs = [(run, store.costs(run.id)) for run in runs]
    enough = [(run, cost) for run, cost in costs if cost.games >= FEWEST_GAMES]
    alike = next(((run, cost) for run, cost in enough if _plays_alike(run, config)), None)
    speeds = [worker.nps for worker in store.workers() if worker.nps]
    builds = (_usual(run) for run in runs if _builds_alike(run, config))
    return Measured(
        costs=None if alike is None else alike[1],
        book=None if alike is None else alike[0].terms.book,
        plies=next((cost.plies / cost.games for _, cost in enough if cost.plies), None),
        nps=sum(speeds) / len(speeds) if speeds else None,
        builds=next((seconds for seconds in builds if seconds is not None), None),
        trial=next(_trials(store, config), None),
    )


def _plays_alike(run: Run, config: Config) -> bool:
    return run.terms.time_control == config.terms.time_control


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
        "time_control": config.terms.to_json()["time_control"],
    }


def store_trial(config: Config, speed: Speed, slots: int) -> None:
    """Store a trial for later plans, in a database that is made if there is none."""
    seconds = dict(zip(_SECONDS, (speed.builds, speed.game), strict=True))
    migrate.upgrade(config.database_url)
    with open_store(config.database_url) as store:
        store.add_measurement(actor(), {**_conditions(config), **seconds, "slots": slots})


def _usual(run: Run) -> float | None:
    return Builds.from_json(run.builds).usual


def trial(
    config: Config,
    space: Space,
    slots: int,
    stopping: threading.Event,
    *,
    rounds: int,
    games_a_slot: int,
) -> Speed:
    """Build engines, `rounds` times, and let the last ones play; the last build counts.

    The second round has warm caches, as all iterations of a run but the first.

    Raises:
        BuildFailed: with the compiler's words.
        TuningError: the engines cannot play.
        click.Abort: `stopping` was set before the end.
    """
    delivery, _ = delivery_of(config, space, delivery_settings(config), None)
    builds = 0.0
    with BuildThreads(delivery) as threads:
        for steps in range(rounds, 0, -1):
            began = time.monotonic()
            sides = _sides(threads, space, steps, stopping)
            builds = time.monotonic() - began
    return Speed(builds=builds, game=_game_seconds(sides, config, slots, games_a_slot, stopping))


def _sides(threads: BuildThreads, space: Space, steps: float, stopping: threading.Event) -> Sides:
    """Two engines whose values lie so many steps to either side of the start."""
    start = space.start()
    building = threads.start(space.rounded(start + steps), space.rounded(start - steps))
    _wait(building.done, stopping)
    return building.result()


def _game_seconds(
    sides: Sides, config: Config, slots: int, games_a_slot: int, stopping: threading.Event
) -> float:
    """Seconds that a slot takes for a game while all slots play."""
    games = 2 * ceil(games_a_slot * slots / 2)
    players = [
        Player(path=str(engine.path), options=options)
        for engine, options in (
            (sides.plus, sides.plus_options),
            (sides.minus, sides.minus_options),
        )
    ]
    found = short_match(players, config.terms, slots, games, config.path.parent, stopping)
    return float(found["seconds"]) * slots / games


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """An engine of a short match: its binary, and the options that only it gets."""

    path: str
    options: Mapping[str, str]


def short_match(
    players: Sequence[Player],
    terms: GameSettings,
    slots: int,
    games: int,
    folder: Path,
    stopping: threading.Event,
) -> dict[str, Any]:
    """What `compete --json` says of a match of two players, started in `folder`.

    Raises:
        TuningError: they cannot play.
        click.Abort: `stopping` was set before the end.
    """
    command = [sys.executable, "-m", "worker", *(player.path for player in players), "--json"]
    command += ["--games", str(games), "-c", str(slots), "--force", *_game_flags(terms)]
    command += _options("--option", terms.common_options)
    for number, player in enumerate(players, start=1):
        command += _options(f"--option{number}", player.options)
    with subprocess.Popen(command, cwd=folder, stdout=PIPE, stderr=PIPE) as match:
        try:
            _wait(lambda: match.poll() is not None, stopping)
        finally:
            match.terminate()
        output, errors = match.communicate()
    found = json.loads(output) if output else {"failure": errors.decode(errors="replace").strip()}
    if found["failure"] is not None:
        raise TuningError(f"no games could be played: {printable(found['failure'], LINE_LENGTH)}")
    return dict(found)


def _game_flags(terms: GameSettings) -> Iterator[str]:
    """The game settings as options of `compete`; a rule that is off is one that nothing meets."""
    rules = terms.adjudication
    draw = rules.draw or DrawRule(move_number=MOST_MOVES)
    resign = rules.resign or ResignRule(score=MOST_CENTIPAWNS)
    yield from _time_flags(terms.time_control)
    yield from ("--draw", str(draw.move_number), str(draw.count), str(draw.score))
    yield from ("--resign", str(resign.count), str(resign.score))
    yield from ("--max-moves", str(rules.max_moves or MOST_MOVES), "--book", terms.book.name)
    if terms.book.plies is not None:
        yield from ("--plies", str(terms.book.plies))


def _time_flags(control: TimeControl) -> Iterator[str]:
    """The time control as options of `compete`; of a range, its middle."""
    mean = (control.low + control.high) / 2
    match control.kind:
        case TimeKind.MOVETIME:
            yield from ("--movetime", f"{mean:g}")
        case TimeKind.CLOCK:
            moves = f"{control.moves}/" if control.moves else ""
            yield from ("--tc", f"{moves}{mean:g}+{control.increment:g}")
        case TimeKind.NODES:
            yield from ("--nodes", str(round(mean)))
        case TimeKind.DEPTH:
            yield from ("--depth", str(round(mean)))


def _options(flag: str, options: Mapping[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (flag, f"{name}={value}")]


def _wait(done: Callable[[], bool], stopping: threading.Event) -> None:
    while not done():
        if stopping.wait(0.1):
            raise click.Abort


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
