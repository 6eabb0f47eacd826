"""Plans what a person changes of a run that goes on: bounds, step, frozen or not, a new parameter.

A change is in force from the next iteration that is opened. Iterations that are open keep the
points that they play; their results count in the space in which they are applied. A change is one
more entry of the history, between two steps, so the replay makes it again at the same place.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spsa.algorithms.tuning import Tuning
from spsa.config.projection import KEYS
from spsa.config.section import suggestion
from spsa.config.space import check_space
from spsa.core.params import Constraint, Parameter, Space
from spsa.db.entries import NewChange
from spsa.db.run_tables import Run
from spsa.db.store import Store
from spsa.errors import Fault, IllegalTransition, InvalidInput, NothingToDo

_TRIES = 20
"""How often a change is planned again if the run moves meanwhile, once an iteration."""

ORIGIN = "params set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What to change of one parameter, in the unit of params.toml; None leaves it as it is."""

    name: str
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    active: bool | None = None

    def on(self, run: Run, space: Space) -> Space:
        """The space of a run with the changed parameter."""
        names = {p.name for p in space.parameters}
        if self.name not in names:
            raise _unknown(run, self.name, names)
        edited = (
            self._of(p, run.theta[p.name]) if p.name == self.name else p for p in space.parameters
        )
        return replace(space, parameters=tuple(edited))

    def _of(self, parameter: Parameter, value: float) -> Parameter:
        """The changed parameter, whose theta is `value`; a frozen one stays there."""
        after = replace(
            parameter,
            minimum=_given(self.minimum, parameter.minimum, parameter),
            maximum=_given(self.maximum, parameter.maximum, parameter),
            step=_given(self.step, parameter.step, parameter),
        )
        if self.active is not None:
            after = replace(after, active=self.active)
        if after.active != parameter.active:
            after = replace(after, value=value)
        if not after.active:
            return after
        return replace(after, value=min(max(after.value, after.minimum), after.maximum))


@dataclass(frozen=True, slots=True)
class Addition:
    """A parameter that a run is to tune from now on, and the constraints that name it.

    Its value is the one that the engines of the run have already, so theta can hold the results.
    `partner` is the other knob of its array: one of them alone does not say its elements.
    """

    parameter: Parameter
    constraints: tuple[Constraint, ...] = ()
    partner: Parameter | None = None

    @property
    def name(self) -> str:
        return self.parameter.name

    def on(self, run: Run, space: Space) -> Space:
        """The space of a run with the new parameter, and its partner, at its end."""
        if self.name in run.theta:
            raise NothingToDo(f"run {run.name} has the parameter {self.name} already")
        both = (self.parameter,) if self.partner is None else (self.parameter, self.partner)
        return Space((*space.parameters, *both), (*space.constraints, *self.constraints))


def _given(number: float | None, usual: float, parameter: Parameter) -> float:
    """A given number as params.toml would have it: whole where the parameter is."""
    if number is None:
        return usual
    return int(number) if parameter.integral and number == int(number) else number


def change_space(
    store: Store,
    run: Run,
    tuning_of: Callable[[Run], Tuning],
    edit: Edit | Addition,
    actor: str,
    reason: str,
) -> Mapping[str, Any]:
    """Change or add one parameter of a run; what was and what is, by the names of params.toml.

    If the run moves meanwhile, the change is planned again.

    Raises:
        InvalidInput: there is no such parameter, or params.toml could not say this of it.
        IllegalTransition: the run has ended.
        NothingToDo: all of it is so already.
    """
    for _ in range(_TRIES):
        new = plan_change(run, tuning_of(run), edit, actor, reason)
        try:
            store.change_space(run.id, new)
        except IllegalTransition as error:
            refused, before = error, (run.applied, run.purges, run.changes)
            run = store.run(run.name)
            if (run.applied, run.purges, run.changes) == before:
                raise
        else:
            return new.detail
    raise refused


def plan_change(
    run: Run, tuning: Tuning, edit: Edit | Addition, actor: str, reason: str
) -> NewChange:
    """The change of a run as it is now."""
    before = Space.from_json(run.space)
    after = edit.on(run, before)
    check_space(after, edit.name, ORIGIN)
    rules = tuning.on(after)
    theta, state = rules.carried(tuning, run.state, run.theta)
    detail = dict(_differences(before, after, edit.name))
    if isinstance(edit, Addition) and edit.partner is not None:
        partner = edit.partner.name
        check_space(after, partner, ORIGIN)
        detail["partner"] = {"parameter": partner, **dict(_differences(before, after, partner))}
    if not detail:
        raise NothingToDo(f"{edit.name} of run {run.name} has these values already")
    was = run.theta.get(edit.name, theta[edit.name])
    if theta[edit.name] != was:
        detail["theta"] = {"was": was, "is": theta[edit.name]}
    return NewChange(
        applied=run.applied,
        purges=run.purges,
        changes=run.changes,
        space=after.to_json(),
        theta_before=run.theta,
        theta_after=theta,
        estimates=rules.estimates(state),
        state=state,
        actor=actor,
        reason=reason,
        detail={"parameter": edit.name, **detail},
    )


def _unknown(run: Run, name: str, names: set[str]) -> InvalidInput:
    found, remedy = f"run {run.name} has no such parameter", suggestion(name, names)
    return InvalidInput([Fault(file=ORIGIN, line=None, name=name, found=found, remedy=remedy)])


def _differences(before: Space, after: Space, name: str) -> Iterator[tuple[str, Any]]:
    one, other = (next((p for p in s.parameters if p.name == name), None) for s in (before, after))
    if one is None:
        keys = {"value": "value", **KEYS}
        yield "added", {key: getattr(other, attribute) for attribute, key in keys.items()}
        return
    for attribute, key in KEYS.items():
        was, now = getattr(one, attribute), getattr(other, attribute)
        if was != now:
            yield key, {"was": was, "is": now}
