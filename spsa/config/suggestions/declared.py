"""Ranges that the author of an engine declares, in the source or as UCI options. Pure.

In a source they are recognised by their shape, whatever the macro or the class is called: a number
that lies between the next two.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil, floor

from spsa.builds.sources.constant import Element, SourceConstant
from spsa.config.suggestions.objections import (
    NOT_DECLARED,
    ZERO,
    Objection,
    free_name,
    name_of,
    to_declared,
    to_name,
)
from spsa.config.suggestions.ranges import Suggested, around, bounds, own_name, within
from spsa.core.params import Location, Number
from spsa.core.uci_options import Declarations, Declared

_STEPS = 20
"""Steps in a range without one, as the tuning macro of Stockfish has them."""
_LIMIT_OF_TYPE, _LIMIT_OF_OPTION = 200, 20
"""A range of more than so many times the value is a limit, and no place to search in."""

_FEATURE = re.compile(r'\bfeature\s*=\s*"(\w*(?:tun(?:e|ing|able)|spsa)\w*)"')
_DEFINE = re.compile(r"#\s*if(?:def)?\s+(?:defined\s*\(?\s*)?(\w*(?:TUNE\b|TUNING|SPSA)\w*)")
_OF_OPENBENCH = re.compile(
    r"\s*(?P<name>[^,]+?)\s*,\s*(?P<type>int|float)"
    + "".join(rf"\s*,\s*(?P<{key}>-?\d+\.?\d*)" for key in ("value", "min", "max", "step"))
    + r"\s*,\s*[-+.\deE]+\s*"
)
"""`name, int or float, start, min, max, c_end, r_end`."""
_OTHER_TYPES = Objection("no number: set it in [engine.options]")
_NO_RANGE = Objection("without a default between a minimum and a maximum")


def _declared_range(
    name: str, value: Number, beside: Sequence[Number], *, real: bool, limit: float, **keys: str
) -> Suggested:
    """The range that the author gave: a minimum, a maximum, a step if any.

    One of more than `limit` times the value is narrowed.
    """
    low, high, *more = beside
    note = {} if low <= value <= high else {"note": f"its author has {low} to {high}"}
    low, high = min(low, value), max(high, value)
    if high - low > limit * max(abs(value), 5):
        note = {"note": f"its author has {low} to {high}"}
        tenth = abs(value) / 10 if real else max(1, round(abs(value) / 10))
        nearest, farthest = bounds(value, tenth, real=real)
        low, high, more = max(low, nearest), min(high, farthest), []
    step = more[0] if more and 0 < more[0] <= (high - low) / 2 else (high - low) / _STEPS
    if not real:
        low, high, step = ceil(low), floor(high), max(1, round(step))
    return Suggested(
        name=name,
        value=value,
        minimum=low,
        maximum=high,
        step=step,
        declared=True,
        keys={**keys, **note},
    )


def makers_of(constants: Iterable[SourceConstant]) -> set[str]:
    """The macros, functions and tables by which the author declares ranges.

    Nearly all numbers they are given lie between the next two.
    """
    found: dict[str, list[bool]] = {}
    for one in constants:
        for e in one.numbers():
            if len(e.beside) > 1 and not (one.test_only or one.computed):
                holds = _may_be_range(e) and e.beside[0] <= e.number <= e.beside[1]
                found.setdefault(_maker(one, e), []).append(holds)
    return {maker for maker, told in found.items() if sum(told) > 0.9 * len(told) - 0.1}


def is_declared(one: SourceConstant, element: Element, makers: set[str]) -> bool:
    return _may_be_range(element) and _maker(one, element) in makers


def _maker(one: SourceConstant, element: Element) -> str:
    return element.maker or f"{one.path}[]"


def _may_be_range(element: Element) -> bool:
    """Whether the two numbers behind this one could be a minimum and a maximum."""
    return 2 <= len(element.beside) <= 5 and element.beside[0] < element.beside[1]


def of_declaration(name: str, place: Location, element: Element) -> Suggested:
    inner = place.accesses and place.accesses[-1].field
    outer = replace(place, accesses=place.accesses[:-1]) if inner else place
    called = name_of(element.label) or own_name(name, outer)
    found = _declared_range(
        called,
        element.number,
        element.beside,
        real=element.real,
        limit=_LIMIT_OF_TYPE,
        constant=str(place),
    )
    return within(found, element)


def tuning_switches(texts: Iterable[str]) -> list[str]:
    """What may turn on an engine's UCI options for tuning: features of cargo, defines of C."""
    found: set[str] = set()
    for text in texts:
        found |= {f"--features {name}" for name in _FEATURE.findall(text)}
        found |= {f"-D{name}" for name in _DEFINE.findall(text)}
    return sorted(found)


def suggest_options(declarations: Declarations, lines: Iterable[str] = ()) -> tuple[Suggested, ...]:
    """A parameter for every option of a UCI engine; what is not tunable is left out.

    A string whose default is a number is one: OpenBench sends fractions to such options. Where
    `lines` of the engine list some as OpenBench wants them, the other options are comments.
    """
    read = (_OF_OPENBENCH.fullmatch(line) for line in lines)
    listed = {line["name"]: line for line in read if line is not None}
    taken: set[str] = set()
    found = {one.name: _of_option(one, taken) for one in declarations.by_name.values()}
    if not listed:
        return tuple(found.values())
    return tuple(
        _as_listed(one, listed[name]) if name in listed else one.opposed([NOT_DECLARED])
        for name, one in found.items()
    )


def _as_listed(one: Suggested, line: re.Match[str]) -> Suggested:
    """An option with the range and the step that its author gave."""
    read = int if line["type"] == "int" else float
    value, low, high = (read(float(line[key])) for key in ("value", "min", "max"))
    return Suggested(
        name=one.name,
        value=value,
        minimum=low,
        maximum=high,
        step=float(line["step"]) or 1,
        declared=True,
        keys={
            **{key: text for key, text in one.keys.items() if key == "option"},
            "type": line["type"],
        },
    )


def _of_option(option: Declared, taken: set[str]) -> Suggested:
    name = free_name(name_of(option.name) or "option_", (), taken)
    taken.add(name)
    keys = {} if name == option.name else {"option": option.name}
    value, low, high = option.default or 0, option.low or 0, option.high or 0
    if option.type == "string":
        found = around(name, value, real=isinstance(value, float))
    else:
        found = _declared_range(name, value, (low, high), real=False, limit=_LIMIT_OF_OPTION)
    found = replace(found, keys={**keys, **found.keys})
    return found.opposed(_against(option))


def _against(option: Declared) -> Iterator[Objection | None]:
    value, low, high = option.default or 0, option.low or 0, option.high or 0
    is_string = option.type == "string" and option.default is not None
    if option.type != "spin" and not is_string:
        yield _OTHER_TYPES
    elif not is_string and not low <= value <= high > low:
        yield _NO_RANGE
    yield to_declared(option.name)
    if is_string and value == 0:
        yield ZERO
    if (found := to_name(re.sub(r"\W+", "_", option.name))) is not None:
        yield found._replace(left_out=False)
