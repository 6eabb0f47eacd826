"""Reads params.toml: each table is a parameter; `constraints` orders them."""

from collections.abc import Iterator
from pathlib import Path

from spsa.config.document import Document, read_document
from spsa.config.placement import read_placement
from spsa.config.section import Faults, Section, shown, suggestion
from spsa.core.params import (
    ArrayKnob,
    ArrayRole,
    Constraint,
    Parameter,
    Space,
    TableKnob,
    TableRole,
    circle,
    conflicts,
    feasible,
    target,
)
from spsa.errors import Fault, InvalidInput

_MAX_UNITS = 2**53  # whole numbers are exact in theta up to here
_MAX_STEPS = 1e9  # of a bound: theta is counted in steps and moves by parts of a thousandth
_MIN_STEP = 1e-12
_MAX_SCALE = 10**9
_LONGEST_NAME = 100
MAX_PARAMETERS = 5000
_MAX_CONSTRAINTS = 5000


def load_space(path: Path) -> Space:
    """Read params.toml. Raises InvalidInput with all that is wrong in it."""
    return space_of(read_document(path))


def space_of(document: Document) -> Space:
    """The space of a document with the tables of params.toml, whatever its format is.

    A parameter is a whole number (`type = "int"`) when `min`, `max` and `step` are; `value` does
    not count, because the master writes fractions there. A `scale`, or a fraction in one of the
    three, or the amplitude of a table makes it a real number (`type = "float"`).
    """
    space, faults = readable_space(document)
    if faults:
        raise InvalidInput(faults)
    return space


def readable_space(document: Document) -> tuple[Space, tuple[Fault, ...]]:
    """The parameters in which nothing is wrong, and all faults of the document."""
    faults = Faults(document)
    parameters: tuple[Parameter, ...] = ()
    try:
        parameters = _parameters(document, faults)
        constraints = _constraints(document, faults)
        _check_together(parameters, constraints, faults, complete=not len(faults))
    except InvalidInput:  # there are so many that reading has ended
        return Space(parameters), faults.found
    return Space(parameters, () if faults.found else constraints), faults.found


def _parameters(document: Document, faults: Faults) -> tuple[Parameter, ...]:
    """The parameters in which nothing is wrong, in the order of the file."""
    tables = [(name, table) for name, table in document.data.items() if name != "constraints"]
    if len(tables) > MAX_PARAMETERS:
        remedy = f"tune at most {MAX_PARAMETERS}, or whole tables by their knobs"
        faults.note((), document.path.name, f"{len(tables)} parameters are too many", remedy)
        return ()
    sections = [Section(faults, (name,), table) for name, table in tables]
    read = [(section, _parameter(section, document)) for section in sections]
    if not any(parameter.active for _, parameter in read):
        remedy = "add a table [name] with value, min, max and step; active = false freezes one"
        faults.note((), document.path.name, "nothing is to be tuned", remedy)
    return tuple(parameter for section, parameter in read if section.sound)


def _parameter(section: Section, document: Document) -> Parameter:
    name = section.name
    value, low, high = (section.number(key) for key in ("value", "min", "max"))
    step = section.number("step", above=0.0, least=_MIN_STEP)
    place = read_placement(section)
    scale = section.whole("scale", 0, least=1, most=_MAX_SCALE) or None
    parameter = Parameter(
        name=name,
        value=value,
        minimum=low,
        maximum=high,
        step=step,
        integral=_integral(section, (low, high, step), real=bool(scale) or _bends(place)),
        scale=scale,
        group=section.text("group"),
        active=section.flag("active", default=True),
        note=section.text("note", lines=True),
        place=place,
        option=section.text("option", name) or name,
        line=document.lines.get((name,)),
    )
    if not (name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME):
        remedy = "use letters, digits and _; `constant` and `option` take the engine's own names"
        section.fault(None, f"{name!r} is not a name for a parameter", remedy)
    if section.sound:
        _check(section, parameter)
    section.close()
    return parameter


def _bends(place: object) -> bool:
    return isinstance(place, TableKnob) and place.role is TableRole.AMPLITUDE


def _integral(section: Section, numbers: tuple[float, ...], *, real: bool) -> bool:
    whole = not real and all(number == int(number) for number in numbers)
    kind = section.choice("type", ("int", "float"), "int" if whole else "float")
    if kind == "int" and "scale" in section:
        section.fault("scale", 'scale does not go with type = "int"', "remove one of them")
    return kind == "int"


def _check(section: Section, p: Parameter) -> None:
    if p.minimum >= p.maximum:
        section.fault(
            "min", f"min {p.minimum:g} is not less than max {p.maximum:g}", "widen the range"
        )
    elif not p.minimum <= p.value <= p.maximum:
        remedy = f"use {p.minimum:g} to {p.maximum:g}, or move min or max"
        section.fault("value", f"value {p.value:g} is outside its bounds", remedy)
    if p.step > p.maximum - p.minimum > 0:
        section.fault(
            "step",
            f"step {p.step:g} is wider than the whole range",
            "use a tenth of the range, say",
        )
    largest = max(abs(p.minimum), abs(p.maximum))
    if largest > _MAX_STEPS * p.step:
        section.fault(
            "step",
            f"step {p.step:g} is lost beside values of {largest:g}",
            f"use at least {largest / _MAX_STEPS:g}",
        )
    if p.unit:
        _check_grid(section, p)


