"""Warnings about a plan: what may be wrong with a space or a book."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from spsa.core.parameter import Parameter
from spsa.core.params import Space
from spsa.planning.plan_inputs import UNBALANCED_ELO, Openings

_MIN_STEPS, _MAX_STEPS = 4.0, 60.0  # of a range; Fishtest's usual range has 20

_WORTH_ANOTHER_BOOK = 0.9  # of the games


@dataclass(frozen=True, slots=True, kw_only=True)
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
        yield from _range_warnings(parameter)
        yield from _unit_warnings(parameter, c_last)
        yield from _start_warnings(parameter)


def side_warnings(space: Space, c_first: float) -> Iterator[PlanWarning]:
    """The warnings about plus and minus that do not lie on both sides of the start.

    `c_first` is the first perturbation, in steps: the one that is played about the start.
    """
    for parameter in space.active:
        yield from _reach_warnings(parameter, c_first)
    yield from _constraint_warnings(space, c_first)


def book_warnings(openings: Openings) -> Iterator[PlanWarning]:
    """The warning about a book with which a run needs more games than with another kind."""
    ahead = min(0.0, UNBALANCED_ELO, key=openings.games_with)
    if (games := openings.games_with(ahead)) > _WORTH_ANOTHER_BOOK:
        return
    if ahead:
        others = f"openings in which one side is {ahead:g} Elo ahead"
        where = '"builtin:unbalanced"'
    else:
        others, where = "balanced openings", '"builtin"'
    yield PlanWarning(
        name="book",
        found=f"{openings.draw_rate:.0%} of the games are draws, and one side is "
        f"{openings.ahead:.0f} Elo ahead in the openings",
        remedy=f"{others} would need {1 - games:.0%} fewer games: {where}",
    )


def _range_warnings(parameter: Parameter) -> Iterator[PlanWarning]:
    steps = (parameter.maximum - parameter.minimum) / parameter.step
    usual = f"{float(f'{(parameter.maximum - parameter.minimum) / 20:.3g}'):g}"
    if steps > _MAX_STEPS:
        yield PlanWarning(
            name=parameter.name,
            found=f"the range is {steps:.0f} steps, a run moves a few: the step is too small",
            remedy=f"a step is worth one to three Elo; {usual} is a twentieth of the range",
            line=parameter.line,
        )
    elif steps < _MIN_STEPS:
        yield PlanWarning(
            name=parameter.name,
            found=f"the range is {steps:.1f} steps: plus and minus span most of it",
            remedy="use a wider range"
            if parameter.step <= parameter.unit
            else f"use a smaller step or a wider range; {usual} is a twentieth of the range",
            line=parameter.line,
        )


def _unit_warnings(parameter: Parameter, c_last: float) -> Iterator[PlanWarning]:
    if parameter.unit and c_last * parameter.step < parameter.unit / 2:
        yield PlanWarning(
            name=parameter.name,
            found=f"a perturbation of {c_last * parameter.step:.3g} is under half a unit",
            remedy=f"it is widened to {parameter.unit / 2:g}; use a step of {parameter.unit:g} "
            "or more",
            line=parameter.line,
        )


def _reach_warnings(parameter: Parameter, c_first: float) -> Iterator[PlanWarning]:
    """A start at a bound has a warning of its own."""
    value, low, high = parameter.value, parameter.minimum, parameter.maximum
    reach = max(c_first * parameter.step, parameter.unit / 2)
    if low < value < high and not low <= value - reach < value + reach <= high:
        yield PlanWarning(
            name=parameter.name,
            found=f"plus or minus, {reach:.3g} from {value:g}, leaves {low:g} .. {high:g}: "
            "both are moved inside, and theta is not between them",
            remedy="widen the range, or use a smaller step",
            line=parameter.line,
        )


def _constraint_warnings(space: Space, c_first: float) -> Iterator[PlanWarning]:
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
            yield PlanWarning(
                name=parameter.name,
                found=f"a constraint puts plus and minus on one side of {here:g}: "
                f"{minus:g} and {plus:g} are played",
                remedy="start further from the other parameter of the constraint",
                line=parameter.line,
            )


def _start_warnings(parameter: Parameter) -> Iterator[PlanWarning]:
    if parameter.value in (parameter.minimum, parameter.maximum):
        side = "min" if parameter.value == parameter.minimum else "max"
        yield PlanWarning(
            name=parameter.name,
            found=f"the start is at its {side}, so half of the possible values are never tried",
            remedy=f"widen {side}, or start inside",
            line=parameter.line,
        )
