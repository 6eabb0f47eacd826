"""Reads Rust's number literals exactly, and writes them in their old style."""

import re
from dataclasses import dataclass
from math import isfinite

from spsa.core.params import Number

_LITERAL = re.compile(
    # the digits of a hexadecimal number go on for as long as they can: 0x1f32 is no f32
    r"(?P<digits>0x[0-9a-fA-F_]*[0-9a-fA-F]|0o[0-7_]*[0-7]|0b[01_]*[01]"
    r"|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?_*[0-9][0-9_]*)?)"
    r"_*(?P<suffix>[iu](?:8|16|32|64|128|size)|f(?:32|64))?"
)
_LONGEST = 400
"""Characters of a literal: the longest f64 that is not written with zeros to no purpose."""
_TOO_LARGE = 2**128
_BASES = {"0x": 16, "0o": 8, "0b": 2}


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as it stands in the source, with its bytes' range [start, end)."""

    number: Number
    text: str
    start: int
    end: int

    @property
    def suffix(self) -> str:
        """The type written behind the digits, "" for none."""
        found = _LITERAL.fullmatch(self.text.lstrip("- "))
        return (found and found["suffix"]) or ""


def read(text: str) -> Number:
    """The number a literal (with or without a minus before it) stands for.

    Raises ValueError if it is not a number literal.
    """
    sign, digits = (-1, text[1:].strip()) if text.startswith("-") else (1, text)
    found = _LITERAL.fullmatch(digits) if len(digits) <= _LONGEST else None
    if found is None:
        raise ValueError(f"{text!r} is not a number")
    number = sign * _magnitude(found["digits"].replace("_", ""), found["suffix"] or "")
    if abs(number) >= _TOO_LARGE if isinstance(number, int) else not isfinite(number):
        raise ValueError(f"{text!r} is too large for any type")
    return number


def write(number: Number, like: str, *, real: bool) -> str:
    """`number` in the style of the literal `like`: its suffix, and underscores between thousands.

    `real` asks for a literal of a floating point type. Hexadecimal and the like become decimal.
    """
    found = _LITERAL.fullmatch(like.lstrip("- "))
    suffix = (found and found["suffix"]) or ""
    grouped = "_" if found and re.search(r"\d_\d{3}(?!\d)", found["digits"]) else ""
    separator = "_" if suffix and like.removesuffix(suffix).endswith("_") else ""
    return _digits(number, grouped, real=real) + separator + suffix


def _magnitude(digits: str, suffix: str) -> Number:
    base = _BASES.get(digits[:2])
    if base is not None:
        return int(digits, base)
    real = suffix.startswith("f") or any(mark in digits for mark in ".eE")
    return float(digits) if real else int(digits)


def _digits(number: Number, grouped: str, *, real: bool) -> str:
    if not isfinite(number):
        raise ValueError(f"{number} cannot be written as a literal")
    if real:
        text = repr(float(number))
        return text if "e" in text or not grouped else f"{float(number):_}"
    return f"{int(number):{grouped}d}"
