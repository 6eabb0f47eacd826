"""Writes params.toml: theta into the file that is there, or a space as a whole new one."""

from collections.abc import Mapping
from math import floor, log10
from pathlib import Path
from typing import Any

import tomli_w
import tomlkit

from spsa.config.document import read_document
from spsa.config.space import load_space, space_of
from spsa.core.parameter import Location, Number, Parameter, Role
from spsa.core.params import Space
from spsa.errors import InvalidInput
from spsa.files import write_whole


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
    if not changed:
        return False
    edited: Any = tomlkit.parse(document.text)
    for name, value in changed.items():
        edited[name]["value"] = value
    try:
        write_whole(document.path, tomlkit.dumps(edited).encode("utf-8"))
    except OSError as error:
        found = f"cannot be written: {error.strerror or error}"
        remedy = "make the file and its folder writable"
        raise InvalidInput.of(path, path.name, found, remedy) from None
    return True


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
    if p.role is not Role.VALUE:
        keys |= {"array": str(p.location), "knob": p.role.value}
    elif p.location != Location(p.name.upper()):
        keys["constant"] = str(p.location)
    return {key: value for key, value in keys.items() if value is not None}
