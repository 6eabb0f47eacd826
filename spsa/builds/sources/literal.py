"""Reads number literals exactly, and writes them in their old style."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from spsa.core.params import Number

_LONGEST = 400
"""Characters of a literal: the longest f64 that is not written with zeros to no purpose."""
_TOO_LARGE = 2**128
_BASES = {"0x": 16, "0o": 8, "0b": 2}


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes numbers.

    `pattern` has the groups `digits` and `suffix`. `separator` may stand between digits, and
    `types` maps a suffix in lower case to its type. With `octal`, 017 is 15.
    """

    pattern: re.Pattern[str]
    separator: str
    types: Mapping[str, str]
    octal: bool = False

    def split(self, text: str) -> tuple[str, str]:
        """The digits and the suffix of a literal without its sign; ("", "") if it is none."""
        found = self.pattern.fullmatch(text)
        return (found["digits"], found["suffix"] or "") if found else ("", "")


_RUST_SUFFIX = r"[iu](?:8|16|32|64|128|size)|f(?:32|64)"
RUST = Notation(
    re.compile(
        # the digits of a hexadecimal number go on for as long as they can: 0x1f32 is no f32
        r"(?P<digits>0x[0-9a-fA-F_]*[0-9a-fA-F]|0o[0-7_]*[0-7]|0b[01_]*[01]"
        r"|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?_*[0-9][0-9_]*)?)"
        rf"_*(?P<suffix>{_RUST_SUFFIX})?"
    ),
    "_",
    {f"{sign}{bits}": f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64, 128, "size")}
    | {"f32": "f32", "f64": "f64"},
)
C = Notation(
    re.compile(
        r"(?P<digits>0[xX][0-9a-fA-F']*[0-9a-fA-F]|0[bB][01']*[01]"
        r"|(?=\.?[0-9])[0-9']*(?:\.[0-9']*)?(?:[eE][+-]?[0-9]+)?)"
        r"(?P<suffix>[uUlLzZ]{1,3}|[fF])?"
    ),
    "'",
    {"f": "float", "u": "unsigned", "l": "long", "ll": "long long"}
    | dict.fromkeys(("ul", "lu", "ull", "llu"), "unsigned long long"),
    octal=True,
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number as it stands in the source, with its bytes' range [start, end)."""

    number: Number
    text: str
    start: int
    end: int
    notation: Notation = field(default=RUST, compare=False, repr=False)

    @property
    def type(self) -> str:
        """The type that is written behind the digits, "" for none."""
        _, suffix = self.notation.split(_unsigned(self.text))
        return self.notation.types.get(suffix.lower(), "")


def read(text: str, notation: Notation = RUST) -> Number:
    """The number a literal (with or without a sign before it) stands for.

    Raises ValueError if it is not a number literal.
    """
    sign, rest = (-1, text[1:].strip()) if text.startswith("-") else (1, text)
    digits, suffix = notation.split(rest) if len(rest) <= _LONGEST else ("", "")
    if not digits:
        raise ValueError(f"{text!r} is not a number")
    number = sign * _magnitude(digits.replace(notation.separator, ""), suffix, notation)
    if abs(number) >= _TOO_LARGE if isinstance(number, int) else not isfinite(number):
        raise ValueError(f"{text!r} is too large for any type")
    return number


def write(number: Number, like: str, *, real: bool, notation: Notation = RUST) -> str:
    """`number` in the style of the literal `like`: its suffix, and marks between thousands.

    `real` asks for a literal of a floating point type. Hexadecimal and the like become decimal.
    """
    digits, suffix = notation.split(_unsigned(like))
    mark = notation.separator
    grouped = mark if re.search(rf"\d{mark}\d{{3}}(?!\d)", digits) else ""
    gap = mark if suffix and like.removesuffix(suffix).endswith(mark) else ""
    return _digits(number, grouped, real=real) + gap + suffix


def _unsigned(text: str) -> str:
    return text.lstrip("-+ ")


def _magnitude(digits: str, suffix: str, notation: Notation) -> Number:
    base = _BASES.get(digits[:2].lower())
    if base is not None:
        return int(digits, base)
    if suffix.lower().startswith("f") or any(mark in digits for mark in ".eE"):
        return float(digits)
    return int(digits, 8 if notation.octal and digits.startswith("0") else 10)


def _digits(number: Number, grouped: str, *, real: bool) -> str:
    if not isfinite(number):
        raise ValueError(f"{number} cannot be written as a literal")
    if real:
        text = repr(float(number))
        return text if "e" in text or not grouped else f"{float(number):,}".replace(",", grouped)
    whole = f"{int(number):,}"
    return whole.replace(",", grouped)
