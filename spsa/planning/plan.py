"""A run judged before it is played: its length, its noise, what it will bring, what is wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from spsa.params import Space
from spsa.planning.cautions import Caution, of_space
from spsa.planning.pace import Fleet, Pace, Shape, depth_without_idling, pace
from spsa.planning.prospect import Design, Prospect, Recovery, recovery
from spsa.scoring import ELO_PER_SCORE

STAKES = (5.0, 20.0, 60.0)
"""Elo there may be to gain when nobody says how much."""

_DEPTHS = (2, 4, 8, 16)
_WORTH_IT = 0.5  # a run that recovers less than half wants another budget
_FREE = 0.01  # of the stake: what depth may cost
_UNSEEN = 0.03  # and what it may cost where so few simulated runs cannot tell it from nothing
_LARGEST_BUDGET = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One parameter in its own units: how far plus and minus are from theta, and theta's moves."""

    name: str
    value: float
    c_first: float
    c_last: float
    move_first: float
    move_last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`noise` is one standard deviation of an iteration's Elo.

    `recoveries` are by the assumed stake in Elo. `free_depth` is the most iterations in flight
    that cost nothing, `busy_depth` the fewest that leave no slot idle, None without a pace.
    """

    shape: Shape
    pace: Pace | None
    noise: float
    recoveries: dict[float, Recovery]
    lines: tuple[Line, ...]
    free_depth: int
    busy_depth: int | None
    cautions: tuple[Caution, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be planned, and what is known or assumed of it.

    `seconds` is what a game takes, None where nobody knows; `design` is simulated `replicas` times
    from `seed`, for an engine with each of the `stakes` to gain.
    """

    space: Space
    design: Design
    shape: Shape
    fleet: Fleet
    seconds: float | None
    draw_rate: float
    stakes: Sequence[float] = STAKES
    replicas: int = 32
    seed: int = 1

    def recovery(self, design: Design, stake: float) -> Recovery:
        prospect = Prospect(stake=stake, draw_rate=self.draw_rate)
        return recovery(design, prospect, replicas=self.replicas, seed=self.seed)

    @property
    def stake(self) -> float:
        """The one that single figures are given for."""
        return self.stakes[len(self.stakes) // 2]


def plan(question: Question) -> Plan:
    """Everything that can be said before the first game."""
    recoveries = {stake: question.recovery(question.design, stake) for stake in question.stakes}
    usual = recoveries[question.stake]
    free = free_depth(question)
    shape, seconds = question.shape, question.seconds
    known = None if seconds is None else pace(shape, question.fleet, seconds)
    busy = None if seconds is None else depth_without_idling(shape, question.fleet, seconds)
    return Plan(
        shape=shape,
        pace=known,
        noise=noise(question.draw_rate, shape.games // 2),
        recoveries=recoveries,
        lines=tuple(_lines(question.space, usual)),
        free_depth=free,
        busy_depth=busy,
        cautions=(
            *of_space(question.space, usual.c_last),
            *_of_budget(question, usual),
            *_of_depth(question, free, busy),
        ),
    )


def noise(draw_rate: float, pairs: int) -> float:
    """One standard deviation of the Elo of so many pairs between equals: C tau / (2 sqrt P)."""
    return ELO_PER_SCORE * sqrt(2 * (1 - draw_rate)) / (2 * sqrt(pairs))


def free_depth(question: Question) -> int:
    """The most iterations in flight that cost less than a hundredth of the stake, or no more
    than can be told from nothing."""
    design = replace(question.design, depth=1)
    alone = question.recovery(design, question.stake)
    free = 1
    for depth in _DEPTHS:
        if depth >= design.problem.iterations:
            break
        lost, error = alone.better_than(
            question.recovery(replace(design, depth=depth), question.stake)
        )
        if lost > max(_FREE, min(2 * error, _UNSEEN)):
            break
        free = depth
    return free


def _lines(space: Space, usual: Recovery) -> Iterator[Line]:
    for parameter in space.active:
        step = parameter.step
        yield Line(
            name=parameter.name,
            value=parameter.value,
            c_first=max(usual.c_first * step, parameter.unit / 2),
            c_last=max(usual.c_last * step, parameter.unit / 2),
            move_first=usual.first * step,
            move_last=usual.last * step,
        )


def _of_budget(question: Question, usual: Recovery) -> Iterator[Caution]:
    if usual.mean >= _WORTH_IT:
        return
    games = question.shape.iterations * question.shape.games
    found = (
        f"{games} games recover {usual.mean:.0%} of {question.stake:g} Elo: "
        "too few for so many parameters"
    )
    yield Caution(name="max_iterations", found=found, remedy=_cure(question))


def _cure(question: Question) -> str:
    """How many games would recover half, and how many parameters these games would carry."""
    cures = []
    if (times := _enough_games(question)) is not None:
        cures.append(f"{question.shape.iterations * times} iterations recover half")
    if (carried := _carried(question)) is not None:
        cures.append(f"these games carry about {carried} parameters with as much to gain")
    return ", or ".join(cures) or f"not even {_LARGEST_BUDGET} times as many would recover half"


def _enough_games(question: Question) -> int | None:
    times = 2
    while times <= _LARGEST_BUDGET:
        problem = question.design.problem
        longer = replace(question.design, problem=replace(problem, pairs=problem.pairs * times))
        if question.recovery(longer, question.stake).mean >= _WORTH_IT:
            return times
        times *= 2
    return None


def _carried(question: Question) -> int | None:
    problem = question.design.problem
    n = problem.start.size // 2
    while n:
        fewer = replace(
            problem,
            start=problem.start[:n],
            lower=problem.lower[:n],
            upper=problem.upper[:n],
            unit=problem.unit[:n],
        )
        design = replace(question.design, problem=fewer)
        if question.recovery(design, question.stake).mean >= _WORTH_IT:
            return n
        n //= 2
    return None


def _of_depth(question: Question, free: int, busy: int | None) -> Iterator[Caution]:
    depth = question.shape.depth
    if depth > free:
        yield Caution(
            name="iterations_in_flight",
            found=f"{depth} lets theta move on results that are out of date",
            remedy=f"{free} costs nothing",
        )
    elif busy is not None and busy > depth:
        best = min(busy, free)
        yield Caution(
            name="iterations_in_flight",
            found=f"with {depth} slots wait for builds or for the last games of an iteration",
            remedy=f"{busy} keeps them busy, {free} costs nothing: use {best}"
            if best > depth
            else "more games in an iteration keep them busy",
        )
