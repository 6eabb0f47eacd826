"""`spsa-master plan`: from a user's files and past measurements to a plan."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from spsa.algorithms.tuning import problem_of
from spsa.builds.builder import BUILD_SECONDS, NODES_PER_SECOND, last_measured
from spsa.cli.common import json_option, with_both
from spsa.config.settings import Config
from spsa.core.game_settings import Book, TimeKind
from spsa.core.params import Space
from spsa.core.scoring import Tally, null_variance
from spsa.db import Store
from spsa.db.read_queries import TimeControlGames
from spsa.errors import InvalidInput, TuningError
from spsa.live_display import counting, working
from spsa.master.delivery_setup import delivery_settings, usual_builds, work_folder
from spsa.master.start import checked_space
from spsa.output import echo_json
from spsa.planning.plan import most_designs
from spsa.planning.plan import plan as planned
from spsa.planning.plan_inputs import (
    ASSUMED_ELO_TO_GAIN,
    USUAL_BUILD_SECONDS,
    USUAL_PLIES,
    Capacity,
    Openings,
    PlanInputs,
    Shape,
    adapted,
    game_seconds,
    mean_game_seconds,
    time_control_costs,
)
from spsa.planning.recovery import RunDesign, coarser
from spsa.report.plan import planned_json, planned_text
from spsa.report.table import terminal

_USUAL_NPS = 1e6
_USUAL_DRAWS = 0.6
_SEED = 1
_DISTANCE = "the best values lie 0.4 to 2.5 steps from the start: assumed"

MIN_GAMES = 50
"""Below, assumptions are better than what was measured."""

_RUNS = 20  # the youngest of a database, which are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGames:
    """What past runs tell, None or nothing where they tell nothing.

    `parts` are the games of each of the same time controls, from `book`; `builds` are the seconds
    of an iteration's builds by the same command.
    """

    parts: Sequence[TimeControlGames] = ()
    book: Book | None = None
    builds: float | None = None

    @property
    def tally(self) -> Tally:
        return sum((one.tally for one in self.parts), Tally())


def measured(config: Config) -> PastGames:
    """What the youngest runs of the database have measured; nothing without a database."""
    own, delivery = config.game_settings, delivery_settings(config)
    try:
        with Store(config.database.url) as store:
            runs = list(reversed(store.runs()))[:_RUNS]
            alike = (
                PastGames(parts=store.time_control_games(run.id), book=run.game_settings.book)
                for run in runs
                if own.plays_as(run.game_settings)
            )
            found = next((one for one in alike if one.tally.games >= MIN_GAMES), PastGames())
    except InvalidInput:
        raise
    except TuningError:
        return PastGames()  # no database yet is the usual case before the first run
    same = (run.builds for run in runs if run.settings.get("delivery") == delivery)
    usual = (builds.usual for builds in same if builds.usual is not None)
    return replace(found, builds=next(usual, None))


def known(
    config: Config, space: Space, said: Mapping[str, Any]
) -> tuple[PlanInputs, tuple[str, ...]]:
    """What to ask `plan`, and where its figures come from.

    What options have said goes before what was measured, and that before guesses.
    """
    past, nps = measured(config), last_measured(work_folder(config), NODES_PER_SECOND)
    seconds, time_source = _seconds(config, said["game_seconds"], past, nps)
    draws, draws_source = _draws(said["draws"], past)
    builds, builds_source = _builds(config, said["build_seconds"], past)
    capacity = Capacity(
        concurrency=said["concurrency"] or os.cpu_count() or 1,
        build_seconds=builds,
        builders=config.build.at_once or usual_builds(),
    )
    shape = _shape(config, capacity, seconds)
    design, merged = coarser(
        RunDesign(
            algorithm=config.spsa.algorithm,
            settings=config.spsa.settings,
            problem=problem_of(space, iterations=shape.iterations, pairs=shape.games // 2),
            in_flight=shape.in_flight,
            grows=shape.adapts,
        )
    )
    inputs = PlanInputs(
        space=space,
        design=design,
        shape=shape,
        capacity=capacity,
        seconds=seconds,
        draw_rate=draws,
        openings=_openings(config, said["draws"], past),
        elos_to_gain=ASSUMED_ELO_TO_GAIN if said["elo"] is None else (said["elo"],),
        seed=_SEED,
        time_controls=tuple(
            time_control_costs(
                config.game_settings,
                config.games.games_per_iteration,
                seconds,
                _seconds_of_each(config, past, nps),
            )
        ),
    )
    return inputs, (
        *(time_source, draws_source, _DISTANCE, *builds_source),
        *([f"{merged} iterations are simulated as one, with one move"] if merged > 1 else ()),
    )


def _shape(config: Config, capacity: Capacity, seconds: float | None) -> Shape:
    """How the files cut the run; iterations in flight that follow the fleet are what it needs."""
    games, in_flight = config.games, config.games.iterations_in_flight
    shape = Shape(
        iterations=config.spsa.max_iterations,
        games=games.games_per_iteration,
        batch_games=games.batch_size,
        adapts=in_flight == "auto",
    )
    if in_flight == "auto":
        return adapted(shape, capacity, seconds)
    return replace(shape, in_flight=in_flight)


def _seconds(
    config: Config, said: float | None, past: PastGames, nps: float | None
) -> tuple[float | None, str]:
    """Seconds of a game, None if unknown, and how they are known."""
    if said is not None:
        return said, f"a game takes {said:.3g} s: as you say"
    if games := past.tally.games:
        seconds = sum(one.seconds for one in past.parts) / games
        return seconds, f"a game takes {seconds:.3g} s: measured over {games:,} games"
    settings = config.game_settings
    guess = mean_game_seconds(settings, nps or _USUAL_NPS)
    if guess is None:
        return None, "the duration of a fixed-depth game is unknown: use --game-seconds"
    how = f"a game takes {guess:.3g} s: {USUAL_PLIES:.0f} plies assumed"
    if any(one.kind is TimeKind.NODES for one in settings.played):
        known = "assumed" if nps is None else "as `init` measured"
        how += f", at {nps or _USUAL_NPS:,.0f} nodes a second {known}"
    return guess, how


def _builds(config: Config, said: float | None, past: PastGames) -> tuple[float, tuple[str, ...]]:
    """Seconds of an iteration's two builds, and how they are known; none where nothing is built."""
    if config.delivery.engine is not None:
        return 0.0, ()
    if said is not None:
        return said, ()
    if past.builds is not None:
        return past.builds, (f"two builds take {past.builds:.3g} s: measured by the last run",)
    if (seconds := last_measured(work_folder(config), BUILD_SECONDS)) is not None:
        return seconds, (f"two builds take {seconds:.3g} s, as the last one here: measured",)
    found = f"two builds take {USUAL_BUILD_SECONDS:g} s: assumed (--build-seconds)"
    return USUAL_BUILD_SECONDS, (found,)