def _check_grid(section: Section, p: Parameter) -> None:
    if 2 * p.step < p.unit * (1 - 1e-9):
        remedy = f'use at least {p.unit / 2:g}, or type = "float" with a scale for finer values'
        section.fault(
            "step", f"step {p.step:g} is below what rounding to {p.unit:g} can express", remedy
        )
    for key, bound in (("min", p.minimum), ("max", p.maximum)):
        if abs(bound) / p.unit > _MAX_UNITS:
            section.fault(
                key, f"{key} {bound:g} is too large to be counted exactly", "use less than 2^53"
            )
        elif abs(p.nearest(bound) - bound) > 1e-6 * p.unit:
            remedy = f"use {p.nearest(bound)}" + (', or type = "float"' if p.integral else "")
            section.fault(key, f"{key} {bound:g} is no multiple of {p.unit:g}", remedy)


def _constraints(document: Document, faults: Faults) -> tuple[Constraint, ...]:
    written = document.data.get("constraints", [])
    if not isinstance(written, list):
        remedy = 'write constraints = ["a < b", "c <= d"]'
        faults.note(("constraints",), "constraints", f"{shown(written)} is not a list", remedy)
        return ()
    if len(written) > _MAX_CONSTRAINTS:
        remedy = f"write at most {_MAX_CONSTRAINTS}"
        faults.note(("constraints",), "constraints", f"{len(written)} are too many", remedy)
        return ()
    names = set(document.data) - {"constraints"}
    return tuple(one for text in written for one in _constraint(text, names, faults))


def _constraint(text: object, names: set[str], faults: Faults) -> Iterator[Constraint]:
    key = ("constraints",)
    try:
        constraint = Constraint.parse(str(text))
    except ValueError as error:
        faults.note(key, "constraints", str(error), 'write "a < b" or "a <= b"')
        return
    unknown = [name for name in (constraint.less, constraint.greater) if name not in names]
    for name in unknown:
        faults.note(key, "constraints", f"{text!r}: no parameter {name}", suggestion(name, names))
    if not unknown:
        yield constraint


def _check_together(
    parameters: tuple[Parameter, ...],
    constraints: tuple[Constraint, ...],
    faults: Faults,
    *,
    complete: bool,
) -> None:
    """Faults between several parameters; `complete` if all of them could be read."""
    names = {parameter.name for parameter in parameters}
    known = tuple(c for c in constraints if {c.less, c.greater} <= names)
    space = Space(parameters, known)
    _check_order(space, faults)
    _check_options(space, faults)
    for earlier, later in ((one.name, two) for one, two in conflicts(space)):
        found = f"{target(later.place)} is written by {earlier} already"
        faults.note((later.name,), later.name, found, "leave it to one of them")
    for knob in space.parameters if complete else ():
        if isinstance(knob.place, ArrayKnob):
            _check_partner(space, knob, knob.place, faults)


def _check_options(space: Space, faults: Faults) -> None:
    owners: dict[str, str] = {}
    for parameter in space.parameters:
        owner = owners.setdefault(parameter.option, parameter.name)
        if owner != parameter.name:
            found = f"option {parameter.option!r} is that of {owner} already"
            faults.note((parameter.name, "option"), parameter.name, found, "use another option")


def _check_order(space: Space, faults: Faults) -> None:
    if names := sorted(circle(space.constraints)):
        found = f"{', '.join(names)} are in a circle"
        faults.note(("constraints",), "constraints", found, "remove one of the constraints")
        return
    for name, (low, high) in feasible(space.parameters, space.constraints).items():
        if low > high:
            found = f"nothing is left of {name}: at least {low:g} and at most {high:g}"
            faults.note(("constraints",), "constraints", found, "widen min and max, or thaw it")


def _check_partner(space: Space, knob: Parameter, place: ArrayKnob, faults: Faults) -> None:
    wanted = ArrayRole.PER_INDEX if place.role is ArrayRole.BASE else ArrayRole.BASE
    others = [p.place for p in space.parameters if isinstance(p.place, ArrayKnob) and p is not knob]
    partner = next((o for o in others if o.array == place.array and o.role is wanted), None)
    if partner is None:
        remedy = (
            f'add a parameter with array = "{place.array}", knob = "{wanted}" (it may be frozen)'
        )
        faults.note((knob.name, "array"), knob.name, f"{place.array} has no knob {wanted}", remedy)
    elif (partner.first, partner.last) != (place.first, place.last):
        found = f"the two knobs of {place.array} fill different elements"
        faults.note((knob.name, "array"), knob.name, found, "give both the same first and last")
