"""The location of a number in the engine's source, as written in params.toml."""

import re
from dataclasses import dataclass
from typing import Self

MOST_SCOPES = 8
MOST_ACCESSES = 8

_LOCATION = re.compile(
    r"(?:(?P<file>[^:]+\.rs)::)?"
    rf"(?P<scope>(?:\w+::){{0,{MOST_SCOPES}}})"
    r"(?P<name>[^\W\d]\w*)"
    rf"(?P<accesses>(?:\[[0-9]{{1,6}}\]|\.[0-9]{{1,6}}){{0,{MOST_ACCESSES}}})"
)
_ACCESS = re.compile(r"\[(\d+)\]|\.(\d+)")


@dataclass(frozen=True, slots=True)
class Access:
    """One step into a constant: `[2]` into an array, `.1` into a tuple."""

    position: int
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
        """Read `NAME`, `NAME[2]`, `NAME.1`, `scope::NAME` or `path/to/file.rs::NAME`.

        At most MOST_SCOPES scopes and MOST_ACCESSES indexes and fields. Raises ValueError for
        anything else.
        """
        found = _LOCATION.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} does not name a constant")
        file = found["file"]
        if file is not None and (file.startswith("/") or ".." in file.split("/") or "\\" in file):
            raise ValueError(f"{file!r} is not a path inside the source tree")
        accesses = tuple(
            Access(int(index or member), field=bool(member))
            for index, member in _ACCESS.findall(found["accesses"])
        )
        scope = tuple(part for part in found["scope"].split("::") if part)
        return cls(found["name"], accesses, scope, file)

    def __str__(self) -> str:
        prefix = "".join(f"{part}::" for part in (*([self.file] if self.file else []), *self.scope))
        return prefix + self.name + "".join(str(access) for access in self.accesses)

    def at(self, position: int, *, field: bool = False) -> "Location":
        """The location of one element of this one."""
        return Location(self.name, (*self.accesses, Access(position, field)), self.scope, self.file)