def _seconds_of_each(config: Config, past: PastGames, nps: float | None) -> list[float | None]:
    """Seconds of a game by time control."""
    played = config.game_settings.played
    if len(past.parts) == len(played):
        return [one.seconds / one.tally.games for one in past.parts]
    return [game_seconds(one, nps or _USUAL_NPS) for one in played]


def _draws(said: float | None, past: PastGames) -> tuple[float, str]:
    if said is not None:
        return said, f"{said:.0%} draws: as you say"
    if not (pairs := past.tally.pairs):
        return _USUAL_DRAWS, f"{_USUAL_DRAWS:.0%} draws: assumed (--draws)"
    # the d of tau^2 = 2 (1 - d), on which the noise depends
    # of several time controls as their results are weighed
    known = sum(one.tally.pairs / null_variance(one.tally) for one in past.parts)
    draws = min(max(1 - pairs / known / 2, 0.0), 0.99)
    return draws, f"as noisy as {draws:.0%} draws, by the spread of {pairs:,} pairs: measured"


def _openings(config: Config, said: float | None, past: PastGames) -> Openings | None:
    """What the draw rate says of the run's book; None if no games were played from it."""
    if said is not None:
        return Openings.of(said)
    if not past.tally.games or past.book != config.game_settings.book:
        return None
    return Openings.of(past.tally.draws / past.tally.games, null_variance(past.tally))


_ABOVE_0 = click.FloatRange(min=0.0, min_open=True)


@click.command()
@with_both
@click.option(
    "-c", "--concurrency", type=click.IntRange(1, 100_000), help="Games at a time, on all machines."
)
@click.option("--elo", type=_ABOVE_0, help="Elo there is to gain; default: 5, 20 and 60.")
@click.option(
    "--draws",
    type=click.FloatRange(0.0, 1.0, max_open=True),
    help=f"Draw rate, 0..1; default: as measured, else {_USUAL_DRAWS:g}.",
)
@click.option("--game-seconds", type=_ABOVE_0, help="Of one game; default: as measured.")
@click.option(
    "--build-seconds",
    type=click.FloatRange(min=0.0),
    help=f"Of an iteration's two builds; default: as measured, else {USUAL_BUILD_SECONDS:g}.",
)
@json_option
def plan(config: Config, as_json: bool, **said: Any) -> None:
    """Predict the duration and the Elo gain of a run, before anything is played.

    Simulates the rule of config.toml on synthetic engines that have this Elo to gain. Builds and
    games take as long as those of past runs did.
    """
    with working("checking params.toml against the engine"):
        space = checked_space(config)
    inputs, sources = known(config, space, said)
    with counting("tuning synthetic engines", most_designs(inputs)) as advance:
        answer = planned(replace(inputs, simulated=lambda: advance(1)))
    if as_json:
        echo_json(planned_json(inputs, answer, sources))
    else:
        terminal().print(planned_text(inputs, answer, sources))
