"""params.toml: each table is a parameter; `constraints` orders them.

It is read into a space, and written: theta into the file that is there, or a space as a new one.
"""

from collections.abc import Iterator, Mapping
from math import floor, log10
from pathlib import Path
from typing import Annotated, Any, Literal

import tomli_w
import tomlkit
from pydantic import AfterValidator, Field
from tomlkit.items import InlineTable

from spsa.config.document import Document, Found, read_document, shown
from spsa.config.section import OptionalText, Section, Text, read_table, refusal
from spsa.core.parameter import (
    Constraint,
    Knob,
    Location,
    Number,
    Parameter,
    circle,
    conflicts,
    feasible,
)
from spsa.core.params import Space
from spsa.errors import Fault, InvalidInput
from spsa.files import write_whole
from spsa.text import suggestion

MAX_PARAMETERS = 5000
_MAX_NUMBER = 1e15  # beyond it a float cannot tell whole numbers apart
_MAX_STEPS = 1e9  # of a bound: theta is counted in steps and moves by parts of a thousandth
_LONGEST_NAME = 100
_ORDERS = ("constraints",)

Finite = Annotated[Number, Field(ge=-_MAX_NUMBER, le=_MAX_NUMBER)]


def _constant(text: str) -> str:
    try:
        Location.parse(text)
    except ValueError as error:
        remedy = 'write "NAME", "NAME[2]", "NAME.1" or "path/to/file.rs::NAME"'
        raise refusal(str(error), remedy) from None
    return text


Name = Annotated[Text, AfterValidator(_constant)]


class ParameterSection(Section):
    """A parameter; the name of the table is its own.

    It is a whole number (`type = "int"`) when `min`, `max` and `step` are; `value` does not count,
    because the master writes fractions there. A `scale`, or a fraction in one of the three, makes
    it a real number (`type = "float"`).
    """

    value: Finite
    """where the run starts, then theta"""
    min: Finite
    """lowest value that is played"""
    max: Finite
    """highest value that is played"""
    step: Annotated[Number, Field(ge=1e-12, le=_MAX_NUMBER)]
    """unit of theta, at most max - min; one step should be worth one to three Elo"""
    type: Literal["int", "float"] | None = None
    """whether whole numbers are played; by default if `min`, `max` and `step` are whole numbers"""
    scale: Annotated[int | None, Field(ge=1, le=10**9)] = None
    """the constant is the value times this, rounded: 0.75 with `scale = 1000` is 750"""
    group: Text = ""
    """heading in reports"""
    active: bool = True
    """`false`: the value is built in and not tuned"""
    note: str = ""
    """for people; may have several lines"""
    constant: Name | None = None
    """the constant in the source; by default the parameter's name in capitals"""
    array: Name | None = None
    """an array that two parameters fill: element i = base + i * per_index"""
    knob: Literal["base", "per_index"] | None = None
    """which of the two it is"""
    option: OptionalText = None
    """UCI option, with `[delivery] engine`; by default the parameter's name"""

    @property
    def integral(self) -> bool:
        if self.type is not None:
            return self.type == "int"
        return self.scale is None and all(n == int(n) for n in (self.min, self.max, self.step))

    def parameter(self, name: str, line: int | None = None) -> Parameter:
        own = self.model_dump(include={"value", "step", "scale", "group", "active", "note"})
        return Parameter(
            name=name,
            minimum=self.min,
            maximum=self.max,
            integral=self.integral,
            location=Location.parse(self.array or self.constant or name.upper()),
            role=Knob(self.knob or Knob.VALUE),
            option=self.option or name,
            line=line,
            **own,
        )

    def faults(self) -> Iterator[Found]:
        if self.array is not None and self.constant is not None:
            yield ("array",), "constant and array are both given", "keep one of them"
        if self.array is not None and self.knob is None:
            yield ("knob",), "knob is missing", 'write knob = "base" or "per_index"'
        if self.array is None and self.knob is not None:
            yield ("knob",), "knob is given without array", "remove it, or add array"
        if self.type == "int" and self.scale is not None:
            yield ("scale",), 'scale does not go with type = "int"', "remove one of them"
        else:
            yield from self._faults_of_range()

    def _faults_of_range(self) -> Iterator[Found]:
        low, high, step = self.min, self.max, self.step
        if low >= high:
            yield ("min",), f"min {low:g} is not less than max {high:g}", "widen the range"
        elif not low <= self.value <= high:
            remedy = f"use {low:g} to {high:g}, or move min or max"
            yield ("value",), f"value {self.value:g} is outside its bounds", remedy
        if low < high < low + step:
            found = f"step {step:g} is wider than the whole range"
            yield ("step",), found, "use a tenth of the range, say"
        if (largest := max(abs(low), abs(high))) > _MAX_STEPS * step:
            found = f"step {step:g} is lost beside values of {largest:g}"
            yield ("step",), found, f"use at least {largest / _MAX_STEPS:g}"
        yield from self._faults_of_grid()

    def _faults_of_grid(self) -> Iterator[Found]:
        """Whether steps and bounds are on the grid of values that the engine can represent."""
        p = self.parameter("any")
        if p.unit and 2 * p.step < p.unit * (1 - 1e-9):
            found = f"step {p.step:g} is below what rounding to {p.unit:g} can express"
            remedy = f'use at least {p.unit / 2:g}, or type = "float" with a scale for finer values'
            yield ("step",), found, remedy
        for key, bound in (("min", p.minimum), ("max", p.maximum)) if p.unit else ():
            if abs(p.nearest(bound) - bound) > 1e-6 * p.unit:
                remedy = f"use {p.nearest(bound)}" + (', or type = "float"' if p.integral else "")
                yield (key,), f"{key} {bound} is no multiple of {p.unit:g}", remedy


