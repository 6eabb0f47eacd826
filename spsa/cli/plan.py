"""`spsa-master plan`: from a user's files and past measurements to a plan."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from spsa.algorithms import rule_entry
from spsa.algorithms.tuning import problem_of
from spsa.cli.common import (
    BUILD_SECONDS,
    USUAL_DRAWS,
    Assumed,
    assumption_options,
    config_option,
    database_option,
    settings,
)
from spsa.cli.held_run import interruptible
from spsa.cli.measuring import Measured, measured, store_trial
from spsa.cli.trial import Speed, trial
from spsa.config import Config
from spsa.core.game_settings import TimeKind
from spsa.core.params import Space
from spsa.core.scoring import null_variance
from spsa.db.read_queries import Costs
from spsa.errors import TuningError
from spsa.live_display import Bar, counting, working
from spsa.master.delivery_setup import usual_builds
from spsa.master.start import checked_space
from spsa.output import echo, echo_json
from spsa.planning.constant_gains import PrecisionDesign, precise
from spsa.planning.games_needed import cut, in_flight_limit
from spsa.planning.plan import Plan, most_designs
from spsa.planning.plan import plan as planned
from spsa.planning.plan_inputs import (
    ASSUMED_ELO_TO_GAIN,
    USUAL_PLIES,
    Capacity,
    Openings,
    PlanInputs,
    Shape,
    game_seconds,
    games_needed_by,
)
from spsa.planning.recovery import Recovery, RunDesign, alternatives, coarser
from spsa.report.plan import alternatives_json, alternatives_table, planned_json, planned_text
from spsa.report.text import terminal

_USUAL_NPS = 1e6
_GAMES_A_SLOT = 2
_REPLICAS = 100  # of each alternative, so that small differences show
_DISTANCE = "the best values lie 0.4 to 2.5 steps from the start: assumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The inputs, and where their figures come from."""

    inputs: PlanInputs
    sources: tuple[str, ...]


def known(config: Config, space: Space, assumed: Assumed, *, replicas: int, seed: int) -> Known:
    """What to ask `plan`: what was said goes before what was measured, and that before guesses."""
    past = measured(config)
    concurrency = assumed.concurrency or os.cpu_count() or 1
    tried = _tried(config, space, past, concurrency) if assumed.measure else past.trial
    seconds, time_source = _seconds(config, assumed, past, tried)
    draws, draws_source = _draws(assumed, past.costs)
    builds, builds_source = _builds(config, assumed, past, tried)
    capacity = Capacity(
        concurrency=concurrency,
        build_seconds=builds,
        builders=config.build.at_once or usual_builds(),
    )
    shape = _shape(config, capacity, seconds)
    design, merged = _design(config, space, shape)
    return Known(
        inputs=PlanInputs(
            space=space,
            design=design,
            shape=shape,
            capacity=capacity,
            seconds=seconds,
            draw_rate=draws,
            openings=_openings(config, assumed, past),
            elos_to_gain=ASSUMED_ELO_TO_GAIN if assumed.elo is None else (assumed.elo,),
            replicas=replicas,
            seed=seed,
        ),
        sources=(
            *(time_source, draws_source, _DISTANCE, *builds_source),
            *_limits(config, merged),
        ),
    )


def _limits(config: Config, merged: int) -> Iterator[str]:
    """What the simulated run leaves out."""
    if merged > 1:
        yield f"{merged} iterations are simulated as one, with one move"


def precision_asked(
    inputs: PlanInputs, precision: float | None, confidence: float
) -> tuple[PrecisionDesign, ...]:
    """The designs of the theory, for the rule it is about; none for any other."""
    if inputs.design.algorithm == "constant":
        return tuple(precise(inputs, precision, confidence))
    if precision is not None:
        raise click.UsageError(
            '--precision goes with [spsa] algorithm = "constant", '
            f'not with "{inputs.design.algorithm}"'
        )
    return ()


