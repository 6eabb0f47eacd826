"""Reads the JSON columns that this program wrote.

JSON in another form was changed by hand. Python's own errors would not say which column that is, so
all JSON of the database is read through this module.
"""

from collections.abc import Callable, Iterator, Mapping
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
    tests = _tests(declared)
    for name, value in data.items():
        fits = tests.get(name)
        if fits is not None and not fits(value):
            raise TypeError(f"{name} is {value!r}")
    return kind(**data, **more)


def finite(values: Mapping[str, Any]) -> Mapping[str, float]:
    """The same mapping from names to finite numbers; TypeError if it is anything else."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} is not a mapping from names to numbers")
    for name, value in values.items():
        if not _is_number(value):
            raise TypeError(f"{name} is {value!r}")
    return values


_Test = Callable[[Any], bool]


@cache
def _tests(kind: Any) -> dict[str, _Test]:
    return {name: _test(wanted) for name, wanted in get_type_hints(kind).items()}


@cache
def _test(wanted: Any) -> _Test:
    """Whether a value from JSON fits a field of this type; a whole number fits a float."""
    known = {float: _is_number, int: _is_whole}
    if wanted in known:
        return known[wanted]
    kind, of = get_origin(wanted) or wanted, get_args(wanted)
    if kind in (Union, UnionType):
        tests = [_test(each) for each in of]
        return lambda value: any(test(value) for test in tests)
    if kind is Literal:
        return lambda value: value in of
    return lambda value: isinstance(value, kind)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
