"""How long a run takes: from the terms of a game to the hours of a machine."""

from dataclasses import dataclass
from math import ceil

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.lab.planning.supply import Demand

USUAL_PLIES = 100.0
"""Plies of a game between equal engines with the usual adjudication."""

_CLOCK_USED = 0.95  # the part of its base time that an engine has spent when the game is over


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Who plays and who builds.

    `concurrency` is games at a time; the two engines of an iteration take `build_seconds`, and
    those of `builders` iterations are built at a time.
    """

    concurrency: int
    build_seconds: float
    builders: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a run's games are cut.

    `depth` is how many iterations are in flight; `adapts` is whether that follows the fleet.
    """

    iterations: int
    games: int
    batch_games: int
    depth: int
    adapts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSpeed:
    """Seconds: of a game, of an iteration once the run is under way, and of the whole run.

    `idle` is the part of all slots' time, 0..1, in which nothing is played.
    """

    game: float
    iteration: float
    run: float
    idle: float


def game_seconds(control: TimeControl, plies: float, nps: float | None) -> float | None:
    """Seconds of a game of so many plies; None where only measuring tells.

    That is so of a limit by depth, and of one by nodes if the nodes per second are not known.
    """
    mean = (control.low + control.high) / 2
    match control.kind:
        case TimeKind.MOVETIME:
            return plies * mean
        case TimeKind.CLOCK:
            sessions = plies / 2 / control.moves if control.moves else _CLOCK_USED
            return 2 * sessions * mean + plies * control.increment
        case TimeKind.NODES:
            return None if nps is None else plies * mean / nps
        case TimeKind.DEPTH:
            return None


def pace(shape: Shape, fleet: Fleet, seconds: float) -> GameSpeed:
    """The pace of a run whose games take so many seconds.

    With one iteration in flight nobody plays while engines are built or the last batch is out;
    with more the builds and the stragglers of one are hidden by the games of another, as long as
    there are enough of them.
    """
    batches = ceil(shape.games / shape.batch_games)
    rounds = ceil(batches / fleet.concurrency)
    playing = shape.games * seconds / fleet.concurrency
    alone = rounds * shape.batch_games * seconds + fleet.build_seconds
    iteration = max(playing, alone / shape.depth, fleet.build_seconds / fleet.builders)
    return GameSpeed(
        game=seconds,
        iteration=iteration,
        run=shape.iterations * iteration + (alone - iteration if shape.depth > 1 else 0.0),
        idle=1 - playing / iteration,
    )


def depth_without_idling(shape: Shape, fleet: Fleet, seconds: float) -> int:
    """The fewest iterations in flight that keep every slot busy.

    Where the builds of an iteration take longer than its games, nothing does.
    """
    playing = shape.games * seconds / fleet.concurrency
    rounds = ceil(ceil(shape.games / shape.batch_games) / fleet.concurrency)
    alone = rounds * shape.batch_games * seconds + fleet.build_seconds
    return max(1, ceil(alone / max(playing, fleet.build_seconds / fleet.builders)))


def demand_of(shape: Shape, fleet: Fleet, seconds: float) -> Demand:
    """What the fleet asks of the supply of games that take so many seconds."""
    return Demand(
        slots=fleet.concurrency,
        game_seconds=seconds,
        games=shape.games,
        batch_games=shape.batch_games,
        build_seconds=fleet.build_seconds,
        builders=fleet.builders,
    )
