"""The plan of a run: its length, its noise, its expected gain, and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass

from spsa.core.params import Parameter, Space
from spsa.lab.planning.budget import budget_warnings
from spsa.lab.planning.depth import busy_depth, depth_warnings, free_depth
from spsa.lab.planning.plan_warnings import PlanWarning, draw_warnings, space_warnings
from spsa.lab.planning.prospect import Recovery
from spsa.lab.planning.question import Question, noise
from spsa.lab.planning.speed import GameSpeed, Shape, pace


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One parameter in its own unit: the perturbation, and the typical step of theta."""

    name: str
    value: float
    c_first: float
    c_last: float
    move_first: float
    move_last: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`noise` is one standard deviation of an iteration's Elo.

    `recoveries` are by the assumed Elo to gain. `free_depth` is the most iterations in flight that
    cost nothing, `busy_depth` the fewest that leave no slot idle; None without a pace.
    """

    shape: Shape
    pace: GameSpeed | None
    noise: float
    recoveries: dict[float, Recovery]
    lines: tuple[Line, ...]
    free_depth: int
    busy_depth: int | None
    warnings: tuple[PlanWarning, ...]


def plan(question: Question) -> Plan:
    """Compute the plan of a run."""
    recoveries = {
        elo_to_gain: question.recovery(question.design, elo_to_gain)
        for elo_to_gain in question.elos_to_gain
    }
    usual = recoveries[question.elo_to_gain]
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
        warnings=(
            *space_warnings(question.space, usual.c_last),
            *draw_warnings(question.draw_rate),
            *budget_warnings(question, usual),
            *depth_warnings(question, free, busy),
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
    """c steps in the parameter's unit, at least half a unit and at most half its range."""
    room = (parameter.maximum - parameter.minimum) / 2
    return min(max(c * parameter.step, parameter.unit / 2), room)
