"""From a Rust constants file to parameters worth a person's look. Pure.

What is proposed is a start for editing: every number that is written out gets a range and a step
(seed 004: a step must be worth one to three Elo, which nobody can see from a constant, so about a
tenth of the value). What is hardly meant to be tuned is proposed too, but commented out.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor
from statistics import fmean

from spsa.builds.rust import (
    INTEGERS,
    ConstantRefused,
    Element,
    Group,
    Literal,
    Opaque,
    RustConstant,
    RustFile,
    constant,
    elements,
)
from spsa.core.params import Location, Number

# Words in a constant's name that mark it as a size, a key or a limit rather than a weight.
_FIXED = re.compile(
    r"BITS|BYTES|CAPACITY|COUNT|DEBUG|ENTRIES|HASH|INFINITY|KEYS?|MASK|MATE|[KM]I?B|NODES|NUM"
    r"|PLY|PORT|SEED|SHIFT|SIZE|SQUARES|THREADS|VERSION|ZOBRIST"
)
_LARGEST = 1_000_000  # scores and depths are smaller; what is larger is a limit or a bit pattern
_LEAST = 1e-9  # but for 0; what is smaller is a tolerance
_MOST = 1e14  # what is larger cannot be counted in steps
_SHORTEST_TABLE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A parameter as params.toml would have it; `reason` says why it is better left out, or "".

    `keys` are further keys of its table, such as `constant` or `knob`.
    """

    name: str
    value: Number
    minimum: Number
    maximum: Number
    step: Number
    group: str
    reason: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)


def propose(file: RustFile) -> tuple[Proposed, ...]:
    """Parameters for all numbers of a file that can be rewritten, in its order."""
    groups = _groups(file)
    proposals: dict[str, Proposed] = {}
    for one in file.constants:
        for proposed in _of_constant(file, one, groups.get(one.line, "")):
            if proposed.name.isascii():  # as the names of parameters are
                proposals.setdefault(proposed.name, proposed)
    return tuple(proposals.values())


def _of_constant(file: RustFile, one: RustConstant, group: str) -> Iterator[Proposed]:
    alone = len(file.by_name[one.name]) == 1
    location = Location(one.name, scope=one.scope or (() if alone else ("crate",)))
    try:
        if constant(file, location) is not one:
            return
        found = elements(file, location)
        for element in found.values():
            element.check(element.literal.number)
    except ConstantRefused:
        return  # absent from the engine, ambiguous, computed or no Rust: nothing to be tuned
    if any(abs(element.literal.number) > _MOST for element in found.values()):
        return
    match one.value:
        case Literal():
            yield _scalar(one.name.lower(), next(iter(found.values())), location, group)
        case Group(tuple_=True):
            for i, (place, element) in enumerate(found.items()):
                yield _scalar(f"{one.name.lower()}_{i}", element, place, group)
        case Group() if len(found) >= _SHORTEST_TABLE:
            yield from _table(location, found, group)
        case Group() | Opaque():
            return


def _scalar(name: str, element: Element, location: Location, group: str) -> Proposed:
    value = element.literal.number
    step: Number = 0.09 * abs(value) if element.real else max(1, round(0.09 * abs(value)))
    low, high = _bounds(value, step, real=element.real)
    if (limits := INTEGERS.get(element.type or "")) is not None:
        low, high = max(low, limits[0]), min(high, limits[1])
    given = {} if str(location) == name.upper() else {"constant": str(location)}
    return Proposed(
        name=name,
        value=value,
        minimum=low,
        maximum=high,
        step=step or 0.1,
        group=group,
        reason=_reason(name, value),
        keys=given,
    )


def _unsigned(element: Element) -> bool:
    return element.type is not None and element.type.startswith("u")


def _bounds(value: Number, step: Number, *, real: bool) -> tuple[Number, Number]:
    """Half to twice the value, and room for two steps either way."""
    least, most = sorted((value / 2, value * 2))
    low, high = min(least, value - 2 * step), max(most, value + 2 * step)
    if value > 0:
        low = max(low, 1 if not real and value > 1 else 0)
    return (low, high) if real else (floor(low), ceil(high))


