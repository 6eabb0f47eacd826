"""A run judged before it is played: its length, its noise, what it will bring, what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass

from spsa.core.params import Parameter, Space
from spsa.lab.planning.budget import of_budget
from spsa.lab.planning.depth import busy_depth, free_depth, of_depth
from spsa.lab.planning.plan_warnings import PlanWarning, of_draws, of_space
from spsa.lab.planning.prospect import Recovery
from spsa.lab.planning.question import Question, noise
from spsa.lab.planning.speed import GameSpeed, Shape, pace


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
    pace: GameSpeed | None
    noise: float
    recoveries: dict[float, Recovery]
    lines: tuple[Line, ...]
    free_depth: int
    busy_depth: int | None
    cautions: tuple[PlanWarning, ...]


def plan(question: Question) -> Plan:
    """Everything that can be said before the first game."""
    recoveries = {stake: question.recovery(question.design, stake) for stake in question.stakes}
    usual = recoveries[question.stake]
    free = free_depth(question)
    shape, seconds = question.shape, question.seconds
    known = None if seconds is None else pace(shape, question.fleet, seconds)
    busy = busy_depth(question)
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
            *of_draws(question.draw_rate),
            *of_budget(question, usual),
            *of_depth(question, free, busy),
        ),
    )


def _lines(space: Space, usual: Recovery) -> Iterator[Line]:
    for parameter in space.active:
        step = parameter.step
        yield Line(
            name=parameter.name,
            value=parameter.value,
            c_first=_playable(parameter, usual.c_first),
            c_last=_playable(parameter, usual.c_last),
            move_first=usual.first * step,
            move_last=usual.last * step,
        )


def _playable(parameter: Parameter, c: float) -> float:
    """c steps in the parameter's unit: half a unit at least, and half its range at most."""
    room = (parameter.maximum - parameter.minimum) / 2
    return min(max(c * parameter.step, parameter.unit / 2), room)
