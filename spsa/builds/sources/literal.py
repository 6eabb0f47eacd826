"""Number literals, read exactly and written in their old style, and the ranges of their types."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from struct import pack, unpack

from spsa.core.params import Number


@dataclass(frozen=True, slots=True)
class Named:
    """A primitive type, an alias, or any other type by its last name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: "ValueType"


@dataclass(frozen=True, slots=True)
class TupleOf:
    fields: tuple["ValueType", ...]


@dataclass(frozen=True, slots=True)
class StructOf:
    """A struct with named fields."""

    names: tuple[str, ...]
    fields: tuple["ValueType", ...]


ValueType = Named | ArrayOf | TupleOf | StructOf

_BITS = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128, "size": 64}
_WIDTHS = {"char": 8, "short": 16, "int": 32, "long": 64, "long long": 64}


def _signed(bits: int) -> tuple[int, int]:
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


RUST_INTEGERS: Mapping[str, tuple[int, int]] = {
    **{f"i{name}": _signed(bits) for name, bits in _BITS.items()},
    **{f"u{name}": (0, 2**bits - 1) for name, bits in _BITS.items()},
}
C_INTEGERS: Mapping[str, tuple[int, int]] = {
    **{name: _signed(bits) for name, bits in _WIDTHS.items()},
    **{f"unsigned {name}": (0, 2**bits - 1) for name, bits in _WIDTHS.items()},
    **{f"int{bits}_t": _signed(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "unsigned": (0, 2**32 - 1),
    "signed char": _signed(8),
    "size_t": (0, 2**64 - 1),
}
INTEGERS = {**RUST_INTEGERS, **C_INTEGERS}
REALS = frozenset({"f32", "f64", "float", "double"})
_OF_24_BITS = ("f32", "float")
LARGEST_F32 = 3.4028234663852886e38
UNKNOWN = Named("")


def resolve(kind: ValueType, aliases: Mapping[str, ValueType]) -> ValueType:
    """`kind` with known names looked up; a circle of aliases ends where it starts."""
    seen: set[str] = set()
    while isinstance(kind, Named) and kind.name in aliases and kind.name not in seen:
        seen.add(kind.name)
        kind = aliases[kind.name]
    return kind


def inside(kind: ValueType, position: int | str, aliases: Mapping[str, ValueType]) -> ValueType:
    """The type of one item of a value of type `kind`."""
    match resolve(kind, aliases):
        case ArrayOf(element):
            return element
        case TupleOf(fields) if isinstance(position, int) and position < len(fields):
            return fields[position]
        case StructOf(names, fields) if position in names:
            return fields[names.index(str(position))]
        case _:
            return UNKNOWN


def as_stored(name: str | None, number: float) -> float:
    """A real number as a constant of this type has it; an f32 or a float has 24 bits."""
    if name not in _OF_24_BITS or abs(number) > LARGEST_F32:
        return number
    stored: float = unpack("f", pack("f", number))[0]
    return stored


def holds(name: str, number: Number) -> bool:
    """Whether the type of this name can hold `number`; an unknown type can hold anything."""
    if name not in INTEGERS:
        return True
    low, high = INTEGERS[name]
    return number == int(number) and low <= number <= high


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