def _reason(name: str, value: Number) -> str:
    fixed = next((word for word in name.upper().split("_") if _FIXED.fullmatch(word)), None)
    if fixed:
        return f"{fixed} looks like a size or a limit"
    if value == 0:
        return "0 may stand for switched off; give it a range and a step of its own"
    if abs(value) < _LEAST:
        return "so small a number looks like a tolerance"
    if abs(value) >= _LARGEST:
        return "so large a number looks like a limit or a pattern"
    return ""


def _table(location: Location, found: Mapping[Location, Element], group: str) -> Iterator[Proposed]:
    """Two knobs for an array: base and slope where it is nearly a line, else amplitude and bias.

    Unsigned numbers get neither, because a bend would soon take one of them below 0.
    """
    numbers = [element.literal.number for element in found.values()]
    slope = (numbers[-1] - numbers[0]) / (len(numbers) - 1)
    name, keys = location.name.lower(), {"array": str(location)}
    if any(_unsigned(element) for element in found.values()):
        for i, (place, element) in enumerate(found.items()):
            yield replace(_scalar(f"{name}_{i}", element, place, group), reason=_ONE_OF_MANY)
    elif slope and all(
        abs(numbers[0] + i * slope - n) <= abs(slope) / 4 for i, n in enumerate(numbers)
    ):
        yield _knob(f"{name}_base", numbers[0], group, {**keys, "knob": "base"})
        yield _knob(f"{name}_per_index", slope, group, {**keys, "knob": "per_index"})
    else:
        yield from _bends(name, numbers, group, {"table": str(location)})


def _bends(
    name: str, numbers: list[Number], group: str, keys: Mapping[str, str]
) -> Iterator[Proposed]:
    spread = max(numbers) - min(numbers)
    if spread:
        yield _amplitude(f"{name}_amplitude", group, {**keys, "knob": "amplitude"})
    yield _bias(f"{name}_bias", max(abs(fmean(numbers)), spread), group, {**keys, "knob": "bias"})


_ONE_OF_MANY = "one number of an array: alone it hardly changes a game"
_WHOLE = "a knob moves the whole array: drop the comment signs to tune it"


def _knob(name: str, number: float, group: str, keys: Mapping[str, str]) -> Proposed:
    value = round(number)
    step = max(1, round(0.09 * abs(value)))
    low, high = _bounds(value, step, real=False)
    return Proposed(
        name=name,
        value=value,
        minimum=low,
        maximum=high,
        step=step,
        group=group,
        reason=_WHOLE,
        keys=keys,
    )


def _amplitude(name: str, group: str, keys: Mapping[str, str]) -> Proposed:
    return Proposed(
        name=name,
        value=1.0,
        minimum=0.5,
        maximum=1.5,
        step=0.1,
        group=group,
        reason=_WHOLE,
        keys=keys,
    )


def _bias(name: str, size: float, group: str, keys: Mapping[str, str]) -> Proposed:
    step = max(1, round(0.09 * size))
    return Proposed(
        name=name,
        value=0,
        minimum=-5 * step,
        maximum=5 * step,
        step=step,
        group=group,
        reason=_WHOLE,
        keys=keys,
    )


def _groups(file: RustFile) -> dict[int, str]:
    """For each constant's line the heading above it: a comment alone between blank lines."""
    lines = [line.strip() for line in file.text.split("\n")]
    headings = {c.line: _slug(c.text) for c in file.headings if _stands_alone(lines, c.line)}
    groups: dict[int, str] = {}
    above = sorted(headings)
    for one in file.constants:
        before = bisect_left(above, one.line)
        groups[one.line] = headings[above[before - 1]] if before else ""
    return groups


def _stands_alone(lines: list[str], line: int) -> bool:
    before = lines[line - 2] if line >= 2 else ""
    after = lines[line] if line < len(lines) else ""
    return not before and not after


def _slug(heading: str) -> str:
    """At most four words of a heading, as a group's name."""
    return "-".join(re.findall(r"[a-z0-9]+", heading.lower())[:4])
