"""Reads the JSON columns that this program wrote.

JSON in another form was changed by hand. Python's own errors would not say which column that is, so
all JSON of the database is read through this module.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from spsa.core.json_values import is_number
from spsa.errors import OutOfRange, UnusableState

_SIGNS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OutOfRange)


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Read the column `what`; UnusableState if it has another form."""
    try:
        yield
    except _SIGNS as error:
        raise UnusableState(
            f"{what} is not as this program wrote it ({type(error).__name__}: {error}): restore "
            "its value, or the database from a backup"
        ) from error


def finite(values: Mapping[str, Any]) -> Mapping[str, float]:
    """The same mapping from names to finite numbers; TypeError if it is anything else."""
    if not isinstance(values, Mapping):
        raise TypeError(f"{values!r} is not a mapping from names to numbers")
    for name, value in values.items():
        if not is_number(value):
            raise TypeError(f"{name} is {value!r}")
    return values
