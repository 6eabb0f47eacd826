"""The values and types of constants as plain data, so that no syntax tree leaves this package."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

import spsa.builds.rust.literal as literal
from spsa.builds.rust.literal import Literal


@dataclass(frozen=True, slots=True)
class Group:
    """An array or a tuple, written out."""

    items: tuple["Shape", ...]
    tuple_: bool


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is no number written out; `what` says in words what it is instead."""

    what: str
    text: str
    names: tuple[str, ...] = ()


Shape = Literal | Group | Opaque

_BRACKETS = {"parenthesized_expression", "reference_expression"}
_WHAT = {
    "boolean_literal": "a bool",
    "char_literal": "a character",
    "string_literal": "a string",
    "raw_string_literal": "a string",
    "call_expression": "computed by a call",
    "macro_invocation": "computed by a macro",
}


DEEPEST = 32
"""Levels of brackets in a value or a type that are looked into."""


def shape_of(node: Node, depth: int = 0) -> Shape:
    """The shape of the value that `node` writes, inside `depth` brackets."""
    if depth > DEEPEST:
        return Opaque("nested too deeply", text_of(node))
    if node.type in _BRACKETS:
        return _inner(node, depth + 1)
    if node.type == "array_expression":
        return _array(node, depth + 1)
    if node.type == "tuple_expression":
        return Group(_items(node, depth + 1), tuple_=True)
    return _number(node) or _opaque(node)


def literals(shape: Shape) -> Iterator[Literal]:
    """All the numbers in a shape, in the order they are written."""
    if isinstance(shape, Literal):
        yield shape
    elif isinstance(shape, Group):
        for item in shape.items:
            yield from literals(item)


def content(node: Node) -> list[Node]:
    """The named children of a node that are not comments or attributes."""
    skipped = {"line_comment", "block_comment", "attribute_item", "mutable_specifier"}
    return [child for child in node.named_children if child.type not in skipped]


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def _inner(node: Node, depth: int) -> Shape:
    inner = content(node)
    return shape_of(inner[-1], depth) if inner else _opaque(node)


def _items(node: Node, depth: int) -> tuple[Shape, ...]:
    return tuple(shape_of(item, depth) for item in content(node))


def _array(node: Node, depth: int) -> Shape:
    if node.child_by_field_name("length") is not None:
        return Opaque("one number repeated", text_of(node))
    return Group(_items(node, depth), tuple_=False)


def _number(node: Node) -> Literal | None:
    """A literal, with the minus before it; None for anything else, such as `-(5)` or `-X`."""
    digits = content(node)[0] if node.type == "unary_expression" and content(node) else node
    if digits.type not in ("integer_literal", "float_literal"):
        return None
    try:
        number = literal.read(text_of(node))
    except ValueError:
        return None
    return Literal(number, text_of(node), node.start_byte, node.end_byte)


def _opaque(node: Node) -> Opaque:
    names = tuple(dict.fromkeys(_names(node)))
    usual = "derived from other constants" if names else "an expression"
    return Opaque(_WHAT.get(node.type, usual), " ".join(text_of(node).split()), names)


def _names(node: Node) -> Iterator[str]:
    """The constants an expression mentions: its upper-case identifiers."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current.type == "identifier" and text_of(current).isupper():
            yield text_of(current)
        if current.type != "scoped_identifier":
            waiting.extend(reversed(current.named_children))
