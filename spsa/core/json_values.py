"""Values of the protocol as JSON, and back, with the types and limits of their fields checked.

This is all that compares what another machine sends with what is declared. It needs nothing but
Python, because a remote worker is packed with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
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

from spsa.core.limits import Limit, is_number, shown
from spsa.errors import OutOfRange

Value = TypeVar("Value")


def checks(kind: type, columns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Column and condition of the CHECKs for the columns that are fields of `kind`."""
    for column in columns:
        for limit in _limits(_hints(kind)[column][0]):
            yield column, limit.condition(column)


def checked(value: Value) -> Value:
    """The same value.

    Raises:
        OutOfRange: names the first field of another type than declared, or outside its limits.
    """
    return from_json(type(value), value)


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
    """The value that `to_json` made this JSON of; fields may also have values of their type.

    A whole number stays one in a field for any number. A class of a field may have its own
    `from_json`.

    Args:
        place: where the JSON stands, for messages.

    Raises:
        OutOfRange: names the first field that is missing, unknown, of another type than declared,
            or outside its limits.
    """
    try:
        read: Value = (_object if is_dataclass(kind) else _read)(kind, data)
    except _Refused as refused:
        where = f"{place or kind.__name__}{refused.where}"
        raise OutOfRange(f"{where} {refused.why}", where) from None
    return read


class _Refused(Exception):
    """Why some JSON is refused, and where in it."""

    def __init__(self, why: str, where: str = "") -> None:
        self.why, self.where = why, where


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What a hint is, and what is in its brackets."""
    return get_origin(hint) or hint, get_args(hint)


@cache
def _hints(kind: Any) -> Mapping[str, tuple[Any, bool]]:
    """The hint of each field of a dataclass, and whether the field is needed."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (hints[field.name], field.default is field.default_factory is MISSING)
        for field in fields(kind)
    }


def _limits(hint: Any) -> tuple[Limit, ...]:
    """The limits of a field; those of a field that may be null stand inside."""
    origin, of = _parts(hint)
    if origin in (Union, UnionType):
        return next(filter(None, map(_limits, of)), ())
    return getattr(hint, "__metadata__", ())


def _read(hint: Any, data: Any) -> Any:
    """The value of some JSON; raises _Refused."""
    origin, of = _parts(hint)
    if origin is Annotated:
        return _limited(_read(of[0], data), of[1:])
    if origin in (Union, UnionType):
        return _any_of(sorted(of, key=lambda part: part is not type(None)), data)
    if origin is Any:
        return data
    if origin in _SIMPLE:
        return data if _SIMPLE[origin](data) else _refuse(data, _TYPES[origin])
    if origin is Literal or issubclass(origin, StrEnum):
        return _choice(origin, of or tuple(origin), data)
    if is_dataclass(origin):
        return _own(origin, data)
    if issubclass(origin, tuple | list):
        return _items(origin, of, data)
    return _mapping(of or (Any, Any), data)


def _at(where: str, hint: Any, data: Any) -> Any:
    """The value of a part of some JSON."""
    try:
        return _read(hint, data)
    except _Refused as refused:
        raise _Refused(refused.why, where + refused.where) from None


def _refuse(data: Any, wanted: str) -> NoReturn:
    raise _Refused(f"is {shown(data)}; it has to be of the JSON type {wanted}")


def _limited(value: Any, limits: tuple[Limit, ...]) -> Any:
    for limit in limits:
        if (why := limit.refusal(value)) is not None:
            raise _Refused(why)
    return value


def _any_of(hints: Sequence[Any], data: Any) -> Any:
    for hint in hints[:-1]:
        with suppress(_Refused):
            return _read(hint, data)
    return _read(hints[-1], data)


def _choice(kind: Any, allowed: tuple[Any, ...], data: Any) -> Any:
    if not isinstance(data, str) or data not in allowed:
        raise _Refused(f"is {shown(data)}; allowed: {', '.join(map(str, allowed))}")
    return data if kind is Literal else kind(data)


def _items(kind: type, of: tuple[Any, ...], data: Any) -> Any:
    if not isinstance(data, list | tuple):
        _refuse(data, "array")
    is_fixed = kind is tuple and Ellipsis not in of
    if is_fixed and len(data) != len(of):
        raise _Refused(f"has {len(data)} items; it has to have {len(of)}")
    each = of if is_fixed else of[:1] * len(data)
    return kind(_at(f"[{i}]", each[i], part) for i, part in enumerate(data))


def _mapping(of: tuple[Any, ...], data: Any) -> Any:
    if not isinstance(data, Mapping):
        _refuse(data, "object")
    return {
        _at(" has a name that", of[0], name): _at(f".{shown(name)}", of[1], part)
        for name, part in data.items()
    }


def _own(kind: Any, data: Any) -> Any:
    """A field that holds a dataclass, which may have its own `from_json`."""
    if not hasattr(kind, "from_json"):
        return _object(kind, data)
    return data if isinstance(data, kind) else kind.from_json(data)


def _object(kind: Any, data: Any) -> Any:
    hints = _hints(kind)
    if isinstance(data, kind):
        for name, (hint, _) in hints.items():
            _at(f".{name}", hint, getattr(data, name))
        return _consistent(data)
    if not isinstance(data, Mapping):
        _refuse(data, "object")
    if unknown := sorted(data.keys() - hints.keys()):
        raise _Refused(f"has an unknown field {shown(unknown[0])}")
    if missing := sorted(name for name in hints.keys() - data.keys() if hints[name][1]):
        raise _Refused(f"lacks the field {missing[0]}")
    return _consistent(
        kind(**{name: _at(f".{name}", hints[name][0], part) for name, part in data.items()})
    )


def _consistent(value: Any) -> Any:
    if (why := getattr(value, "inconsistency", None)) is not None:
        raise _Refused(why)
    return value


_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_SIMPLE: Mapping[Any, Callable[[Any], bool]] = {
    int: lambda data: isinstance(data, int) and not isinstance(data, bool),
    float: is_number,
    str: lambda data: isinstance(data, str),
    bool: lambda data: isinstance(data, bool),
    type(None): lambda data: data is None,
}
