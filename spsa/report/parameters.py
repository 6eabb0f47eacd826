"""The parameters of a run as they stand: value, bounds, how far they moved, what is known."""

from collections.abc import Mapping
from dataclasses import dataclass

from spsa.core.params import Parameter, Space
from spsa.core.stored_json import as_written
from spsa.db.tables import Run

AT_BOUND_STEPS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterStatus:
    """One parameter: where it started, where theta has it now, and what else is known of it.

    `averaged` and `supported` are None as long as nothing is known, deviations also where a
    parameter is frozen, or the games do not say them.
    """

    name: str
    group: str
    active: bool
    start: float
    value: float
    played: float
    averaged: float | None
    averaged_sd: float | None
    supported: float | None
    supported_sd: float | None
    minimum: float
    maximum: float
    step: float

    @property
    def steps_moved(self) -> float:
        return (self.value - self.start) / self.step

    @property
    def supported_is_theta(self) -> bool:
        """Whether `supported` says nothing that theta does not."""
        return self.supported_sd is None and self.supported == self.value

    @property
    def bound(self) -> str:
        """Which bound theta is at, within half a step; empty if at none."""
        near = AT_BOUND_STEPS * self.step
        if self.value - self.minimum < near:
            return "min"
        return "max" if self.maximum - self.value < near else ""


def parameters(run: Run) -> tuple[ParameterStatus, ...]:
    """Every parameter of a run with its start and its present value."""
    space = Space.from_json(run.space)
    with as_written("a column `theta` or `start_theta`"):
        played: Mapping[str, float] = space.rounded(space.steps(run.theta))
        known = run.estimates.by_name()
        return tuple(_tuned(run, p, played[p.name], known) for p in space.parameters)


def _tuned(
    run: Run, parameter: Parameter, played: float, known: Mapping[str, Mapping[str, float] | None]
) -> ParameterStatus:
    name = parameter.name
    return ParameterStatus(
        name=name,
        group=parameter.group,
        active=parameter.active,
        start=run.start_theta[name],
        value=run.theta[name],
        played=played,
        **{what: (values or {}).get(name) for what, values in known.items()},
        minimum=parameter.minimum,
        maximum=parameter.maximum,
        step=parameter.step,
    )
