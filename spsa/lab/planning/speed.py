"""How long a run takes: from the time control to the hours of the fleet."""

from dataclasses import dataclass
from math import ceil

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.lab.planning.supply import Demand

USUAL_PLIES = 100.0
"""Plies of a game between equal engines with the usual adjudication."""

_CLOCK_USED = 0.95  # the part of the base time that an engine uses in a game


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The machines that play and build.

    `concurrency` is the number of games at a time. The two engines of an iteration take
    `build_seconds`, and `builders` iterations are built at a time.
    """

    concurrency: int
    build_seconds: float
    builders: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a run's games are cut.

    `depth` is the number of iterations in flight; `adapts` is whether it follows the fleet.
    """

    iterations: int
    games: int
    batch_games: int
    depth: int
    adapts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GameSpeed:
    """Seconds of a game, of an iteration, and of the whole run.

    `idle` is the part of all slots' time, 0..1, in which nothing is played.
    """

    game: float
    iteration: float
    run: float
    idle: float


def game_seconds(control: TimeControl, plies: float, nps: float | None) -> float | None:
    """Seconds of a game with `plies`; None if the time control does not determine them.

    That is the case for a fixed depth, and for nodes if the nodes per second are unknown.
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
    """The pace of a run whose games take `seconds`.

    With one iteration in flight, slots are idle while engines are built and while the last batch is
    played. With more, the games of the other iterations fill these times, if they are enough.
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

    If the build of an iteration takes longer than its games, no number does.
    """
    playing = shape.games * seconds / fleet.concurrency
    rounds = ceil(ceil(shape.games / shape.batch_games) / fleet.concurrency)
    alone = rounds * shape.batch_games * seconds + fleet.build_seconds
    return max(1, ceil(alone / max(playing, fleet.build_seconds / fleet.builders)))


def demand_of(shape: Shape, fleet: Fleet, seconds: float) -> Demand:
    """The fleet's demand for games that take `seconds`."""
    return Demand(
        slots=fleet.concurrency,
        game_seconds=seconds,
        games=shape.games,
        batch_games=shape.batch_games,
        build_seconds=fleet.build_seconds,
        builders=fleet.builders,
    )