def load_space(path: Path) -> Space:
    """Read params.toml. Raises InvalidInput with all that is wrong in it."""
    return space_of(read_document(path))


def space_of(document: Document) -> Space:
    """The space of a document with the tables of params.toml, whatever its format is."""
    space, faults = readable_space(document)
    if faults:
        raise InvalidInput(faults)
    return space


def readable_space(document: Document) -> tuple[Space, tuple[Fault, ...]]:
    """The parameters in which nothing is wrong, and all faults of the document."""
    faults: list[Found] = []
    space = Space(tuple(_parameters(document, faults)))
    constraints = tuple(_constraints(document, faults))
    if not faults:
        space = Space(space.parameters, constraints)
        faults += _faults_between(space)
    return space, document.faults(faults)


def _parameters(document: Document, faults: list[Found]) -> Iterator[Parameter]:
    """The parameters in which nothing is wrong, in the order of the file."""
    tables = {name: table for name, table in document.data.items() if name != "constraints"}
    if len(tables) > MAX_PARAMETERS:
        found = f"{len(tables)} parameters are too many"
        faults.append(((), found, f"tune at most {MAX_PARAMETERS}"))
        return
    if not any(not isinstance(t, dict) or t.get("active") is not False for t in tables.values()):
        remedy = "add a table [name] with value, min, max and step; active = false freezes one"
        faults.append(((), "nothing is to be tuned", remedy))
    for name, table in tables.items():
        if not (name.isidentifier() and name.isascii() and len(name) <= _LONGEST_NAME):
            remedy = "use letters, digits and _; `constant` and `option` take the engine's names"
            faults.append(((name,), f"{name!r} is not a name for a parameter", remedy))
        elif not isinstance(table, dict):
            remedy = f"write [{name}] and its keys"
            faults.append(((name,), f"{shown(table)} is not a table", remedy))
        elif read := read_table(ParameterSection, table, faults, (name,)):
            yield read.parameter(name, document.lines.get((name,)))


def _constraints(document: Document, faults: list[Found]) -> Iterator[Constraint]:
    orders = document.data.get("constraints", [])
    if not isinstance(orders, list):
        remedy = 'write constraints = ["a < b", "c <= d"]'
        faults.append((_ORDERS, f"{shown(orders)} is not a list", remedy))
        return
    names = set(document.data) - {"constraints"}
    for text in orders:
        try:
            constraint = Constraint.parse(str(text))
        except ValueError as error:
            faults.append((_ORDERS, str(error), 'write "a < b" or "a <= b"'))
            continue
        yield constraint
        for name in sorted({constraint.less, constraint.greater} - names):
            faults.append((_ORDERS, f"{text!r}: no parameter {name}", suggestion(name, names)))


def _faults_between(space: Space) -> Iterator[Found]:
    """What is wrong between parameters, each of which is right by itself."""
    yield from _faults_of_order(space)
    owners: dict[str, str] = {}
    places = {(p.location, p.role) for p in space.parameters}
    for p in space.parameters:
        owner = owners.setdefault(p.option, p.name)
        if owner != p.name:
            found = f"option {p.option!r} is that of {owner} already"
            yield (p.name, "option"), found, "use another option"
        array, partner = p.location, p.role.partner
        if partner and (array, partner) not in places:
            remedy = f'add a parameter with array = "{array}", knob = "{partner}" (frozen, maybe)'
            yield (p.name, "array"), f"{array} has no knob {partner}", remedy
    for earlier, later in conflicts(space.parameters):
        found = f"{later.location} is written by {earlier.name} already"
        yield (later.name,), found, "leave it to one of them"


