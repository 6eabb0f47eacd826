"""How a parameter gets into the source: as one number, or as a knob of an array or a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spsa.core.params.location import Location


class ArrayRole(StrEnum):
    """`NAME[i] = base + (i - first) * per_index`."""

    BASE = "base"
    PER_INDEX = "per_index"


class TableRole(StrEnum):
    """`NAME[i] = mean + amplitude * (source[i] - mean) + bias`, where mean is the source's.

    With the mean subtracted, the two are independent: amplitude changes only the spread of the
    values, bias only their mean (Kiiski 2011, "Variable Selection").
    """

    AMPLITUDE = "amplitude"
    BIAS = "bias"


@dataclass(frozen=True, slots=True)
class Constant:
    """The value itself, at one location."""

    location: Location


@dataclass(frozen=True, slots=True)
class ArrayKnob:
    """One of the two numbers that fill the elements first..last (inclusive) of an array.

    `last` is None for the array's end.
    """

    array: Location
    role: ArrayRole
    first: int = 0
    last: int | None = None


@dataclass(frozen=True, slots=True)
class TableKnob:
    """One of the two numbers that scale and shift a table, which keeps its shape."""

    table: Location
    role: TableRole


Placement = Constant | ArrayKnob | TableKnob


def target(place: Placement) -> Location:
    """The constant, array or table that a placement writes to."""
    match place:
        case Constant(location):
            return location
        case ArrayKnob(array=array):
            return array
        case TableKnob(table=table):
            return table


def to_json(place: Placement) -> dict[str, Any]:
    match place:
        case Constant(location):
            return {"constant": str(location)}
        case ArrayKnob(array, role, first, last):
            return {"array": str(array), "knob": role.value, "first": first, "last": last}
        case TableKnob(table, role):
            return {"table": str(table), "knob": role.value}


def from_json(data: Mapping[str, Any]) -> Placement:
    if "constant" in data:
        return Constant(Location.parse(data["constant"]))
    if "array" in data:
        array = Location.parse(data["array"])
        return ArrayKnob(array, ArrayRole(data["knob"]), data["first"], data["last"])
    return TableKnob(Location.parse(data["table"]), TableRole(data["knob"]))
