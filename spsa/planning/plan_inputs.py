"""What is planned: a run's files, what is known or assumed of its games, and how long they take."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, log10, sqrt
from typing import Self

from spsa.core.game_settings import GameSettings, TimeControl, TimeKind, games_by_share
from spsa.core.params import Space
from spsa.core.scoring import ELO_PER_SCORE
from spsa.planning.games_needed import REACTION_SECONDS, GamesNeeded, cut, in_flight_limit
from spsa.planning.recovery import MANY, EngineAssumptions, Recovery, RunDesign, recovery

USUAL_PLIES = 100.0
"""Plies of a game between equal engines with the usual adjudication."""

USUAL_BUILD_SECONDS = 30.0
"""Of an iteration's two builds, where nothing has measured them."""

_CLOCK_USED = 0.95  # the part of the base time that an engine uses in a game


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
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

    `in_flight` is the number of iterations in flight; `adapts` is whether it follows the fleet.
    """

    iterations: int
    games: int
    batch_games: int
    in_flight: int = 1
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


def game_seconds(control: TimeControl, nps: float | None) -> float | None:
    """Seconds of a game of `USUAL_PLIES`; None if the time control does not determine them.

    That is the case for a fixed depth, and for nodes if the nodes per second are unknown.
    """
    mean = (control.low + control.high) / 2
    match control.kind:
        case TimeKind.MOVETIME:
            return USUAL_PLIES * mean
        case TimeKind.CLOCK:
            sessions = USUAL_PLIES / 2 / control.moves if control.moves else _CLOCK_USED
            return 2 * sessions * mean + USUAL_PLIES * control.increment
        case TimeKind.NODES:
            return None if nps is None else USUAL_PLIES * mean / nps
        case TimeKind.DEPTH:
            return None


def mean_game_seconds(settings: GameSettings, nps: float | None) -> float | None:
    """The same of all games together, whose time controls have their shares."""
    found = [game_seconds(one, nps) for one in settings.played]
    if any(seconds is None for seconds in found):
        return None
    both = zip(found, settings.shares, strict=True)
    return sum(seconds * share for seconds, share in both if seconds) / sum(settings.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControlCost:
    """What one of several time controls costs.

    `games` are its games of an iteration, one of them takes `seconds`, and all of them the `part`
    of the iteration's time, 0..1; None if unknown.
    """

    time_control: str
    games: int
    seconds: float | None
    part: float | None


def time_control_costs(
    settings: GameSettings, games: int, mean: float | None, each: Sequence[float | None]
) -> Iterator[TimeControlCost]:
    """The costs of so many games that take `mean` seconds; nothing for a single time control.

    The seconds of `each` say how they differ.
    """
    played = games_by_share(games, settings.shares, 0) if settings.time_controls else []
    times = [n * one if one else None for n, one in zip(played, each, strict=False)]
    whole = sum(filter(None, times)) if mean and None not in times else 0.0
    for control, n, time in zip(settings.time_controls, played, times, strict=True):
        part = time / whole if time and whole else None
        yield TimeControlCost(
            time_control=str(control.time_control),
            games=n,
            seconds=part and mean and part * mean * games / n,
            part=part,
        )


def pace(shape: Shape, capacity: Capacity, seconds: float) -> GameSpeed:
    """The pace of a run whose games take `seconds`.

    With one iteration in flight, slots are idle while engines are built and while the last batch is
    played. With more, the games of the other iterations fill these times, if they are enough.
    """
    build_seconds = capacity.build_seconds + REACTION_SECONDS
    capacity = replace(capacity, build_seconds=build_seconds)
    playing, alone = shape.games * seconds / capacity.concurrency, _alone(shape, capacity, seconds)
    iteration = max(playing, alone / shape.in_flight, build_seconds / capacity.builders)
    return GameSpeed(
        game=seconds,
        iteration=iteration,
        run=shape.iterations * iteration + (alone - iteration if shape.in_flight > 1 else 0.0),
        idle=1 - playing / iteration,
    )


def in_flight_without_idling(shape: Shape, capacity: Capacity, seconds: float) -> int:
    """The fewest iterations in flight that keep every slot busy.

    If the build of an iteration takes longer than its games, no number does.
    """
    playing, alone = shape.games * seconds / capacity.concurrency, _alone(shape, capacity, seconds)
    return max(1, ceil(alone / max(playing, capacity.build_seconds / capacity.builders)))


def _alone(shape: Shape, capacity: Capacity, seconds: float) -> float:
    """The seconds of an iteration of which no other is in flight: its builds, then its rounds."""
    rounds = ceil(ceil(shape.games / shape.batch_games) / capacity.concurrency)
    return rounds * shape.batch_games * seconds + capacity.build_seconds


def games_needed_by(shape: Shape, capacity: Capacity, seconds: float) -> GamesNeeded:
    """The games that the machines need, if one takes `seconds`."""
    return GamesNeeded(
        slots=capacity.concurrency,
        game_seconds=seconds,
        games=shape.games,
        batch_games=shape.batch_games,
        build_seconds=capacity.build_seconds,
        builders=capacity.builders,
    )


UNBALANCED_ELO = 250.0
"""How far a side is ahead in an unbalanced book, where most draws have become decisive."""

_MIN_CHANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """Openings by the results of games between equals: Elo of a draw, and of the side ahead.

    In BayesElo's model (Coulom, https://www.remi-coulom.fr/Bayesian-Elo/) a side that is x Elo
    ahead wins with chance 1 / (1 + 10^((draw_elo - x) / 400)), and the other one with that of -x.
    """

    draw_elo: float
    ahead: float = 0.0

    @classmethod
    def of(cls, draw_rate: float, pair_variance: float | None = None) -> Self:
        """From the draw rate, and tau^2 = 2 (1 - d - 4 b^2) of pairs; by default b = 0.

        b is the score of the side ahead over a half (its root mean square).
        """
        decisive = max(1 - draw_rate, 4 * _MIN_CHANCE)
        tau2 = 2 * decisive if pair_variance is None else pair_variance
        bias = sqrt(max(decisive - tau2 / 2, 0.0)) / 2
        losses = max(decisive / 2 - bias, _MIN_CHANCE)
        win, loss = (400 * log10(1 / chance - 1) for chance in (decisive - losses, losses))
        return cls(draw_elo=(win + loss) / 2, ahead=(loss - win) / 2)

    @property
    def draw_rate(self) -> float:
        return 1 - self._chance(self.ahead) - self._chance(-self.ahead)

    def games_with(self, ahead: float) -> float:
        """The games that openings need in which a side is so many Elo ahead, over those of these.

        The information of a pair is the squared slope of its expected result over its variance.
        """
        return self._information(self.ahead) / self._information(ahead)

    def _chance(self, ahead: float) -> float:
        return 1 / (1 + 10 ** ((self.draw_elo - ahead) / 400))

    def _information(self, ahead: float) -> float:
        win, loss = self._chance(ahead), self._chance(-ahead)
        slope = win * (1 - win) + loss * (1 - loss)
        return slope**2 / (win + loss - (win - loss) ** 2)


_MAX_ITERATIONS = 1000  # more recover no more of the Elo to gain: benches/papers/RESULTS.md
_MIN_ITERATIONS = 100  # with fewer, longer waits cost less than larger iterations
_MIN_GAMES = 8
_ROUND = (8, 10, 12, 16, 20, 24, 30, 40, 50, 60)  # times powers of ten
_LONGER = 1.05  # the time of a run that smaller iterations may cost
BATCH_GAMES = 10


def fitted(games: int, capacity: Capacity, seconds: float | None) -> Shape:
    """How to cut a run of `games`: the smallest iterations that make it at most 5% longer.

    The same games recover more in smaller iterations, until there are about a thousand. What limits
    them is the time in which the engines of an iteration are built; `seconds` is that of a game,
    None if it is unknown.
    """
    shapes = [_cut(games, size, capacity, seconds) for size in _sizes(games)]
    if seconds is None:
        return shapes[0]
    lengths = [pace(shape, capacity, seconds).run for shape in shapes]
    best = min(lengths) * _LONGER
    return next(one for one, run in zip(shapes, lengths, strict=True) if run <= best)


def _sizes(games: int) -> list[int]:
    """The games that an iteration may have, in rising order; at least one number."""
    least = max(_MIN_GAMES, games / _MAX_ITERATIONS)
    sizes = [digits * 10**power for power in range(7) for digits in _ROUND]
    enough = [size for size in sizes if size >= least]
    return [size for size in enough if size <= games / _MIN_ITERATIONS] or enough[:1]


def _cut(games: int, size: int, capacity: Capacity, seconds: float | None) -> Shape:
    """The shape with iterations of `size`."""
    iterations = max(1, round(games / size))
    shape = Shape(iterations=iterations, games=size, batch_games=BATCH_GAMES, adapts=True)
    return adapted(shape, capacity, seconds)


def adapted(shape: Shape, capacity: Capacity, seconds: float | None) -> Shape:
    """As the master cuts it for these slots, as deep as the fleet needs and the run allows."""
    shape = replace(shape, batch_games=cut(shape.games, shape.batch_games, capacity.concurrency)[0])
    limit = in_flight_limit(shape.iterations)
    needed = limit if seconds is None else games_needed_by(shape, capacity, seconds).in_flight
    return replace(shape, in_flight=min(needed, limit))


ASSUMED_ELO_TO_GAIN = (5.0, 20.0, 60.0)
"""The default assumptions about the Elo to gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInputs:
    """`design` is simulated `replicas` times from `seed`, with each of the `elos_to_gain`.

    `seconds` is the time of a game; None if it is unknown. `draw_rate` is the d of
    tau^2 = 2 (1 - d), and `openings` are those of the run; None if they are not known. `simulated`
    is called after each simulated design. `time_controls` are those of a run with several.
    """

    space: Space
    design: RunDesign
    shape: Shape
    capacity: Capacity
    seconds: float | None
    draw_rate: float
    openings: Openings | None = None
    elos_to_gain: Sequence[float] = ASSUMED_ELO_TO_GAIN
    replicas: int = 32
    seed: int = 1
    simulated: Callable[[], None] | None = None
    time_controls: Sequence[TimeControlCost] = ()

    def recovery(self, design: RunDesign, elo_to_gain: float) -> Recovery:
        assumptions = EngineAssumptions(elo_to_gain=elo_to_gain, draw_rate=self.draw_rate)
        replicas = self.replicas // (1 if design.problem.start.size <= MANY else 2)
        found = recovery(design, assumptions, replicas=replicas, seed=self.seed)
        if self.simulated is not None:
            self.simulated()
        return found

    @property
    def fitted(self) -> Shape:
        """The same games in iterations that suit the machines."""
        return fitted(self.shape.iterations * self.shape.games, self.capacity, self.seconds)

    @property
    def builds_are_slower(self) -> bool:
        """Whether building an iteration takes longer than playing it."""
        capacity, shape = self.capacity, self.shape
        if self.seconds is None:
            return False
        playing = shape.games * self.seconds / capacity.concurrency
        return capacity.build_seconds / capacity.builders > playing

    @property
    def games_needed(self) -> GamesNeeded | None:
        """The games that the machines need; None if the time of a game is unknown."""
        return (
            None
            if self.seconds is None
            else games_needed_by(self.shape, self.capacity, self.seconds)
        )

    @property
    def elo_to_gain(self) -> float:
        """The assumption for which single figures are given."""
        return self.elos_to_gain[len(self.elos_to_gain) // 2]


def noise(draw_rate: float, pairs: int) -> float:
    """One standard deviation of the Elo of `pairs` between equals: C tau / (2 sqrt P)."""
    return ELO_PER_SCORE * sqrt(2 * (1 - draw_rate)) / (2 * sqrt(pairs))