def _shape(config: Config, capacity: Capacity, seconds: float | None) -> Shape:
    """How the files cut the run; iterations in flight that follow the fleet are what it needs."""
    games, in_flight = config.games, config.games.iterations_in_flight
    shape = Shape(
        iterations=config.spsa.max_iterations,
        games=games.games_per_iteration,
        batch_games=games.batch_size,
        in_flight=1 if in_flight == "auto" else in_flight,
        adapts=in_flight == "auto",
    )
    if not shape.adapts:
        return shape
    shape = replace(  # as the master cuts for these slots
        shape, batch_games=cut(games.games_per_iteration, games.batch_size, capacity.concurrency)[0]
    )
    bearable = in_flight_limit(
        shape.iterations, rule_entry(config.spsa.algorithm).iterations_per_one_in_flight
    )
    needed = bearable if seconds is None else games_needed_by(shape, capacity, seconds).in_flight
    return replace(shape, in_flight=min(needed, bearable))


def _design(config: Config, space: Space, shape: Shape) -> tuple[RunDesign, int]:
    """The design to simulate: of a long run, a shorter one of as many games."""
    problem = problem_of(space, iterations=config.spsa.max_iterations, pairs=config.games.pairs)
    shorter, merged = coarser(problem)
    settings: dict[str, Any] = dict(config.spsa.settings)
    if config.spsa.algorithm == "fishtest":  # its gains depend on k / N, A / N and played / N alone
        settings |= {name: settings[name] / merged for name in ("A", "played") if name in settings}
    elif _gains_are_given(config):
        shorter, merged = problem, 1
    design = RunDesign(
        algorithm=config.spsa.algorithm,
        settings=settings,
        problem=shorter,
        in_flight=max(1, round(shape.in_flight / merged)),
        grows=shape.adapts,
    )
    return design, merged


def _gains_are_given(config: Config) -> bool:
    """Gains written for so many iterations mean something else for fewer."""
    return not {"a", "c", "A", "played"}.isdisjoint(config.spsa.settings)


def _tried(config: Config, space: Space, past: Measured, slots: int) -> Speed | None:
    """A short trial where past runs do not tell what builds and games take."""
    built = config.delivery.engine is None
    if past.costs is not None and (past.builds is not None or not built):
        return None
    with interruptible() as stopping, terminal(stderr=True).status("building and playing"):
        speed = trial(config, space, slots, stopping, rounds=1, games_a_slot=_GAMES_A_SLOT)
    try:
        store_trial(config, speed, slots)
    except TuningError as error:
        echo(f"note: later plans have to measure again: {error}", err=True)
    return speed


def _seconds(
    config: Config, assumed: Assumed, past: Measured, tried: Speed | None
) -> tuple[float | None, str]:
    if assumed.game_seconds is not None:
        return assumed.game_seconds, f"a game takes {assumed.game_seconds:g} s: as you say"
    if past.costs is not None:
        seconds = past.costs.seconds / past.costs.tally.games
        return (
            seconds,
            f"a game takes {seconds:.3g} s: measured over {past.costs.tally.games} games",
        )
    if tried is not None:
        return tried.game, f"a game takes {tried.game:.3g} s: {tried.source}"
    speed, plies = assumed.nps or past.nps or _USUAL_NPS, past.plies or USUAL_PLIES
    guessed = game_seconds(config.game_settings.time_control, plies, speed)
    if guessed is None:
        return (
            None,
            "the duration of a fixed-depth game is unknown: use --game-seconds or --measure",
        )
    return guessed, f"a game takes {guessed:.3g} s: {_guess(config, assumed, past)}"


def _guess(config: Config, assumed: Assumed, past: Measured) -> str:
    """What the seconds of a game are computed from."""
    plies = f"{past.plies or USUAL_PLIES:.0f} plies {'measured' if past.plies else 'assumed'}"
    if config.game_settings.time_control.kind is not TimeKind.NODES:
        return plies
    speed = assumed.nps or past.nps or _USUAL_NPS
    known = "as you say" if assumed.nps else "measured" if past.nps else "assumed"
    return f"{plies}, at {speed:,.0f} nodes a second {known}"


