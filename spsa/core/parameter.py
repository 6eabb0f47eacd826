"""One number to be tuned, the grid of values that the engine can represent, and orders of two.

Constraints hold for the values that engines get. Also where a parameter stands in the source, as
one number or with another one as a whole array, and which numbers to write there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from math import ceil, floor, inf, nextafter, ulp
from typing import Self

Number = int | float
Bounds = Mapping[str, tuple[Number, Number]]
# The numbers inside a constant in the original source, each with its location.
Elements = Callable[["Location"], Mapping["Location", Number]]

# 0.29 * 100 is 28.999999999999996, and 0.29 has to count as on the grid.
_SLACK = 1e-6
_CONSTRAINT = re.compile(r"\s*(\w+)\s*(<=|<|>=|>)\s*(\w+)\s*")

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
        return replace(self, accesses=(*self.accesses, Access(position, field)))


class Knob(StrEnum):
    """What a parameter does at its place.

    It is the number there (VALUE), or one of two that fill an array: `NAME[i] = base + i *
    per_index`.
    """

    VALUE = "value"
    BASE = "base"
    PER_INDEX = "per_index"

    @property
    def partner(self) -> "Knob | None":
        """The other role at an array."""
        return {Knob.BASE: Knob.PER_INDEX, Knob.PER_INDEX: Knob.BASE}.get(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named value with its bounds, its step, and where it goes in the engine.

    `value`, `minimum`, `maximum` and `step` are in the unit of params.toml. `value` is the start of
    theta (or the fixed value of a frozen parameter) and need not be on the grid. `integral`
    parameters are whole numbers; with a `scale` the engine gets `value * scale` as a whole number;
    with neither the parameter is continuous. `option` is the UCI option that sends it if no binary
    is built. `line` is its line in params.toml, which comparisons ignore.
    """

    name: str
    value: float
    minimum: float
    maximum: float
    step: float
    location: Location
    option: str
    role: Knob = Knob.VALUE
    integral: bool = True
    scale: int | None = None
    group: str = ""
    active: bool = True
    note: str = ""
    line: int | None = field(default=None, compare=False)

    @property
    def unit(self) -> float:
        """The smallest change that the engine can see; 0 for a continuous parameter."""
        per_unit = self._units_per_one
        return 1.0 / per_unit if per_unit else 0.0

    @property
    def _units_per_one(self) -> int:
        """Division by this whole number is exact; multiplication by `unit` is not."""
        return 1 if self.integral else self.scale or 0

    def nearest(self, value: float) -> Number:
        """The value on the grid nearest to `value`; the greater of two equally near ones."""
        per_unit = self._units_per_one
        return self.on_grid(floor(value * per_unit + 0.5)) if per_unit else float(value)

    def nearest_step(self, step: float) -> Number:
        """A step near `step` that params.toml may have; two digits of a continuous parameter."""
        rounded = max(self.nearest(step), self.unit) if self.unit else float(f"{step:.2g}")
        return min(rounded, self.maximum - self.minimum)

    def on_grid(self, units: int) -> Number:
        """The value that is `units` units large."""
        return units if self.integral else units / self._units_per_one

    def below(self, bound: float, *, strictly: bool) -> Number:
        """The greatest value on the grid that is less than (or equal to) `bound`."""
        per_unit = self._units_per_one
        if not per_unit:
            return nextafter(bound, -inf) if strictly else float(bound)
        units = (
            ceil(bound * per_unit - _SLACK) - 1 if strictly else floor(bound * per_unit + _SLACK)
        )
        return self.on_grid(units)

    def above(self, bound: float, *, strictly: bool) -> Number:
        """The least value on the grid that is greater than (or equal to) `bound`."""
        return 0 - self.below(-bound, strictly=strictly)

    def to_engine(self, value: float) -> Number:
        """The number that is written to the source, or sent over UCI, for `value`.

        A continuous one has no digits that come from counting in steps: 0.1 + 0.2 is 0.3.
        """
        if self.scale is not None:
            return floor(value * self.scale + 0.5)
        if self.integral:
            return self.nearest(value)
        near = float(f"{value:.15g}")
        return near if abs(near - value) <= 2 * ulp(value) else value


