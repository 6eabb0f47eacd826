"""Values as JSON, and back, with the types and limits of their fields checked.

It needs nothing but Python, because a remote worker is packed with it. A field says its limit once,
as `Annotated[int, Range(0, 100)]`: values are compared with it, and the tables make their CHECK
constraints from it. Columns of JSON have no such constraint; they are read with `as_written`.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from spsa.errors import OutOfRange, UnusableState

LEAST_MEASURED = 1e-6  # except 0: what is divided by it stays finite
_SIGNS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OutOfRange)

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Range:
    """A number from `least` to `most`; if it was `measured`, 0 or at least `LEAST_MEASURED`."""

    least: float
    most: float
    measured: bool = False

    def refusal(self, value: Any) -> str | None:
        if not self.least <= value <= self.most:  # NaN fails this too
            return f"is {shown(value)}; allowed: {self.least:,g} to {self.most:,g}"
        if self.measured and 0 < value < LEAST_MEASURED:
            return f"is {shown(value)}; allowed: 0, or from {LEAST_MEASURED:f} on"
        return None

    def condition(self, column: str) -> str:
        tiny = f" AND ({column} = 0 OR {column} >= {LEAST_MEASURED:f})" if self.measured else ""
        return f"{column} BETWEEN {self.least} AND {self.most}{tiny}"


@dataclass(frozen=True, slots=True)
class Text:
    """A text of `least` to `most` characters: one printable line, unless it is a `quote`.

    Its characters are those `of` a text, if that is given.
    """

    least: int
    most: int
    quote: bool = False
    of: str = ""

    def refusal(self, value: Any) -> str | None:
        if not self.least <= len(value) <= self.most:
            return f"has {len(value)} characters; {self.least} to {self.most} are allowed"
        if not self.quote and not value.isprintable():
            return f"has unprintable characters: {shown(value)}"
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "has half a surrogate pair, which is no character"
        if self.of and value.strip(self.of):
            return f"is {shown(value)}; its characters have to be of {self.of}"
        return None

    def condition(self, column: str) -> str:
        only = f" AND ltrim({column}, '{self.of}') = ''" if self.of else ""
        return f"length({column}) BETWEEN {self.least} AND {self.most}{only}"


HASH = Text(64, 64, of="0123456789abcdef")
"""A SHA-256 in small hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list or an object of at most `most` items; as JSON, at most so many `characters`."""

    most: int
    characters: int = 5_000

    def refusal(self, value: Any) -> str | None:
        if len(value) > self.most:
            return f"has {len(value)} items; at most {self.most} are allowed"
        texts = [part for part in value if isinstance(part, str)]
        if sum(len(json.dumps(text)) + 16 for text in texts) > self.characters:
            return f"is longer than {self.characters} characters of JSON"
        return None

    def condition(self, column: str) -> str:
        return f"length(CAST({column} AS TEXT)) <= {self.characters}"


Limit = Range | Text | Items
"""What a field may hold besides its type: why a value is refused, and the same in SQL."""


def checked(value: Value) -> Value:
    """The same value, if `from_json` would give it; else OutOfRange, as that raises it."""
    from_json(type(value), to_json(value))
    return value


def to_json(value: Any) -> Any:
    """A value as JSON: dataclasses and mappings are objects, sequences are lists."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: to_json(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(part) for part in value]
    return str(value) if isinstance(value, StrEnum) else value


def from_json(kind: type[Value], data: Any, place: str = "") -> Value:
    """The value that `to_json` made this JSON of; `place`, for messages, is where it stands.

    A whole number stays one in a field for any number. A class of a field may have its own
    `from_json`; the field of a dataclass may have a value of it already. OutOfRange names the first
    field that is missing, unknown, of another type than declared, or outside its limits.
    """
    read = _object if is_dataclass(kind) else _read
    value: Value = read(kind, data, place or kind.__name__)
    return value


