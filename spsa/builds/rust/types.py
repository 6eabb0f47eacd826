"""The parts of Rust's types that matter for numbers: their components and their ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import pack, unpack

from tree_sitter import Node

from spsa.builds.rust.shape import DEEPEST, content, text_of
from spsa.core.params import Number


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


@dataclass(frozen=True, slots=True)
class StructOf:
    """A struct with named fields."""

    names: tuple[str, ...]
    fields: tuple["RustType", ...]


RustType = Named | ArrayOf | TupleOf | StructOf

_BITS = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128, "size": 64}
INTEGERS: Mapping[str, tuple[int, int]] = {
    **{f"i{name}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _BITS.items()},
    **{f"u{name}": (0, 2**bits - 1) for name, bits in _BITS.items()},
}
REALS = frozenset({"f32", "f64"})
LARGEST_F32 = 3.4028234663852886e38
NOT_NUMBERS = frozenset({"bool", "char", "str"})


UNKNOWN = Named("")
_ATOMIC = {f"Atomic{name.upper()}": name for name in (*INTEGERS, "bool")} | {
    "AtomicUsize": "usize",
    "AtomicIsize": "isize",
}


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
    name = text_of(node).rsplit("::", 1)[-1]
    return Named(_ATOMIC.get(name, name))


def struct_of(node: Node) -> RustType | None:
    """What a struct is made of; None for one without fields."""
    body = node.child_by_field_name("body")
    if body is None:
        return None
    parts = [part for part in content(body) if part.type != "visibility_modifier"]
    if body.type == "ordered_field_declaration_list":
        return TupleOf(tuple(type_of(part) for part in parts))
    named = [(part.child_by_field_name("name"), part.child_by_field_name("type")) for part in parts]
    fields = [(text_of(name), type_of(kind)) for name, kind in named if name and kind]
    return StructOf(tuple(name for name, _ in fields), tuple(kind for _, kind in fields))


def resolve(kind: RustType, aliases: Mapping[str, RustType]) -> RustType:
    """`kind` with known names looked up; a circle of aliases ends where it starts."""
    seen: set[str] = set()
    while isinstance(kind, Named) and kind.name in aliases and kind.name not in seen:
        seen.add(kind.name)
        kind = aliases[kind.name]
    return kind


def inside(kind: RustType, position: int | str, aliases: Mapping[str, RustType]) -> RustType:
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
    """A real number as a constant of this type has it; an f32 has 24 bits."""
    if name != "f32" or abs(number) > LARGEST_F32:
        return number
    stored: float = unpack("f", pack("f", number))[0]
    return stored


def holds(name: str, number: Number) -> bool:
    """Whether the type of this name can hold `number`; an unknown type can hold anything."""
    if name not in INTEGERS:
        return True
    low, high = INTEGERS[name]
    return number == int(number) and low <= number <= high
