"""The parts of types that matter for numbers: their components and their ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
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