@cache
def _hints(kind: Any) -> Mapping[str, tuple[Any, bool]]:
    """The hint of each field of a dataclass, and whether the field is needed."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is field.default_factory is MISSING)
        for field in fields(kind)
    }


def limits_of(hint: Any) -> tuple[Limit, ...]:
    """The limits of a field or column; those of one that may be null stand inside."""
    if get_origin(hint) in (Union, UnionType):
        return next(filter(None, map(limits_of, get_args(hint))), ())
    return getattr(hint, "__metadata__", ())


def _refuse(where: str, why: str) -> NoReturn:
    raise OutOfRange(f"{where} {why}", where)


def _read(hint: Any, data: Any, where: str) -> Any:
    """The value of some JSON; `where` it stands is for messages."""
    origin, of = get_origin(hint) or hint, get_args(hint)
    if origin is Any:
        return data
    if origin is Annotated:
        return _limited(of[0], of[1:], data, where)
    if origin in (Union, UnionType):
        return _any_of(of, data, where)
    if origin is Literal or issubclass(origin, StrEnum):
        return _choice(origin, of or tuple(origin), data, where)
    if hasattr(origin, "from_json"):
        return origin.from_json(data)
    if is_dataclass(origin):
        return _object(origin, data, where)
    name, kinds = _TYPES.get(origin, ("object", (Mapping,)))
    is_one = isinstance(data, kinds) and isinstance(data, bool) == (origin is bool)
    if not is_one or (origin is float and not is_number(data)):
        _refuse(where, f"is {shown(data)}; it has to be of the JSON type {name}")
    if name == "array":
        return _items(of, data, where)
    return _mapping(of, data, where) if name == "object" else data


def _limited(hint: Any, limits: tuple[Limit, ...], data: Any, where: str) -> Any:
    value = _read(hint, data, where)
    for limit in limits:
        if (why := limit.refusal(value)) is not None:
            _refuse(where, why)
    return value


def _any_of(hints: tuple[Any, ...], data: Any, where: str) -> Any:
    *others, last = sorted(hints, key=lambda hint: hint is not NoneType)
    for hint in others:
        with suppress(OutOfRange):
            return _read(hint, data, where)
    return _read(last, data, where)


def _choice(kind: Any, allowed: tuple[Any, ...], data: Any, where: str) -> Any:
    if data not in allowed:
        _refuse(where, f"is {shown(data)}; allowed: {', '.join(map(str, allowed))}")
    return data if kind is Literal else kind(data)


def _items(of: tuple[Any, ...], data: Any, where: str) -> Any:
    each = of[:1] * len(data) if Ellipsis in of else of
    if len(data) != len(each):
        _refuse(where, f"has {len(data)} items; it has to have {len(each)}")
    return tuple(_read(each[i], part, f"{where}[{i}]") for i, part in enumerate(data))


def _mapping(of: tuple[Any, ...], data: Any, where: str) -> Any:
    if of == (str, float) and all(map(is_number, data.values())):  # thousands of thetas are read
        return dict(data)
    return {
        _read(of[0], name, f"{where} has a name that"): _read(of[1], part, f"{where}.{shown(name)}")
        for name, part in data.items()
    }


def _object(kind: Any, data: Any, where: str) -> Any:
    hints = _hints(kind)
    if isinstance(data, kind):
        return data
    if not isinstance(data, Mapping):
        _refuse(where, f"is {shown(data)}; it has to be of the JSON type object")
    if unknown := sorted(data.keys() - hints.keys()):
        _refuse(where, f"has an unknown field {shown(unknown[0])}")
    if missing := sorted(name for name in hints.keys() - data.keys() if hints[name][1]):
        _refuse(where, f"lacks the field {missing[0]}")
    parts = {name: _read(hints[name][0], part, f"{where}.{name}") for name, part in data.items()}
    value = kind(**parts)
    if (why := getattr(value, "inconsistency", None)) is not None:
        _refuse(where, why)
    return value


def shown(value: Any) -> str:
    """A value of any JSON type for a message, in at most 80 characters."""
    if is_number(value):
        return f"{value:.6g}"
    if isinstance(value, dict | list | tuple):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    text = "null" if value is None else ascii(str(value)[:80])
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_number(data: Any) -> bool:
    """Whether it is a finite number, and no whole one of hundreds of digits."""
    is_one = isinstance(data, int | float) and not isinstance(data, bool)
    return is_one and abs(data) <= sys.float_info.max


_TYPES: Mapping[Any, tuple[str, tuple[type, ...]]] = {
    int: ("integer", (int,)),
    float: ("number", (int, float)),
    str: ("string", (str,)),
    bool: ("boolean", (bool,)),
    NoneType: ("null", (NoneType,)),
    tuple: ("array", (list, tuple)),
}


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Read the JSON column `what`; UnusableState if it has another form.

    It was changed by hand then, and Python's own errors would not say which column that is.
    """
    try:
        yield
    except _SIGNS as error:
        raise UnusableState(
            f"{what} is not as this program wrote it ({type(error).__name__}: {error}): restore "
            "its value, or the database from a backup"
        ) from error


def stored(kind: type[Value], data: Any, column: str) -> Value:
    """The value whose JSON is in this column; UnusableState if it holds anything else."""
    with as_written(f"a column `{column}`"):
        return from_json(kind, data, column)
