"""A trial: builds the engines of one iteration and lets them play a few games with all slots."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from subprocess import PIPE
from typing import Any

import click

from spsa.config import Config
from spsa.core.game_settings import DrawRule, GameSettings, ResignRule, TimeControl, TimeKind
from spsa.core.game_settings.numbers import MAX_CENTIPAWNS, MAX_MOVES
from spsa.core.params import Space
from spsa.db.master_queries import Sides
from spsa.errors import TuningError
from spsa.master.build_queue import BuildThreads
from spsa.master.delivery_setup import delivery_of, delivery_settings
from spsa.text import LINE_LENGTH, printable


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds that the two engines of an iteration take to build, and one game of a slot."""

    builds: float
    game: float
    source: str = "measured now"


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
    found = short_match(players, config.game_settings, slots, games, config.path.parent, stopping)
    return float(found["seconds"]) * slots / games


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """An engine of a short match: its binary, and the options that only it gets."""

    path: str
    options: Mapping[str, str]


def short_match(
    players: Sequence[Player],
    game_settings: GameSettings,
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
    command += ["--games", str(games), "-c", str(slots), "--force", *_game_flags(game_settings)]
    command += _options("--option", game_settings.common_options)
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


def _game_flags(game_settings: GameSettings) -> Iterator[str]:
    """The game settings as options of `compete`; a rule that is off is one that nothing meets."""
    rules = game_settings.adjudication
    draw = rules.draw or DrawRule(move_number=MAX_MOVES)
    resign = rules.resign or ResignRule(score=MAX_CENTIPAWNS)
    yield from _time_flags(game_settings.time_control)
    yield from ("--draw", str(draw.move_number), str(draw.count), str(draw.score))
    yield from ("--resign", str(resign.count), str(resign.score))
    yield from ("--max-moves", str(rules.max_moves or MAX_MOVES), "--book", game_settings.book.name)
    if game_settings.book.chess960:
        yield "--chess960"
    if game_settings.book.plies is not None:
        yield from ("--plies", str(game_settings.book.plies))


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
