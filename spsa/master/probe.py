"""Probes the parameters before a run: each at plus, minus and its bounds, in searches, not games.

An engine that finds the same with another value does not use it there. A parameter is dead if
plus and minus find what the start finds, and clamped if a bound finds no more than plus or minus.
A group is moved by a step as a whole first: if that changes nothing, all its parameters are dead.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import islice, product
from math import ceil
from statistics import fmean
from typing import NamedTuple

import chess

from spsa.builds.smoke import against_nodes, engine_under_test, limit_of, longest_search
from spsa.core.game_settings import GameSettings, TimeKind
from spsa.core.parameter import Number, Parameter
from spsa.core.params import Space, Values
from spsa.db.master_queries import Side, Sides
from spsa.errors import BuildFailed, EngineFault
from spsa.master.delivery import Delivery
from spsa.uci.engine import Limit, UciEngine

A_GAME = 6  # positions of one game

_LEAST_GAMES = 4
_NODES = 500_000  # that an engine searches in all positions: quick searches have more of them

_NEARLY_ALL = 0.9  # of the moves: what changes so many is no strength
_APART = 9  # plies between two positions of a game: odd, so that both sides are to move

_QUICKER, _FEWEST = 10, 1000  # moves of these games have so many nodes less, but at least as many
_CAP = 100  # centipawns: a greater difference says no more than that the game is decided


POINTS: Mapping[str, Callable[[Parameter], Number]] = {
    "plus": lambda parameter: parameter.value + parameter.step,
    "minus": lambda parameter: parameter.value - parameter.step,
    "min": lambda parameter: parameter.minimum,
    "max": lambda parameter: parameter.maximum,
}
"""Where a parameter is tried, with all others at the start."""


class Search(NamedTuple):
    """The reply to one search, without its time; the move is empty where the game is over."""

    move: str
    score: int | None
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One value of a parameter: what the engine finds in every position, or why it fails."""

    value: Number
    bench: int | None = None
    searches: tuple[Search, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A parameter with all its trials; `start` is that of the engine with the start of theta."""

    parameter: Parameter
    start: Tried
    tried: Mapping[str, Tried]

    @property
    def moves_changed(self) -> float:
        """The part of the positions in which a step changes the move; plus and minus together."""
        return fmean([one.move != other.move for one, other in self._steps] or [0.0])

    @property
    def score_change(self) -> float:
        """How far a step changes the score, in centipawns, where there are two scores."""
        scores = [(one.score, other.score) for one, other in self._steps]
        known = [(a, b) for a, b in scores if a is not None and b is not None]
        return fmean([min(abs(a - b), _CAP) for a, b in known] or [0.0])

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong with the parameter, in sentences; empty if nothing is."""
        tried = [(point, one) for point, one in self.tried.items() if one.failure]
        failed = [f"fails at {point} = {one.value}: {one.failure}" for point, one in tried]
        if self.is_dead:
            return (*failed, "dead: in no position does a step change anything")
        if self.moves_changed > _NEARLY_ALL:
            failed.append("a step changes nearly every move: an index or a size?")
        bounds = (("min", "minus"), ("max", "plus"))
        return (*failed, *(said for pair in bounds for said in self._clamped(*pair)))

    @property
    def is_dead(self) -> bool:
        """Whether a step changes neither a search nor the bench."""
        same = all(one.bench == self.start.bench for one in self._sides)
        return bool(self._sides) and same and all(one == other for one, other in self._steps)

    @property
    def is_useless(self) -> bool:
        """Whether it is dead, fails, or changes nearly every move: nothing to tune."""
        fails = any(one.failure for one in self.tried.values())
        return fails or self.is_dead or self.moves_changed > _NEARLY_ALL

    @property
    def _sides(self) -> list[Tried]:
        both = (self.tried.get("plus"), self.tried.get("minus"))
        return [one for one in both if one is not None and not one.failure]

    @property
    def _steps(self) -> list[tuple[Search, Search]]:
        """The searches of plus and minus, each beside that of the start."""
        starts = self.start.searches
        return [pair for one in self._sides for pair in zip(one.searches, starts, strict=True)]

    def _clamped(self, bound: str, step: str) -> Iterator[str]:
        outer, inner = self.tried.get(bound), self.tried.get(step)
        if outer is None or inner is None or outer.failure or inner.failure:
            return
        if outer.value != inner.value and outer.searches == inner.searches:
            yield f"clamped: {bound} = {outer.value} finds what {inner.value} finds"


@dataclass(slots=True)
class Prober:
    """Makes engines of a delivery and searches with them; `openings` are FENs.

    The start finds `limits` that let the engine search as far as each time control of the run does,
    or takes `nodes`; `against_nodes` says why they are depths, for an engine that ignores nodes.
    """

    space: Space
    delivery: Delivery
    settings: GameSettings
    openings: Sequence[str]
    nodes: int | None = None
    limits: tuple[Limit, ...] = field(init=False, default=())
    against_nodes: str = field(init=False, default="")
    positions: Sequence[str] = field(init=False, default=())

    def start(self) -> tuple[Tried, bool]:
        """The engine at the start of theta, and whether it finds the same twice.

        It plays the games from which the positions come. Positions of a book alone are too quiet:
        few parameters change a search there.

        Raises BuildFailed if it cannot be built or cannot search.
        """
        engine = self._built(self._moved({})).plus
        self.limits = tuple(dict.fromkeys(self._countable_limits(engine)))
        quick = _quicker(self.limits[0])
        with self._running(engine) as running:
            nodes = sum(_search(running, self.openings[0], limit).nodes for limit in self.limits)
            games = max(_LEAST_GAMES, _NODES // (A_GAME * max(1, nodes)))
            spread = self.openings[:: ceil(len(self.openings) / games)]
            played = (_game(running, fen, quick) for fen in spread)
            spaced = (islice(game, 0, _APART * A_GAME, _APART) for game in played)
            self.positions = [position for game in spaced for position in game]
        start, again = (self._searched(0, engine) for _ in range(2))
        return start, start == again

    def probed(self, parameter: Parameter, start: Tried, *, bounds: bool) -> Probed:
        """Try one parameter at plus and minus, and at its bounds."""
        tried = self._tried(parameter, "plus", "minus")
        if bounds:
            tried |= self._tried(parameter, "max", "min")
        return Probed(parameter=parameter, start=start, tried=tried)

    def group_if_dead(self, group: Sequence[Parameter], start: Tried) -> list[Probed]:
        """All of a group, moved by a step at once, if that changes nothing; else none of it."""
        values = self._moved({p.name: _stepped(p) for p in group})
        with suppress(BuildFailed):
            if (found := self._searched(0, self._built(values).plus)) == start:
                moved = (replace(found, value=values[p.name]) for p in group)
                both = zip(group, moved, strict=True)
                return [Probed(parameter=p, start=start, tried={"plus": x}) for p, x in both]
        return []

    def _tried(self, parameter: Parameter, *points: str) -> dict[str, Tried]:
        """Try two points that are built together; where one of them fails, each by itself."""
        name = parameter.name
        values = [self._moved({name: POINTS[point](parameter)}) for point in points]
        numbers = [own[name] for own in values]
        try:
            built = self._built(*values)
            found = map(self._searched, numbers, (built.plus, built.minus))
            return dict(zip(points, found, strict=False))
        except BuildFailed as failure:
            if len(points) > 1:
                return self._tried(parameter, points[0]) | self._tried(parameter, points[1])
            return {points[0]: Tried(value=numbers[0], failure=failure.summary)}

    def _built(self, *values: Values) -> Sides:
        """The engines with the first and the last of these values."""
        return self.delivery.prepare(values[0], values[-1])

    def _searched(self, value: Number, side: Side) -> Tried:
        """Search every position with each limit, always as the first move of a new game.

        Raises SmokeTestFailed for an engine that ends, hangs, or declares no such option.
        """
        both = product(self.limits, self.positions)
        with self._running(side) as running:
            searches = tuple(_search(running, place, limit) for limit, place in both)
        return Tried(value=value, bench=side.engine.bench, searches=searches)

    def _countable_limits(self, side: Side) -> Iterator[Limit]:
        """As many nodes as the mean limit of each time control allows, or as much depth.

        With a limit of time, the same engine would not find the same twice.
        """
        played = self.settings.played
        for control in played if self.nodes is None else played[:1]:
            mean = longest_search(replace(control, high=(control.low + control.high) / 2))
            if self.nodes is None and control.kind in (TimeKind.NODES, TimeKind.DEPTH):
                yield mean
                continue
            with self._running(side) as running:
                reached = running.search(b"position startpos", mean)
            if found := against_nodes(*self._started(side), reached):
                self.against_nodes = found
                yield limit_of(TimeKind.DEPTH, reached.depth)
            else:
                yield limit_of(TimeKind.NODES, self.nodes or reached.nodes)

    def _running(self, side: Side) -> AbstractContextManager[UciEngine]:
        return engine_under_test(*self._started(side))

    def _started(self, side: Side) -> tuple[list[str], dict[str, str]]:
        """The command that starts an engine, and all its options."""
        command = [side.engine.path, *self.settings.engine_arguments]
        return command, {**self.settings.common_options, **side.options_here}

    def _moved(self, values: Values) -> Values:
        """The start with other values of some parameters, within bounds and constraints."""
        start = self.space.rounded(self.space.start())
        return self.space.rounded(self.space.steps({**start, **values}))


def _stepped(parameter: Parameter) -> Number:
    """A step up, or down where the bound is nearer than a step."""
    up = POINTS["plus"](parameter)
    return up if up <= parameter.maximum else POINTS["minus"](parameter)


def _quicker(limit: Limit) -> Limit:
    """A tenth of the nodes, or half the depth; with fewer nodes some engines find no legal move."""
    _, kind, number = limit.go.split()
    part, least = (2, 1) if kind == b"depth" else (_QUICKER, _FEWEST)
    less = max(int(number) // part, min(least, int(number)))
    return limit._replace(go=b"go %b %d\n" % (kind, less))


def _game(engine: UciEngine, fen: str, limit: Limit) -> Iterator[str]:
    """Every position of one game against itself that has a move, as it follows `position fen`."""
    board = chess.Board(fen, chess960=True)  # takes both forms of castling
    position = f"{fen} moves"
    while move := _search(engine, position, limit).move:
        position += f" {move}"
        try:
            board.push_uci(move)
        except ValueError:  # illegal
            return
        if not any(board.generate_legal_moves()):
            return
        yield position


def _search(engine: UciEngine, position: str, limit: Limit) -> Search:
    engine.prepare()
    engine.await_ready()
    try:
        reply = engine.search(f"position fen {position}".encode(), limit)
    except EngineFault as fault:
        if fault.reason != "no move":
            fault.add_note(f"asked: position fen {position}")
            raise
        return Search("", None, 0)
    return Search(reply.move, reply.score, reply.nodes)