def _faults_of_order(space: Space) -> Iterator[Found]:
    if names := sorted(circle(space.constraints)):
        yield _ORDERS, f"{', '.join(names)} are in a circle", "remove one of the constraints"
        return
    for name, (low, high) in feasible(space.parameters, space.constraints).items():
        if low > high:
            found = f"nothing is left of {name}: at least {low:g} and at most {high:g}"
            yield _ORDERS, found, "widen min and max, or thaw it"


def project_theta(path: Path, values: Mapping[str, float]) -> bool:
    """Write `values` as the parameters' `value` keys; True if the file changed.

    Only these numbers change: comments, order, line ends, mode and symbolic links stay. A value is
    rounded to four digits below its step and kept inside its bounds. The file is replaced
    atomically, so a reader sees the old or the new one, also after a crash. Names that the file
    does not have are ignored; a master reports them at its start.

    Raises InvalidInput when the file cannot be read, is wrong, or cannot be written.
    """
    document = read_document(path.resolve())
    changed = _changed(space_of(document), values)
    _write(document, "value", changed)
    return bool(changed)


def write_keys(path: Path, key: str, values: Mapping[str, Number]) -> None:
    """Write `values` as this key of the parameters, as carefully."""
    _write(read_document(path.resolve()), key, values)


def _write(document: Document, key: str, values: Mapping[str, Number]) -> None:
    if not values:
        return
    edited: Any = tomlkit.parse(document.text)
    for name, value in values.items():
        _put(edited[name], key, value)
    try:
        write_whole(document.path, tomlkit.dumps(edited).encode("utf-8"))
    except OSError as error:
        found = f"cannot be written: {error.strerror or error}"
        remedy = "make the file and its folder writable, and room on its disk"
        raise InvalidInput.of(document.path, document.path.name, found, remedy) from None


def _put(table: Any, key: str, value: Number) -> None:
    """Set a key; a new one in the line below `value`."""
    if key in table or not getattr(table, "display_name", None):  # within braces, or `name.value =`
        new: Any = tomlkit.item(value)
        if isinstance(table, InlineTable) and table.as_string().endswith(" }"):
            new.trivia.trail = " "  # which tomlkit leaves out
        table[key] = new
        return
    # At its end it would stand below a comment that belongs to the next table.
    trivia = table["value"].trivia
    end = trivia.trail or "\n"
    trivia.trail = f"{end}{key} = {tomlkit.item(value).as_string()}{end}"


def says(path: Path, values: Mapping[str, float]) -> bool:
    """Whether the file already has these values, rounded as `project_theta` writes them.

    Raises InvalidInput when the file cannot be read or is wrong.
    """
    return not _changed(load_space(path.resolve()), values)


def _changed(space: Space, values: Mapping[str, float]) -> dict[str, Number]:
    """The numbers that the file does not have yet, by name."""
    known = {p: written(p, values[p.name]) for p in space.parameters if p.name in values}
    return {p.name: new for p, new in known.items() if new != written(p, p.value)}


def written(p: Parameter, value: float) -> Number:
    """A value as params.toml has it: four digits below the step, a whole one as it was there."""
    digits = 4 - floor(log10(p.step))
    new = min(max(round(float(value), digits), float(p.minimum)), float(p.maximum))
    return int(new) if new == int(new) and (p.integral or isinstance(p.value, int)) else new


def params_file(space: Space) -> str:
    """TOML that `load_space` reads as the same space."""
    return tomli_w.dumps(params_document(space))


def params_document(space: Space) -> dict[str, Any]:
    """The tables of that file."""
    constraints = [str(constraint) for constraint in space.constraints]
    tables = {p.name: _own_table(p) for p in space.parameters}
    return ({"constraints": constraints} if constraints else {}) | tables


def _own_table(p: Parameter) -> dict[str, object]:
    keys = {
        "value": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "step": p.step,
        "type": "int" if p.integral else "float",
        "scale": p.scale,
        "option": p.option if p.option != p.name else None,
        "group": p.group or None,
        "note": p.note or None,
        "active": None if p.active else False,
    }
    if p.role is not Knob.VALUE:
        keys |= {"array": str(p.location), "knob": p.role.value}
    elif p.location != Location(p.name.upper()):
        keys["constant"] = str(p.location)
    return {key: value for key, value in keys.items() if value is not None}
