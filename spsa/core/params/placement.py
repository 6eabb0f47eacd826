"""Where a number stands in the engine's source, and how a parameter reaches it.

A parameter is one number, or with another one it fills a whole array.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

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

    to_json, from_json = __str__, parse

    def at(self, position: int | str, *, field: bool = False) -> "Location":
        """The location of one element of this one."""
        return Location(self.name, (*self.accesses, Access(position, field)), self.scope, self.file)


class Role(StrEnum):
    """What a parameter does at its place.

    It is the number there (VALUE), or one of two that fill an array: `NAME[i] = base + i *
    per_index`.
    """

    VALUE = "value"
    BASE = "base"
    PER_INDEX = "per_index"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the value of a parameter goes: a number, or an array of two parameters."""

    location: Location
    role: Role = Role.VALUE

    @property
    def partner(self) -> Role | None:
        """The other role at an array."""
        return {Role.BASE: Role.PER_INDEX, Role.PER_INDEX: Role.BASE}.get(self.role)
