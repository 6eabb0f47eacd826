"""What looks wrong about a space before it is played, a sentence each."""

from collections.abc import Iterator
from dataclasses import dataclass

from spsa.core.params import Parameter, Space

_FEWEST_STEPS, _MOST_STEPS = 4.0, 60.0  # of a sensible range; Fishtest's usual one has 20

_MOSTLY_DRAWN = 0.8  # from here on an unbalanced book tells more a pair; at 35% it only loses


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanWarning:
    """Something to look at: a parameter or a key of config.toml, what is found, and a cure."""

    name: str
    found: str
    remedy: str
    line: int | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.found}; {self.remedy}"


def of_space(space: Space, c_last: float) -> Iterator[PlanWarning]:
    """Steps that do not suit their ranges or units; `c_last` is the last perturbation, in steps."""
    for parameter in space.active:
        yield from _of_range(parameter)
        yield from _of_unit(parameter, c_last)
        yield from _of_start(parameter)


def of_draws(draw_rate: float) -> Iterator[PlanWarning]:
    """A balanced book that leaves too little to be seen."""
    if draw_rate >= _MOSTLY_DRAWN:
        yield PlanWarning(
            name="book",
            found=f"{draw_rate:.0%} draws say little",
            remedy="openings in which one side is well ahead make more pairs decisive",
        )


def _of_range(parameter: Parameter) -> Iterator[PlanWarning]:
    steps = (parameter.maximum - parameter.minimum) / parameter.step
    usual = f"{(parameter.maximum - parameter.minimum) / 20:.3g}"
    if steps > _MOST_STEPS:
        yield PlanWarning(
            name=parameter.name,
            found=f"the range is {steps:.0f} steps, of which a run moves a few: too small to see",
            remedy=f"a step is worth one to three Elo; {usual} is a twentieth of the range",
            line=parameter.line,
        )
    elif steps < _FEWEST_STEPS:
        yield PlanWarning(
            name=parameter.name,
            found=f"the range is {steps:.1f} steps: plus and minus span most of it",
            remedy="use a wider range"
            if parameter.step <= parameter.unit
            else f"use a smaller step or a wider range; {usual} is a twentieth of the range",
            line=parameter.line,
        )


def _of_unit(parameter: Parameter, c_last: float) -> Iterator[PlanWarning]:
    if parameter.unit and c_last * parameter.step < parameter.unit / 2:
        yield PlanWarning(
            name=parameter.name,
            found=f"a perturbation of {c_last * parameter.step:.3g} is under half a unit",
            remedy=f"it is widened to {parameter.unit / 2:g}; use a step of {parameter.unit:g} "
            "or more",
            line=parameter.line,
        )


def _of_start(parameter: Parameter) -> Iterator[PlanWarning]:
    if parameter.value in (parameter.minimum, parameter.maximum):
        side = "min" if parameter.value == parameter.minimum else "max"
        yield PlanWarning(
            name=parameter.name,
            found=f"the start is at its {side}: half of what could be learned is out of reach",
            remedy=f"widen {side}, or start inside",
            line=parameter.line,
        )
