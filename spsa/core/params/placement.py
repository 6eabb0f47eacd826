"""Where a number stands in the engine's source, and how a parameter reaches it.

A parameter is one number, or it shapes a whole array.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

SOURCE_SUFFIXES = ("rs", "c", "h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "inl", "inc", "def")
"""How the names of files with constants end: Rust, C and C++."""

MAX_SCOPES = 8
MAX_ACCESSES = 8

_LOCATION = re.compile(
    rf"(?:(?P<file>[^:]+\.(?:{'|'.join(SOURCE_SUFFIXES)}))::)?"
    rf"(?P<scope>(?:\w+::){{0,{MAX_SCOPES}}})"
    r"(?P<name>[^\W\d]\w*)"
    rf"(?P<accesses>(?:\[[0-9]{{1,6}}\]|\.[0-9]{{1,6}}|\.[^\W\d]\w*){{0,{MAX_ACCESSES}}})"
)
_ACCESS = re.compile(r"\[(\d+)\]|\.(\d+)|\.(\w+)")


@dataclass(frozen=True, slots=True)
class Access:
    """One step into a constant: `[2]` into an array, `.1` into a tuple, `.margin` into a struct."""

    position: int | str
    field: bool = False

    def __str__(self) -> str:
        return f".{self.position}" if self.field else f"[{self.position}]"


@dataclass(frozen=True, slots=True)
class Location:
    """A constant, or a number inside it.

    `file` is relative to the source tree, None for the run's constants file. `scope` names the
    modules, types and functions around the constant, the nearest last; ("crate",) is the top level
    of the file. An empty scope matches anywhere if the name occurs only once.
    """

    name: str
    accesses: tuple[Access, ...] = ()
    scope: tuple[str, ...] = ()
    file: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `NAME`, `NAME[2]`, `NAME.1`, `NAME.field`, `scope::NAME` or `path/file.rs::NAME`.

        At most MAX_SCOPES scopes and MAX_ACCESSES indexes and fields. Raises ValueError for
        anything else.
        """
        found = _LOCATION.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} does not name a constant")
        file = found["file"]
        if file is not None and (file.startswith("/") or ".." in file.split("/") or "\\" in file):
            raise ValueError(f"{file!r} is not a path inside the source tree")
        accesses = tuple(
            Access(member or int(index or position), field=not index)
            for index, position, member in _ACCESS.findall(found["accesses"])
        )
        scope = tuple(part for part in found["scope"].split("::") if part)
        return cls(found["name"], accesses, scope, file)

    def __str__(self) -> str:
        prefix = "".join(f"{part}::" for part in (*([self.file] if self.file else []), *self.scope))
        return prefix + self.name + "".join(str(access) for access in self.accesses)

    def at(self, position: int | str, *, field: bool = False) -> "Location":
        """The location of one element of this one."""
        return Location(self.name, (*self.accesses, Access(position, field)), self.scope, self.file)


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
