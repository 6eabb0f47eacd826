"""Values of the protocol as JSON, and back, with the types and limits of their fields checked.

This is all that compares what another machine sends with what is declared. It needs nothing but
Python, because a remote worker is packed with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from spsa.core.limits import Limit, is_number, shown
from spsa.errors import OutOfRange

Value = TypeVar("Value")


def checks(kind: type, columns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Column and condition of the CHECKs for the columns that are fields of `kind`."""
    for column in columns:
        for limit in _limits(_hints(kind)[column]):
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
    declared: Any = kind  # for mypy: a type variable is not known to be hashable
    reader = _object_reader if isinstance(declared, type) and is_dataclass(declared) else _reader
    try:
        read: Value = reader(declared)(data)
    except _Refused as refused:
        where = f"{place or kind.__name__}{refused.where}"
        raise OutOfRange(f"{where} {refused.why}", where) from None
    return read


_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def _is_needed(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _limits(hint: Any) -> tuple[Limit, ...]:
    """The limits of a field; those of a field that may be null stand inside."""
    if get_origin(hint) in (Union, UnionType):
        return next(filter(None, map(_limits, get_args(hint))), ())
    return getattr(hint, "__metadata__", ())


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


_Reader = Callable[[Any], Any]
"""Returns the value of some JSON, or raises _Refused."""


class _Refused(Exception):
    """Why some JSON is refused, and where in it."""

    def __init__(self, why: str, where: str = "") -> None:
        self.why, self.where = why, where


def _within(where: str, read: _Reader, data: Any) -> Any:
    try:
        return read(data)
    except _Refused as refused:
        raise _Refused(refused.why, where + refused.where) from None


@cache
def _reader(hint: Any) -> _Reader:
    origin, of = get_origin(hint) or hint, get_args(hint)
    if origin is Annotated:
        return _limited_reader(_reader(of[0]), of[1:])
    if origin in (Union, UnionType):
        nothing_first = sorted(of, key=lambda part: part is not type(None))
        return _union_reader([_reader(part) for part in nothing_first])
    if origin in _SIMPLE:
        return _simple_reader(origin)
    if origin is Literal:
        return _choice_reader(of, str)
    if origin is Any or not isinstance(origin, type):
        return lambda data: data
    if issubclass(origin, StrEnum):
        return _choice_reader(tuple(origin), origin)
    if is_dataclass(origin):
        return _field_reader(origin)
    if issubclass(origin, tuple | list):
        return _items_reader(origin, of)
    return _mapping_reader(*(_reader(part) for part in of or (Any, Any)))


def _limited_reader(read: _Reader, limits: tuple[Limit, ...]) -> _Reader:
    def limited(data: Any) -> Any:
        value = read(data)
        for limit in limits:
            if (why := limit.refusal(value)) is not None:
                raise _Refused(why)
        return value

    return limited


def _union_reader(readers: Sequence[_Reader]) -> _Reader:
    def one_of(data: Any) -> Any:
        for read in readers[:-1]:
            with suppress(_Refused):
                return read(data)
        return readers[-1](data)

    return one_of


def _simple_reader(kind: type) -> _Reader:
    fits = _SIMPLE[kind]

    def simple(data: Any) -> Any:
        if fits(data):
            return data
        raise _Refused(f"is {shown(data)}; it has to be of the JSON type {_TYPES[kind]}")

    return simple


def _choice_reader(allowed: tuple[Any, ...], kind: Callable[[Any], Any]) -> _Reader:
    def choice(data: Any) -> Any:
        if isinstance(data, str) and data in allowed:
            return kind(data)
        raise _Refused(f"is {shown(data)}; allowed: {', '.join(map(str, allowed))}")

    return choice


def _items_reader(kind: type, of: tuple[Any, ...]) -> _Reader:
    readers = [_reader(part) for part in of if part is not Ellipsis]
    is_fixed = kind is tuple and Ellipsis not in of

    def items(data: Any) -> Any:
        if not isinstance(data, list | tuple):
            raise _Refused(f"is {shown(data)}; it has to be of the JSON type array")
        if is_fixed and len(data) != len(readers):
            raise _Refused(f"has {len(data)} items; it has to have {len(readers)}")
        each = readers if is_fixed else readers * len(data)
        parts = enumerate(zip(each, data, strict=True))
        return kind(_within(f"[{i}]", read, part) for i, (read, part) in parts)

    return items


def _mapping_reader(read_name: _Reader, read_value: _Reader) -> _Reader:
    def mapping(data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise _Refused(f"is {shown(data)}; it has to be of the JSON type object")
        return {
            _within(" has a name that", read_name, name): _within(
                f".{shown(name)}", read_value, part
            )
            for name, part in data.items()
        }

    return mapping


def _field_reader(kind: Any) -> _Reader:
    """The reader of a field that holds a dataclass, which may have its own `from_json`."""
    if not hasattr(kind, "from_json"):
        return _object_reader(kind)
    return lambda data: data if isinstance(data, kind) else kind.from_json(data)


@cache
def _object_reader(kind: Any) -> _Reader:
    readers = {name: _reader(hint) for name, hint in _hints(kind).items()}
    needed = {field.name for field in fields(kind) if _is_needed(field)}

    def read(data: Any) -> Any:
        if isinstance(data, kind):
            for name in readers:
                _within(f".{name}", readers[name], getattr(data, name))
            return _consistent(data)
        if not isinstance(data, Mapping):
            raise _Refused(f"is {shown(data)}; it has to be of the JSON type object")
        if unknown := sorted(data.keys() - readers.keys()):
            raise _Refused(f"has an unknown field {shown(unknown[0])}")
        if missing := sorted(needed - data.keys()):
            raise _Refused(f"lacks the field {missing[0]}")
        found = {name: _within(f".{name}", readers[name], part) for name, part in data.items()}
        return _consistent(kind(**found))

    return read


def _consistent(value: Any) -> Any:
    if (why := getattr(value, "inconsistency", None)) is not None:
        raise _Refused(why)
    return value


_SIMPLE: dict[type, Callable[[Any], bool]] = {
    int: lambda data: isinstance(data, int) and not isinstance(data, bool),
    float: is_number,
    str: lambda data: isinstance(data, str),
    bool: lambda data: isinstance(data, bool),
    type(None): lambda data: data is None,
}
