"""What this program once wrote as JSON, read again; in another form, somebody has changed it.

Python's own errors would say as little of that as a traceback; everything that is read from a
column goes through here instead.
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
    """Read `what`, as `spsa_run.space`; UnusableState where it cannot be read."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise UnusableState(
            f"{what} is not as this program wrote it ({type(error).__name__}: {error}): somebody "
            "has changed it; put back what was there, or the database from a backup"
        ) from error


def built(kind: type[Value], data: Mapping[str, Any], /, **more: Any) -> Value:
    """The dataclass that has these fields; `more` is taken as it is.

    Raises:
        TypeError: a field is missing, unknown or of another type than the one it declares.
    """
    declared: Any = kind  # hashable, which a type variable is not known to be
    types = _types(declared)
    for name, value in data.items():
        wanted = types.get(name)
        if wanted is not None and not _fits(value, wanted):
            raise TypeError(f"{name} is {value!r}")
    return kind(**data, **more)


def finite(values: Mapping[str, Any]) -> Mapping[str, float]:
    """The same numbers by name, as theta is; TypeError where they are anything else."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} in the place of numbers by name")
    for name, value in values.items():
        if not _fits(value, float):
            raise TypeError(f"{name} is {value!r}")
    return values


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value out of JSON may stand in a field of this type; a whole number is a float."""
    if wanted is float:  # first: a theta has a thousand of them
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if get_origin(wanted) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(wanted))
    if get_origin(wanted) is Literal:
        return value in get_args(wanted)
    return isinstance(value, get_origin(wanted) or wanted)
