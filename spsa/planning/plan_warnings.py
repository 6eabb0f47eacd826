"""Warnings about a plan: what may be wrong with a space or a book."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from spsa.core.parameter import Parameter
from spsa.core.params import Space
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings

_MIN_STEPS, _MAX_STEPS = 4.0, 100.0  # of a range; Fishtest's has 20, of `init` at most 96

_WORTH_ANOTHER_BOOK = 0.9  # of the games

Told = tuple[str, str]
"""What was found, and a remedy."""


@dataclass(frozen=True, slots=True)
class PlanWarning:
    """A warning: a parameter or a key of config.toml, what was found, and a remedy."""

    name: str
    found: str
    remedy: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.found}; {self.remedy}"


def space_warnings(space: Space, c_last: float) -> Iterator[PlanWarning]:
    """The warnings about steps and ranges; `c_last` is the last perturbation, in steps."""
    for parameter in space.active:
        yield from _about(parameter, _of_range(parameter))
        yield from _about(parameter, _of_unit(parameter, c_last))
        yield from _about(parameter, _of_start(parameter))


def side_warnings(space: Space, c_first: float) -> Iterator[PlanWarning]:
    """The warnings about plus and minus that do not lie on both sides of the start.

    `c_first` is the first perturbation, in steps: the one that is played about the start.
    """
    for parameter in space.active:
        yield from _about(parameter, _of_reach(parameter, c_first))
    for parameter, told in _of_constraints(space, c_first):
        yield from _about(parameter, [told])


def _about(parameter: Parameter, told: Iterable[Told]) -> Iterator[PlanWarning]:
    for found, remedy in told:
        yield PlanWarning(parameter.name, found, remedy, parameter.line)


def book_warnings(openings: Openings) -> Iterator[PlanWarning]:
    """The warning about a book with which a run needs more games than with another kind."""
    ahead = min(0.0, UNBALANCED_ELO, key=openings.games_with)
    if (games := openings.games_with(ahead)) > _WORTH_ANOTHER_BOOK:
        return
    others, where = "balanced openings", '"builtin"'
    if ahead:
        others = f"openings in which one side is {ahead:g} Elo ahead"
        where = '"builtin:unbalanced"'
    found = (
        f"{openings.draw_rate:.0%} of the games are draws, and one side is "
        f"{openings.ahead:.0f} Elo ahead in the openings"
    )
    yield PlanWarning("book", found, f"{others} would need {1 - games:.0%} fewer games: {where}")


def _of_range(parameter: Parameter) -> Iterator[Told]:
    steps = (parameter.maximum - parameter.minimum) / parameter.step
    usual = f"{float(f'{(parameter.maximum - parameter.minimum) / 20:.3g}'):g}"
    if steps > _MAX_STEPS:
        found = f"the range is {steps:.0f} steps, a run moves a few: the step is too small"
        yield found, f"a step is worth one to three Elo; {usual} is a twentieth of the range"
    elif steps < _MIN_STEPS:
        remedy = "use a wider range"
        if parameter.step > parameter.unit:
            remedy = f"use a smaller step or a wider range; {usual} is a twentieth of the range"
        yield f"the range is {steps:.1f} steps: plus and minus span most of it", remedy


def _of_unit(parameter: Parameter, c_last: float) -> Iterator[Told]:
    unit, last = parameter.unit, c_last * parameter.step
    if unit and last < unit / 2:
        found = f"a perturbation of {last:.3g} is under half a unit"
        yield found, f"it is widened to {unit / 2:g}; use a step of {unit:g} or more"


def _of_reach(parameter: Parameter, c_first: float) -> Iterator[Told]:
    """A start at a bound has a warning of its own."""
    value, low, high = parameter.value, parameter.minimum, parameter.maximum
    reach = max(c_first * parameter.step, parameter.unit / 2)
    if low < value < high and not low <= value - reach < value + reach <= high:
        found = (
            f"plus or minus, {reach:.3g} from {value:g}, leaves {low:g} .. {high:g}: "
            "both are moved inside, and theta is not between them"
        )
        yield found, "widen the range, or use a smaller step"


def _of_constraints(space: Space, c_first: float) -> Iterator[tuple[Parameter, Told]]:
    """Parameters that a constraint keeps from being played on both sides of the start."""
    bound = {name for rule in space.constraints for name in (rule.less, rule.greater)}
    start = space.rounded(space.start())
    for index, parameter in enumerate(space.active):
        if parameter.name not in bound:
            continue
        offset = np.zeros(len(space.active))
        offset[index] = c_first
        played = space.realise(space.start(), offset, np.full(len(space.active), 0.5))
        plus, minus = played.plus[parameter.name], played.minus[parameter.name]
        here = start[parameter.name]
        if plus <= here or minus >= here:
            found = f"a constraint puts plus and minus on one side of {here:g}"
            remedy = "start further from the other parameter of the constraint"
            yield parameter, (f"{found}: {minus:g} and {plus:g} are played", remedy)


def _of_start(parameter: Parameter) -> Iterator[Told]:
    if parameter.value in (parameter.minimum, parameter.maximum):
        side = "min" if parameter.value == parameter.minimum else "max"
        found = f"the start is at its {side}, so half of the possible values are never tried"
        yield found, f"widen {side}, or start inside"
