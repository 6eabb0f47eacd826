"""The plan of a run: its length, its noise, its expected gain, and warnings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from spsa.core.parameter import Parameter
from spsa.core.params import Space
from spsa.planning.games_needed import ITERATIONS_PER_ONE_IN_FLIGHT
from spsa.planning.plan_inputs import (
    GameSpeed,
    PlanInputs,
    Shape,
    in_flight_without_idling,
    noise,
    pace,
)
from spsa.planning.plan_warnings import PlanWarning, book_warnings, side_warnings, space_warnings
from spsa.planning.recovery import Recovery, coarser
from spsa.text import plural

_WORTH_IT = 0.5  # a run that recovers less than half needs another budget
_LARGEST_BUDGET = 64


def budget_warnings(inputs: PlanInputs, usual: Recovery) -> Iterator[PlanWarning]:
    """The warnings about the number of games; `usual` is what they recover."""
    if usual.mean < 0:
        found = f"with these settings {inputs.design.algorithm} loses Elo"
        yield PlanWarning("spsa", found, "use its defaults, or make its steps much smaller")
    elif usual.mean < _WORTH_IT:
        games = inputs.shape.iterations * inputs.shape.games
        found = (
            f"{games:,} games recover {usual.mean:.0%} of {inputs.elo_to_gain:g} Elo: "
            "too few for so many parameters"
        )
        yield PlanWarning("max_iterations", found, _remedy(inputs))


def _remedy(inputs: PlanInputs) -> str:
    """How many games would recover half, and for how many parameters these games are enough."""
    remedies = []
    if (times := _enough_games(inputs)) is not None:
        remedies.append(f"{inputs.shape.iterations * times:,} iterations recover half")
    if (count := _possible_parameters(inputs)) is not None:
        parameters = "one parameter" if count == 1 else f"about {count} parameters"
        remedies.append(f"these games are enough for {parameters} with as much to gain")
    return ", or ".join(remedies) or f"not even {_LARGEST_BUDGET} times as many would recover half"


def _enough_games(inputs: PlanInputs) -> int | None:
    times = 2
    while times <= _LARGEST_BUDGET:
        problem = inputs.design.problem
        longer = replace(inputs.design, problem=replace(problem, pairs=problem.pairs * times))
        if inputs.recovery(longer, inputs.elo_to_gain).mean >= _WORTH_IT:
            return times
        times *= 2
    return None


def _possible_parameters(inputs: PlanInputs) -> int | None:
    problem = inputs.design.problem
    n = problem.start.size // 2
    while n:
        fewer = replace(
            problem,
            start=problem.start[:n],
            lower=problem.lower[:n],
            upper=problem.upper[:n],
            unit=problem.unit[:n],
        )
        design = replace(inputs.design, problem=fewer)
        if inputs.recovery(design, inputs.elo_to_gain).mean >= _WORTH_IT:
            return n
        n //= 2
    return None


_SMALLER = 0.7  # a smaller change of the games in an iteration is not worth a warning
_WORTH_A_CHANGE = 0.01  # of the Elo to gain


def size_warnings(inputs: PlanInputs, usual: Recovery) -> Iterator[PlanWarning]:
    """The warning about iterations larger than the fleet needs; `usual` is what these recover.

    None for a rule with settings, whose gains may be meant for just so many iterations.
    """
    design, shape, fit = inputs.design, inputs.shape, inputs.fitted
    if design.settings or fit.games > _SMALLER * shape.games:
        return
    problem = replace(design.problem, iterations=fit.iterations, pairs=fit.games // 2)
    smaller, _ = coarser(replace(design, problem=problem, in_flight=fit.in_flight, grows=True))
    better, error = inputs.recovery(smaller, inputs.elo_to_gain).better_than(usual)
    if better > max(_WORTH_A_CHANGE, 2 * error):
        elo, by = better * inputs.elo_to_gain, 1.96 * error * inputs.elo_to_gain
        automatic = "" if shape.adapts else ', iterations_in_flight = "auto"'
        found = (
            f"as many games in smaller iterations recover {elo:.1f} ± {by:.1f} Elo more of "
            f"{inputs.elo_to_gain:g}, and the slots are as busy"
        )
        remedy = f"games_per_iteration = {fit.games}, max_iterations = {fit.iterations}{automatic}"
        yield PlanWarning("games_per_iteration", found, remedy)


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

    `recoveries` are by the assumed Elo to gain. `free_in_flight` is the most iterations
    in flight that cost nothing, `busy_in_flight` the fewest that leave no slot idle; None
    without a pace.
    """

    shape: Shape
    pace: GameSpeed | None
    noise: float
    recoveries: dict[float, Recovery]
    lines: tuple[Line, ...]
    free_in_flight: int
    busy_in_flight: int | None
    warnings: tuple[PlanWarning, ...]


