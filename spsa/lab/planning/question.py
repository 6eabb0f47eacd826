"""What is planned: a run's files, what is known or assumed of its games, and how long they take."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

from spsa.core.game_settings import TimeControl, TimeKind
from spsa.core.params import Space
from spsa.core.scoring import ELO_PER_SCORE
from spsa.lab.planning.prospect import Prospect, Recovery, RunDesign, recovery
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


STAKES = (5.0, 20.0, 60.0)
"""Elo there may be to gain when nobody says how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`design` is simulated `replicas` times from `seed`, with each of the `stakes` to gain.

    `seconds` is what a game takes, None where nobody knows.
    """

    space: Space
    design: RunDesign
    shape: Shape
    fleet: Fleet
    seconds: float | None
    draw_rate: float
    stakes: Sequence[float] = STAKES
    replicas: int = 32
    seed: int = 1

    def recovery(self, design: RunDesign, stake: float) -> Recovery:
        prospect = Prospect(stake=stake, draw_rate=self.draw_rate)
        return recovery(design, prospect, replicas=self.replicas, seed=self.seed)

    @property
    def builds_are_slower(self) -> bool:
        """Whether building an iteration takes longer than playing it."""
        fleet, shape = self.fleet, self.shape
        if self.seconds is None:
            return False
        playing = shape.games * self.seconds / fleet.concurrency
        return fleet.build_seconds / fleet.builders > playing

    @property
    def demand(self) -> Demand | None:
        """What the fleet asks of the supply of games; None where nobody knows how long they are."""
        return None if self.seconds is None else demand_of(self.shape, self.fleet, self.seconds)

    @property
    def stake(self) -> float:
        """The one that single figures are given for."""
        return self.stakes[len(self.stakes) // 2]


def noise(draw_rate: float, pairs: int) -> float:
    """One standard deviation of the Elo of so many pairs between equals: C tau / (2 sqrt P)."""
    return ELO_PER_SCORE * sqrt(2 * (1 - draw_rate)) / (2 * sqrt(pairs))
