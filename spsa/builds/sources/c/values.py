"""The value and the type of a C or C++ declaration, and the numbers of an expression."""

import re
from dataclasses import replace

from tree_sitter import Node

from spsa.builds.sources.literal import C_INTEGERS, REALS, ArrayOf, C, Literal, Named, ValueType
from spsa.builds.sources.shape import (
    DEEPEST,
    NUMBERS,
    Group,
    Opaque,
    Shape,
    arguments,
    content,
    factor,
    number_at,
    opaque,
    preorder,
    text_of,
)


def shape_of(node: Node, depth: int = 0) -> Shape:
    """The shape of the value that `node` writes, inside `depth` brackets."""
    if depth > DEEPEST:
        return Opaque("nested too deeply", text_of(node))
    inner = content(node)
    match node.type:
        case "parenthesized_expression" if inner:
            return shape_of(inner[-1], depth + 1)
        case "initializer_list":
            return _listed(node, depth + 1)
        case _:
            found = _number(node) or factor(node, _number)
            return found or _wrapped(node, depth + 1) or opaque(node)


def value_of(node: Node, *, array: bool) -> Shape:
    """The value of a declared name; `int x{5}` is one number if `x` is no array."""
    shape = shape_of(node)
    if isinstance(shape, Group) and len(shape.items) == 1 and not (array or shape.names):
        return shape.items[0]
    return shape


def moved(shape: Shape, by: int) -> Shape:
    """The same shape with its literals `by` bytes further on."""
    match shape:
        case Literal():
            return replace(shape, start=shape.start + by, end=shape.end + by)
        case Group():
            return replace(shape, items=tuple(moved(item, by) for item in shape.items))
        case Opaque():
            return shape


def numbers_in(node: Node) -> Group:
    """The numbers that an expression is computed from, in the order they are written.

    Positions, parameters, cases and the heads of loops hold no strength and are left out, and so is
    all that has a name of its own.
    """
    numbers = (_number(one) for one in preorder(node, _operands))
    return Group(tuple(one for one in numbers if one is not None), tuple_=True, computed=True)


_WITHOUT_STRENGTH = frozenset(
    {
        "array_declarator",
        "class_specifier",
        "declaration",
        "enum_specifier",
        "parameter_list",
        "sizeof_expression",
        "static_assert_declaration",
        "struct_specifier",
        "subscript_argument_list",
        "template_argument_list",
        "type_descriptor",
    }
)


def _operands(node: Node) -> list[Node]:
    if (
        _number(node) is not None
        or node.type in _WITHOUT_STRENGTH
        or node.type.startswith("preproc")
    ):
        return []
    inner = content(node)
    match node.type:
        case "subscript_expression":
            return inner[:1]
        case "case_statement":
            value = node.child_by_field_name("value")
            return [one for one in inner if one != value]
        case "for_statement" | "for_range_loop":
            return inner[-1:]
        case _:
            return inner


def _listed(node: Node, depth: int) -> Shape:
    """An array, a struct with named fields, or the default of a tunable: `{"Name", 77, 0, 200}`."""
    inner = content(node)
    if tunable := _tunable(inner):
        return tunable
    if inner and all(one.type == "initializer_pair" for one in inner):
        return _named(inner, depth)
    return Group(tuple(shape_of(one, depth) for one in inner), tuple_=False)


def _tunable(items: list[Node]) -> Literal | None:
    """The number behind a name in quotes; the further ones are its range."""
    if len(items) > 1 and items[0].type == "string_literal":
        return _number(items[1])
    return None


def _named(pairs: list[Node], depth: int) -> Shape:
    names = [re.sub(r"\W", "", text_of(content(one)[0])) for one in pairs]
    shapes = tuple(shape_of(content(one)[-1], depth) for one in pairs)
    if any(name.isdigit() for name in names):
        return Group(shapes, tuple_=False) if names == [*map(str, range(len(names)))] else _PLACES
    return Group(shapes, tuple_=True, names=tuple(names))


_PLACES = Opaque("a list with places out of order", "")


def _wrapped(node: Node, depth: int) -> Shape | None:
    """The numbers inside a cast, a call, a macro or a constructor; None where they hold none."""
    inner = content(node)
    match node.type:
        case "cast_expression" | "unary_expression" if inner:
            cast = shape_of(inner[-1], depth) if node.type == "cast_expression" else None
            return cast if isinstance(cast, Literal) else None
        case "argument_list":
            return _tunable(inner) or arguments(tuple(shape_of(one, depth) for one in inner))
        case "call_expression" if inner[0].type != "field_expression" and len(inner) > 1:
            items = tuple(shape_of(one, depth) for one in content(inner[1]))
            return arguments(items, text_of(inner[0]))
        case "compound_literal_expression" if len(inner) > 1:
            items = tuple(shape_of(one, depth) for one in content(inner[1]))
            return arguments(items, text_of(inner[0]))
        case _:
            return None


def _number(node: Node) -> Literal | None:
    """A literal, with the minus before it; None for anything else, such as `-(5)` or `-X`."""
    digits = content(node)[0] if node.type == "unary_expression" and content(node) else node
    if digits.type not in NUMBERS:
        return None
    return number_at(text_of(node), node.start_byte, node.end_byte, C)


def type_of(node: Node | None, arrays: int = 0) -> ValueType:
    """The type that `node` writes, of the elements of so many nested arrays."""
    if arrays:
        return ArrayOf(type_of(node, arrays - 1))
    if node is None:
        return Named("")
    if node.type == "qualified_identifier":
        return type_of(content(node)[-1])
    if node.type == "template_type":
        name, parts = content(node)[0], content(content(node)[-1])
        return ArrayOf(type_of(parts[0])) if text_of(name) == "array" and parts else Named("")
    if node.type == "type_descriptor":
        return type_of(node.child_by_field_name("type"))
    return Named(_canonical(text_of(node)))


def _canonical(text: str) -> str:
    """One name for each type of numbers: `unsigned` and `unsigned int` are one."""
    words = [word for word in text.split() if word not in ("const", "signed", "constexpr")]
    if text.split() == ["signed", "char"]:
        return "signed char"
    if len(words) > 1 and words[-1] == "int":
        words.pop()
    name = " ".join(words) or "int"
    return name if name in C_INTEGERS or name in REALS else (words[-1] if words else "")