@dataclass(frozen=True, slots=True)
class Constraint:
    """`less < greater`, or `less <= greater` when not strict."""

    less: str
    greater: str
    strict: bool = True

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `a < b`, `a <= b`, `a > b` or `a >= b`. Raises ValueError for anything else."""
        found = _CONSTRAINT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not an order between two parameters")
        first, sign, second = found.groups()
        less, greater = (first, second) if sign.startswith("<") else (second, first)
        return cls(less, greater, strict=len(sign) == 1)

    def __str__(self) -> str:
        return f"{self.less} {'<' if self.strict else '<='} {self.greater}"

    to_json, from_json = __str__, parse

    def holds(self, values: Mapping[str, float]) -> bool:
        less, greater = values[self.less], values[self.greater]
        return less < greater if self.strict else less <= greater


def feasible(parameters: Iterable[Parameter], constraints: Iterable[Constraint]) -> Bounds:
    """The part of each parameter's range that its constraints allow; frozen ones have one value.

    If a lower bound is above its upper bound, no values satisfy the constraints. The constraints
    must not have a cycle.
    """
    named = {parameter.name: parameter for parameter in parameters}
    low = {name: p.nearest(p.minimum if p.active else p.value) for name, p in named.items()}
    high = {name: p.nearest(p.maximum if p.active else p.value) for name, p in named.items()}
    rising = upwards(constraints)
    for rule in rising:
        least = named[rule.greater].above(low[rule.less], strictly=rule.strict)
        low[rule.greater] = max(low[rule.greater], least)
    for rule in reversed(rising):
        most = named[rule.less].below(high[rule.greater], strictly=rule.strict)
        high[rule.less] = min(high[rule.less], most)
    return {name: (low[name], high[name]) for name in named}


def upwards(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints in topological order: each follows those whose greater side is its lesser
    side.

    Raises CycleError for a cycle.
    """
    below: dict[str, list[Constraint]] = {}
    for constraint in constraints:
        below.setdefault(constraint.greater, []).append(constraint)
    edges = {name: [constraint.less for constraint in rules] for name, rules in below.items()}
    order = TopologicalSorter(edges).static_order()
    return tuple(constraint for name in order for constraint in below.get(name, ()))


def circle(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """The parameters of one cycle of constraints; empty if there is none."""
    try:
        upwards(constraints)
    except CycleError as error:
        found: list[str] = error.args[1]
        return tuple(found[:-1])  # its last is its first
    return ()


def enforce(
    values: Mapping[str, Number],
    parameters: Iterable[Parameter],
    constraints: Iterable[Constraint],
    bounds: Bounds,
) -> dict[str, Number]:
    """`values` changed as little as needed so that every constraint holds.

    Values are first clipped to the `feasible` bounds. Then the lesser side of a violated constraint
    is lowered, which these bounds always allow. `constraints` are in the order of `upwards`.
    """
    named = {parameter.name: parameter for parameter in parameters}
    kept = {
        name: min(max(value, bounds[name][0]), bounds[name][1]) for name, value in values.items()
    }
    for rule in reversed(tuple(constraints)):
        if not rule.holds(kept):
            kept[rule.less] = named[rule.less].below(kept[rule.greater], strictly=rule.strict)
    return kept


def assignments(
    parameters: Iterable[Parameter], values: Mapping[str, float], elements: Elements
) -> dict[Location, Number]:
    """Every number to write, from one value for each parameter.

    Arrays need the numbers of the source, for their count and type. Errors of `elements` are not
    caught.
    """
    written: dict[Location, Number] = {}
    for location, knobs in by_location(parameters).items():
        settings = {p.role: p.to_engine(values[p.name]) for p in knobs}
        if Knob.VALUE in settings:
            written[location] = settings[Knob.VALUE]
            continue
        base, slope = settings[Knob.BASE], settings[Knob.PER_INDEX]
        for i, (element, number) in enumerate(elements(location).items()):
            own = base + i * slope
            written[element] = floor(own + 0.5) if isinstance(number, int) else float(own)
    return written


def by_location(parameters: Iterable[Parameter]) -> dict[Location, list[Parameter]]:
    """The parameters that go to each location."""
    grouped: dict[Location, list[Parameter]] = {}
    for parameter in parameters:
        grouped.setdefault(parameter.location, []).append(parameter)
    return grouped


def conflicts(parameters: Iterable[Parameter]) -> Iterator[tuple[Parameter, Parameter]]:
    """Pairs (earlier, later) of parameters that overwrite each other, one for each later."""
    seen: dict[tuple[str | None, str], list[Parameter]] = {}
    for later in parameters:
        where = later.location
        namesakes = seen.setdefault((where.file, where.name), [])
        earlier = next((one for one in namesakes if _overlap(one, later)), None)
        if earlier is not None:
            yield earlier, later
        namesakes.append(later)


def _overlap(one: Parameter, other: Parameter) -> bool:
    """Whether two parameters in constants of the same name have a number in common.

    An access leads into what the accesses before it reach, a scope lies in those before it.
    """
    first, second = one.location, other.location
    if first == second:
        return other.role is not one.role.partner
    accesses = zip(first.accesses, second.accesses, strict=False)
    scopes = zip(reversed(first.scope), reversed(second.scope), strict=False)
    return all(a == b for a, b in accesses) and all(a == b for a, b in scopes)
