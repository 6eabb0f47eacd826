"""The values and types of constants as plain data, so that no syntax tree leaves this package."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

import spsa.builds.rust.literal as literal
from spsa.builds.rust.literal import Literal


@dataclass(frozen=True, slots=True)
class Group:
    """Several values in one: an array, a tuple, a struct, or the arguments of a call or macro.

    `names` are the fields of a struct, and empty for all others. `callee` is the last name of what
    is called, with a `!` for a macro. `computed` marks the numbers inside an expression.
    """

    items: tuple["Shape", ...]
    tuple_: bool
    names: tuple[str, ...] = ()
    callee: str = ""
    computed: bool = False

    def entries(self) -> Iterator[tuple[int | str, "Shape"]]:
        """Each item with what a location writes for it: a field's name, or a position."""
        return zip(self.names or range(len(self.items)), self.items, strict=True)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is no number written out; `what` says in words what it is instead."""

    what: str
    text: str
    names: tuple[str, ...] = ()


Shape = Literal | Group | Opaque

_WHAT = {
    "boolean_literal": "a bool",
    "char_literal": "a character",
    "string_literal": "a string",
    "raw_string_literal": "a string",
    "call_expression": "computed by a call",
    "macro_invocation": "computed by a macro",
}
NUMBERS = ("integer_literal", "float_literal")


DEEPEST = 32
"""Levels of brackets in a value or a type that are looked into."""


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


def number_at(text: str, start: int, end: int) -> Literal | None:
    """The literal that `text`, from byte `start` to `end` of the file, writes, if it does."""
    try:
        return Literal(literal.read(text), text, start, end)
    except ValueError:
        return None


def opaque(node: Node) -> Opaque:
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
