"""Reads the JSON columns that this program wrote.

JSON in another form was changed by hand. Python's own errors would not say which column that is, so
all JSON of the database is read through this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from spsa.errors import UnusableState

Value = TypeVar("Value")


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Read the column `what`; UnusableState if it has another form."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UnusableState(
            f"{what} is not as this program wrote it ({type(error).__name__}: {error}): restore "
            "its value, or the database from a backup"
        ) from error


def built(kind: type[Value], data: Mapping[str, Any], /, **more: Any) -> Value:
    """A dataclass with these fields; `more` is not checked.

    Raises:
        TypeError: a field is missing, unknown, or of another type than declared.
    """
    declared: Any = kind  # for mypy: a type variable is not known to be hashable
    types = _types(declared)
    for name, value in data.items():
        wanted = types.get(name)
        if wanted is not None and not _fits(value, wanted):
            raise TypeError(f"{name} is {value!r}")
    return kind(**data, **more)


def finite(values: Mapping[str, Any]) -> Mapping[str, float]:
    """The same mapping from names to finite numbers; TypeError if it is anything else."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} is not a mapping from names to numbers")
    for name, value in values.items():
        if not _fits(value, float):
            raise TypeError(f"{name} is {value!r}")
    return values


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value from JSON fits a field of this type; a whole number fits a float."""
    if wanted is float:  # first: a theta has a thousand of them
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if get_origin(wanted) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(wanted))
    if get_origin(wanted) is Literal:
        return value in get_args(wanted)
    return isinstance(value, get_origin(wanted) or wanted)
