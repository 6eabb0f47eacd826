"""Rust's types as far as numbers need them: what a type is made of, and what it can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack, unpack

from tree_sitter import Node

from spsa.builds.rust.shape import DEEPEST, content, text_of
from spsa.core.params import Access, Number


@dataclass(frozen=True, slots=True)
class Named:
    """A primitive type, an alias, or any other type by its last name."""

    name: str


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: "RustType"


@dataclass(frozen=True, slots=True)
class TupleOf:
    fields: tuple["RustType", ...]


RustType = Named | ArrayOf | TupleOf

_BITS = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128, "size": 64}
INTEGERS: Mapping[str, tuple[int, int]] = {
    **{f"i{name}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()},
    **{f"u{name}": (0, 2**bits - 1) for name, bits in _BITS.items()},
}
REALS = frozenset({"f32", "f64"})
LARGEST_F32 = 3.4028234663852886e38
NOT_NUMBERS = frozenset({"bool", "char", "str"})


def type_of(node: Node, depth: int = 0) -> RustType:
    """The type that `node` writes, inside `depth` brackets; references are looked through."""
    if depth > DEEPEST:
        return Named("nested too deeply")
    if node.type == "reference_type":
        return type_of(content(node)[-1], depth + 1)
    if node.type == "array_type" and (element := node.child_by_field_name("element")) is not None:
        return ArrayOf(type_of(element, depth + 1))
    if node.type == "tuple_type":
        return TupleOf(tuple(type_of(field, depth + 1) for field in content(node)))
    return Named(text_of(node).rsplit("::", 1)[-1])


def resolve(kind: RustType, aliases: Mapping[str, RustType]) -> RustType:
    """`kind` with the file's own aliases looked up; a circle of aliases ends where it starts."""
    seen: set[str] = set()
    while isinstance(kind, Named) and kind.name in aliases and kind.name not in seen:
        seen.add(kind.name)
        kind = aliases[kind.name]
    return kind


def element_type(
    kind: RustType, accesses: Sequence[Access], aliases: Mapping[str, RustType]
) -> RustType | None:
    """The type of what stands at `accesses` inside a value of type `kind`; None when unknown."""
    for access in accesses:
        match resolve(kind, aliases):
            case ArrayOf(element):
                kind = element
            case TupleOf(fields) if access.position < len(fields):
                kind = fields[access.position]
            case _:
                return None
    return resolve(kind, aliases)


def as_stored(name: str | None, number: float) -> float:
    """A real number as a constant of this type has it; an f32 has 24 bits."""
    if name != "f32" or abs(number) > LARGEST_F32:
        return number
    stored: float = unpack("f", pack("f", number))[0]
    return stored


def holds(name: str, number: Number) -> bool:
    """Whether the type of this name can hold `number`; a name nobody knows can hold anything."""
    if name not in INTEGERS:
        return True
    low, high = INTEGERS[name]
    return number == int(number) and low <= number <= high
