"""Probes the parameters before a run: each at plus, minus and its bounds, in searches, not games.

An engine that finds the same with another value does not use it there. A parameter is dead if
plus and minus find what the start finds, and clamped if a bound finds no more than plus or minus.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from spsa.builds.searches import Searches, positions_of_games, search_all
from spsa.core.game_settings import GameSettings
from spsa.core.params import Number, Parameter, Space, Values
from spsa.db.tables import EngineFile
from spsa.errors import BuildFailed
from spsa.master.delivery import Delivery

_QUICKER = 10  # moves of the games that positions come from have so many nodes less
_FARTHEST = 4.0
"""A step is proposed at most so many times longer or shorter: the effect is not linear."""


class Point(StrEnum):
    """Where a parameter is tried, with all others at the start."""

    PLUS = "plus"
    MINUS = "minus"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One value of a parameter: what the engine found, or why it failed."""

    value: Number
    sha256: str = ""
    bench: int | None = None
    searches: Searches | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A parameter with all its trials; `start` is that of the engine with the start of theta."""

    parameter: Parameter
    start: Tried
    tried: Mapping[Point, Tried]

    @property
    def moves_changed(self) -> float:
        """The part of the positions in which a step changes the move; plus and minus together."""
        return self._mean([searches.moves_changed(base) for searches, base in self._steps])

    @property
    def score_change(self) -> float:
        """How far a step changes the score, in centipawns; the mean of plus and minus."""
        return self._mean([searches.score_change(base) for searches, base in self._steps])

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong with the parameter, in sentences; empty if nothing is."""
        return tuple(self._findings())

    @property
    def is_dead(self) -> bool:
        """Whether a step changes neither a search nor the bench."""
        benches = {one.bench for one in self._sides} | {self.start.bench}
        same = all(searches.replies == base.replies for searches, base in self._steps)
        return bool(self._steps) and same and len(benches) == 1

    @property
    def _sides(self) -> list[Tried]:
        both = (self.tried.get(Point.PLUS), self.tried.get(Point.MINUS))
        return [one for one in both if one is not None and not one.failure]

    @property
    def _steps(self) -> list[tuple[Searches, Searches]]:
        base = self.start.searches
        found = [one.searches for one in self._sides if one.searches is not None]
        return [] if base is None else [(searches, base) for searches in found]

    def _mean(self, changes: Sequence[float]) -> float:
        return sum(changes) / len(changes) if changes else 0.0

    def _findings(self) -> Iterator[str]:
        for point, one in self.tried.items():
            if one.failure:
                yield f"fails at {point} = {one.value}: {one.failure}"
            if one.searches is not None:
                yield from (f"at {point} = {one.value}: {said}" for said in one.searches.objections)
        if self.is_dead:
            differs = len({one.sha256 for one in self.tried.values()} - {""}) > 1
            binary = ", although the binary differs" if differs else ""
            yield f"dead: in no position does a step change anything{binary}"
        else:
            yield from self._clamped(Point.MIN, Point.MINUS)
            yield from self._clamped(Point.MAX, Point.PLUS)

    def _clamped(self, bound: Point, step: Point) -> Iterator[str]:
        outer, inner = self.tried.get(bound), self.tried.get(step)
        if outer is None or inner is None or outer.value == inner.value:
            return
        if outer.searches is not None and outer.searches == inner.searches:
            yield f"clamped: {bound} = {outer.value} finds what {inner.value} finds"


