"""The plan of a run: its length, its noise, its expected gain, and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from spsa.core.params import Parameter, Space
from spsa.lab.planning.depth import busy_depth, depth_warnings, free_depth
from spsa.lab.planning.plan_warnings import PlanWarning, draw_warnings, space_warnings
from spsa.lab.planning.prospect import Recovery
from spsa.lab.planning.question import GameSpeed, Question, Shape, noise, pace

_WORTH_IT = 0.5  # a run that recovers less than half needs another budget
_LARGEST_BUDGET = 64


def budget_warnings(question: Question, usual: Recovery) -> Iterator[PlanWarning]:
    """The warnings about the number of games; `usual` is what they recover."""
    if usual.mean < 0:
        yield PlanWarning(
            name="spsa",
            found=f"with these settings {question.design.algorithm} loses Elo",
            remedy="use its defaults, or make its steps much smaller",
        )
    elif usual.mean < _WORTH_IT:
        yield _too_few(question, usual)


def _too_few(question: Question, usual: Recovery) -> PlanWarning:
    games = question.shape.iterations * question.shape.games
    found = (
        f"{games} games recover {usual.mean:.0%} of {question.elo_to_gain:g} Elo: "
        "too few for so many parameters"
    )
    return PlanWarning(name="max_iterations", found=found, remedy=_remedy(question))


def _remedy(question: Question) -> str:
    """How many games would recover half, and for how many parameters these games are enough."""
    remedies = []
    if (times := _enough_games(question)) is not None:
        remedies.append(f"{question.shape.iterations * times} iterations recover half")
    if (count := _possible_parameters(question)) is not None:
        parameters = "one parameter" if count == 1 else f"about {count} parameters"
        remedies.append(f"these games are enough for {parameters} with as much to gain")
    return ", or ".join(remedies) or f"not even {_LARGEST_BUDGET} times as many would recover half"


def _enough_games(question: Question) -> int | None:
    times = 2
    while times <= _LARGEST_BUDGET:
        problem = question.design.problem
        longer = replace(question.design, problem=replace(problem, pairs=problem.pairs * times))
        if question.recovery(longer, question.elo_to_gain).mean >= _WORTH_IT:
            return times
        times *= 2
    return None


def _possible_parameters(question: Question) -> int | None:
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
        if question.recovery(design, question.elo_to_gain).mean >= _WORTH_IT:
            return n
        n //= 2
    return None


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
