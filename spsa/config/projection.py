"""Writes params.toml: theta into the file that is there, or a space as a whole new one."""

from collections.abc import Mapping
from math import floor, log10
from pathlib import Path
from typing import Any

import tomli_w
import tomlkit

from spsa.config.document import read_document
from spsa.config.space import load_space
from spsa.core.params import Location, Parameter, Place, Role, Space
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
    real = path.resolve()
    known = {parameter.name: parameter for parameter in load_space(real).parameters}
    before = read_document(real).text
    document: Any = tomlkit.parse(before)
    for name in known.keys() & values.keys():
        _write(document[name], known[name], values[name])
    after = tomlkit.dumps(document)
    if after == before:
        return False
    try:
        write_whole(real, after.encode("utf-8"))
    except OSError as error:
        found = f"cannot be written: {error.strerror or error}"
        remedy = "make the file and its folder writable"
        raise InvalidInput.of(path, path.name, found, remedy) from None
    return True


def says(path: Path, values: Mapping[str, float]) -> bool:
    """Whether the file already has these values, rounded as `project_theta` writes them.

    Raises InvalidInput when the file cannot be read or is wrong.
    """
    return all(
        _readable(p, p.value) == _readable(p, values[p.name])
        for p in load_space(path.resolve()).parameters
        if p.name in values
    )


def _write(table: Any, parameter: Parameter, value: float) -> None:
    """Write `value` into the table unless it is there already."""
    readable = _readable(parameter, value)
    if _readable(parameter, parameter.value) != readable:
        whole = parameter.integral or isinstance(parameter.value, int)
        table["value"] = int(readable) if whole and readable == int(readable) else readable


def _readable(parameter: Parameter, value: float) -> float:
    digits = 4 - floor(log10(parameter.step))
    return min(max(round(float(value), digits), float(parameter.minimum)), float(parameter.maximum))


def params_file(space: Space) -> str:
    """TOML that `load_space` reads as the same space."""
    return tomli_w.dumps(params_document(space))


def params_document(space: Space) -> dict[str, Any]:
    """The tables of that file."""
    constraints = [str(constraint) for constraint in space.constraints]
    tables = {p.name: _own_table(p) for p in space.parameters}
    return ({"constraints": constraints} if constraints else {}) | tables


def _own_table(p: Parameter) -> dict[str, object]:
    place = p.place
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
    if place != Place(Location(p.name.upper())):
        is_value = place.role is Role.VALUE
        keys["constant" if is_value else "array"] = str(place.location)
        keys["knob"] = None if is_value else place.role.value
    return {key: value for key, value in keys.items() if value is not None}