@dataclass(slots=True)
class Prober:
    """Makes engines of a delivery and searches with them."""

    space: Space
    delivery: Delivery
    settings: GameSettings
    openings: Sequence[str]
    nodes: int
    _positions: Sequence[str] = ()

    def start(self) -> tuple[Tried, bool]:
        """The engine at the start of theta, and whether it finds the same twice.

        It plays the games from which the positions come.

        Raises BuildFailed if it cannot be built or cannot search.
        """
        values = self.space.rounded(self.space.start())
        sides = self.delivery.prepare(values, values)
        engine, options, quick = sides.plus, sides.plus_options, max(1, self.nodes // _QUICKER)
        self._positions = positions_of_games(*self._call(engine, options), self.openings, quick)
        searches, again = (self._searches(engine, options) for _ in range(2))
        start = Tried(value=0, sha256=engine.sha256, bench=engine.bench, searches=searches)
        return start, searches == again

    def probed(self, parameter: Parameter, start: Tried, *, bounds: bool) -> Probed:
        """Try one parameter at plus and minus, and at its bounds."""
        pairs = [(Point.PLUS, Point.MINUS), (Point.MAX, Point.MIN)][: 2 if bounds else 1]
        tried: dict[Point, Tried] = {}
        for one, two in pairs:
            tried |= self._pair(parameter, one, two)
        return Probed(parameter=parameter, start=start, tried=tried)

    def _pair(self, parameter: Parameter, one: Point, two: Point) -> dict[Point, Tried]:
        values = {point: self._values(parameter, point) for point in (one, two)}
        try:
            sides = self.delivery.prepare(values[one], values[two])
        except BuildFailed:
            return {point: self._alone(parameter, values[point]) for point in (one, two)}
        return {
            one: self._tried(parameter, values[one], sides.plus, sides.plus_options),
            two: self._tried(parameter, values[two], sides.minus, sides.minus_options),
        }

    def _alone(self, parameter: Parameter, values: Values) -> Tried:
        try:
            sides = self.delivery.prepare(values, values)
        except BuildFailed as failure:
            return Tried(value=values[parameter.name], failure=failure.lines[0])
        return self._tried(parameter, values, sides.plus, sides.plus_options)

    def _tried(
        self, parameter: Parameter, values: Values, engine: EngineFile, options: Mapping[str, str]
    ) -> Tried:
        found = Tried(value=values[parameter.name], sha256=engine.sha256)
        try:
            searches = self._searches(engine, options)
        except BuildFailed as failure:
            return replace(found, failure=failure.lines[0])
        return replace(found, bench=engine.bench, searches=searches)

    def _searches(self, engine: EngineFile, options: Mapping[str, str]) -> Searches:
        return search_all(*self._call(engine, options), self._positions, self.nodes)

    def _call(
        self, engine: EngineFile, options: Mapping[str, str]
    ) -> tuple[list[str], dict[str, str]]:
        """The command line of an engine, and all options that are sent to it."""
        command = [engine.path, *self.settings.engine_arguments]
        return command, {**self.settings.common_options, **options}

    def _values(self, parameter: Parameter, point: Point) -> Values:
        value = {
            Point.PLUS: parameter.value + parameter.step,
            Point.MINUS: parameter.value - parameter.step,
            Point.MIN: parameter.minimum,
            Point.MAX: parameter.maximum,
        }[point]
        return self.space.rounded(
            self.space.steps({**self.space.rounded(self.space.start()), parameter.name: value})
        )


def proposed_steps(probed: Sequence[Probed]) -> dict[str, Number]:
    """A step for each parameter with which a step changes scores by what the median changes.

    The change is taken as proportional to the step, within a factor of 4. Dead parameters and
    those that fail get none.
    """
    effects = {p.parameter.name: p.score_change for p in probed if p.score_change > 0}
    if not effects:
        return {}
    usual = median(effects.values())
    return {
        p.parameter.name: _step(p.parameter, usual / effects[p.parameter.name])
        for p in probed
        if p.parameter.name in effects
    }


def _step(parameter: Parameter, factor: float) -> Number:
    """The step times the factor with two digits, in whole units and at most a quarter range."""
    wanted = parameter.step * min(max(factor, 1 / _FARTHEST), _FARTHEST)
    most = (parameter.maximum - parameter.minimum) / 4
    step = float(f"{min(max(wanted, parameter.unit), most):.2g}")
    return max(1, round(step)) if parameter.integral and parameter.scale is None else step