def _builds(
    config: Config, assumed: Assumed, past: Measured, tried: Speed | None
) -> tuple[float, tuple[str, ...]]:
    """Seconds of an iteration's two builds; none where nothing is built."""
    if config.delivery.engine is not None:
        return 0.0, ()
    if assumed.build_seconds is not None:
        return assumed.build_seconds, ()
    if past.builds is not None:
        return past.builds, (f"two builds take {past.builds:.3g} s: measured by the last run",)
    if tried is not None:
        return tried.builds, (f"two builds take {tried.builds:.3g} s: {tried.source}, the first",)
    found = f"two builds take {BUILD_SECONDS:g} s: assumed (--build-seconds or --measure)"
    return BUILD_SECONDS, (found,)


def _draws(assumed: Assumed, costs: Costs | None) -> tuple[float, str]:
    if assumed.draws is not None:
        return assumed.draws, f"{assumed.draws:.0%} draws: as you say"
    if costs is None:
        return USUAL_DRAWS, f"{USUAL_DRAWS:.0%} draws: assumed (--draws)"
    # the d of tau^2 = 2 (1 - d), on which the noise depends
    draws = min(max(1 - null_variance(costs.tally) / 2, 0.0), 0.99)
    return draws, f"{draws:.0%} draws, by the spread of {costs.tally.pairs} pairs: measured"


def _openings(config: Config, assumed: Assumed, past: Measured) -> Openings | None:
    """What the draw rate says of the run's book; None if no games were played from it."""
    if assumed.draws is not None:
        return Openings.of(assumed.draws)
    if past.costs is None or past.book != config.game_settings.book:
        return None
    tally = past.costs.tally
    return Openings.of(tally.draws / tally.games, null_variance(tally))


def _simulated(inputs: PlanInputs) -> Plan:
    with counting(Bar("tuning synthetic engines, at most", most_designs(inputs))) as advance:
        return planned(replace(inputs, simulated=lambda: advance(1)))


def _recoveries(inputs: PlanInputs) -> dict[tuple[str, float], Recovery]:
    """What every alternative recovers, by its name and the Elo to gain; all tune equal engines."""
    designs = list(alternatives(inputs.design))
    bar = Bar("tuning synthetic engines in other ways", len(designs) * len(inputs.elos_to_gain))
    with counting(bar) as advance:
        more = replace(inputs, replicas=_REPLICAS, simulated=lambda: advance(1))
        return {
            (name, elo_to_gain): more.recovery(design, elo_to_gain)
            for name, design in designs
            for elo_to_gain in inputs.elos_to_gain
        }


@click.command()
@config_option
@database_option
@assumption_options
@click.option(
    "--precision",
    type=click.FloatRange(min=0.0, min_open=True),
    help="For the rule constant: largest final loss in Elo; default: a tenth of the Elo to gain.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability of ending within --precision.",
)
@click.option(
    "--measure",
    is_flag=True,
    help="Where no run has measured builds and games: build one iteration, play a few games.",
)
@click.option(
    "--alternatives",
    "compared",
    is_flag=True,
    help="Compare with other rules, sizes of iterations, lengths and steps; takes minutes.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def plan(
    config: str | None,
    database_url: str | None,
    precision: float | None,
    confidence: float,
    compared: bool,
    seed: int,
    as_json: bool,
    **assumed: Any,
) -> None:
    """Predict the duration and the Elo gain of a run, before anything is played.

    Simulates the rule of config.toml on synthetic engines that have this Elo to gain.
    """
    found = settings(config, database_url)
    with working("finding what games and builds take"):
        asked = known(found, checked_space(found), Assumed(**assumed), replicas=32, seed=seed)
    designs = precision_asked(asked.inputs, precision, confidence)
    answer = _simulated(asked.inputs)
    others = _recoveries(asked.inputs) if compared else {}
    if as_json:
        answered = planned_json(asked.inputs, answer, asked.sources, designs)
        echo_json(answered | alternatives_json(others))
        return
    console = terminal()
    console.print(planned_text(asked.inputs, answer, asked.sources, designs))
    for elo_to_gain in asked.inputs.elos_to_gain if compared else ():
        console.print("", alternatives_table(others, elo_to_gain), sep="\n")