def most_designs(inputs: PlanInputs) -> int:
    """How many designs `plan` simulates at most: half of them only where the games are too few."""
    tries = _LARGEST_BUDGET.bit_length() - 1 + inputs.design.problem.start.size.bit_length()
    return len(inputs.elos_to_gain) + tries + 1 + len(_DEPTHS) + 1


def plan(inputs: PlanInputs) -> Plan:
    """Compute the plan of a run."""
    recoveries = {
        elo_to_gain: inputs.recovery(inputs.design, elo_to_gain)
        for elo_to_gain in inputs.elos_to_gain
    }
    usual = recoveries[inputs.elo_to_gain]
    free = free_in_flight(inputs)
    shape, seconds = inputs.shape, inputs.seconds
    known = None if seconds is None else pace(shape, inputs.capacity, seconds)
    busy = busy_in_flight(inputs)
    return Plan(
        shape=shape,
        pace=known,
        noise=noise(inputs.draw_rate, shape.games // 2),
        recoveries=recoveries,
        lines=tuple(_lines(inputs.space, usual)),
        free_in_flight=free,
        busy_in_flight=busy,
        warnings=(
            *space_warnings(inputs.space, usual.c_last),
            *side_warnings(inputs.space, usual.c_first),
            *(() if inputs.openings is None else book_warnings(inputs.openings)),
            *budget_warnings(inputs, usual),
            *size_warnings(inputs, usual),
            *in_flight_warnings(inputs, free, busy if known and known.idle > _IDLE else None),
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


_DEPTHS = (2, 4, 8)
_IDLE = 0.01  # the part of the time that slots may wait
_FREE = 0.01  # the part of the Elo to gain that iterations in flight may cost
_INSIGNIFICANT = 0.03  # the same, if so few simulated runs cannot tell it from 0


def free_in_flight(inputs: PlanInputs) -> int:
    """The most iterations in flight that cost less than a hundredth of the Elo to gain.

    The simulated engines are easier than many real ones, so the length of the run limits them too.
    """
    design = replace(inputs.design, in_flight=1, grows=False)
    alone = inputs.recovery(design, inputs.elo_to_gain)
    free = 1
    for in_flight in _DEPTHS:
        if in_flight > inputs.shape.iterations / ITERATIONS_PER_ONE_IN_FLIGHT:
            break
        lost, error = alone.better_than(
            inputs.recovery(replace(design, in_flight=in_flight), inputs.elo_to_gain)
        )
        if costs_elo(lost, error):
            break
        free = in_flight
    return free


def costs_elo(lost: float, error: float) -> bool:
    """Whether this part of the Elo to gain, known to one standard error, is a loss."""
    return lost > max(_FREE, min(2 * error, _INSIGNIFICANT))


def busy_in_flight(inputs: PlanInputs) -> int | None:
    """The fewest in flight that keep every slot busy; None if the time of a game is unknown.

    If their number follows the fleet, it is that of the `GamesNeeded`, which starts builds late.
    """
    games_needed = inputs.games_needed
    if games_needed is None or inputs.shape.adapts:
        return None if games_needed is None else games_needed.in_flight
    return in_flight_without_idling(inputs.shape, inputs.capacity, games_needed.game_seconds)


def in_flight_warnings(inputs: PlanInputs, free: int, busy: int | None) -> Iterator[PlanWarning]:
    """The warnings about the configured iterations in flight."""
    in_flight = inputs.shape.in_flight
    if inputs.builds_are_slower:
        found = "its games end before the next engines are built, for any number in flight"
        remedy = "more games in an iteration, or a delivery without builds, keep slots busy"
        if (fit := inputs.fitted).games > inputs.shape.games:
            changed = f"games_per_iteration = {fit.games} and max_iterations = {fit.iterations}"
            remedy = f"{changed} shorten it"
        yield PlanWarning("games_per_iteration", found, remedy)
    if inputs.shape.adapts:
        yield from _fleet_warnings(inputs, busy)
    elif in_flight > free:
        found = f"{in_flight} moves theta by outdated results"
        yield PlanWarning("iterations_in_flight", found, f"{free} costs nothing")
    elif not inputs.builds_are_slower and busy is not None and busy > in_flight:
        best = min(busy, free)
        remedy = "more games in an iteration keep them busy"
        if best > in_flight:
            remedy = f"{busy} would keep them busy, {free} costs nothing: use {best}"
        found = f"{in_flight} in flight lets slots wait for builds or for the last games of one"
        yield PlanWarning("iterations_in_flight", found, remedy)


def _fleet_warnings(inputs: PlanInputs, busy: int | None) -> Iterator[PlanWarning]:
    """The warning about a fleet that is too large for the run."""
    shape, games_needed = inputs.shape, inputs.games_needed
    if busy is None or games_needed is None or busy <= shape.in_flight:
        return
    found = (
        f"{plural(busy, 'iteration')} in flight would keep {plural(games_needed.slots, 'slot')} "
        f"busy, and a run of {shape.iterations} allows {shape.in_flight}: slots will wait"
    )
    yield PlanWarning("games_per_iteration", found, games_needed.remedy(shape.in_flight))
