"""What a field of a value may hold: in Python and in SQL.

A field says its limit once, as `Annotated[int, Range(0, 100)]`. `spsa.core.json_values` compares
values with it, and the tables make their CHECK constraints from it. Columns of JSON have no such
constraint; they are read with `as_written`.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from spsa.errors import OutOfRange, UnusableState

LEAST_MEASURED = 1e-6
"""The least measured number except 0: what is divided by it stays finite."""

HEX_DIGITS = "0123456789abcdef"

_SIGNS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OutOfRange)


class Limit(Protocol):
    """What a field may hold, besides its type."""

    def refusal(self, value: Any) -> str | None:
        """Why a value of the right type is refused; None if it is not."""

    def condition(self, column: str) -> str:
        """The same in SQL."""


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
    """A text of `least` to `most` characters: one printable line, unless it is a `quote`."""

    least: int
    most: int
    quote: bool = False

    def refusal(self, value: Any) -> str | None:
        if not self.least <= len(value) <= self.most:
            return f"has {len(value)} characters; {self.least} to {self.most} are allowed"
        if not self.quote and not value.isprintable():
            return f"has unprintable characters: {shown(value)}"
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "has half a surrogate pair, which is no character"
        return None

    def condition(self, column: str) -> str:
        return f"length({column}) BETWEEN {self.least} AND {self.most}"


@dataclass(frozen=True, slots=True)
class Hash:
    """A SHA-256 in 64 small hexadecimal digits."""

    def refusal(self, value: Any) -> str | None:
        if len(value) == 64 and not value.strip(HEX_DIGITS):
            return None
        return f"is {shown(value)}; it has to be 64 hexadecimal digits"

    def condition(self, column: str) -> str:
        return f"length({column}) = 64 AND ltrim({column}, '{HEX_DIGITS}') = ''"


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


def shown(value: Any) -> str:
    """A value of any JSON type for a message, in at most 80 characters."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return f"{value:.6g}"
        except OverflowError:
            return "a number of hundreds of digits"
    if isinstance(value, dict | list | tuple):
        return f"{'an object' if isinstance(value, dict) else 'an array'} of {len(value)}"
    text = "null" if value is None else ascii(str(value)[:80])
    return text if len(text) <= 80 else f"{text[:77]}..."


def is_number(data: Any) -> bool:
    if not isinstance(data, int | float) or isinstance(data, bool):
        return False
    try:
        return isfinite(data)
    except OverflowError:  # a whole number of hundreds of digits
        return False


@contextmanager
def as_written(what: str) -> Iterator[None]:
    """Read the JSON column `what`; UnusableState if it has another form.

    JSON in another form was changed by hand, and Python's own errors would not say which column
    that is.
    """
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
