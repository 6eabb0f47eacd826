"""The constants of a source file as plain data, so that no syntax tree leaves this package."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

from tree_sitter import Node

import spsa.builds.sources.literal as literal
from spsa.builds.sources.literal import RUST, Literal, Notation, ValueType

Visited = TypeVar("Visited")


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


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that stands alone on its line."""

    line: int
    text: str


class Kind(StrEnum):
    """What a number belongs to.

    A constant is a `const`, `static`, `constexpr`, `#define` or enumerator; a variable is a global
    one of C that may change. An unchanged `let` of a `const fn` is a part of that.
    """

    CONSTANT = "constant"
    VARIABLE = "variable"
    MACRO = "macro"
    CONST_FUNCTION = "const fn"
    FUNCTION = "fn"
    LOCAL = "let"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConstant:
    """A constant, an entry of a macro, a function, or a local variable; line from 1.

    The value of a function or a variable is what it is made of: a value written out, or the numbers
    of its expressions. `scope` names what it stands in, the nearest last, and of very many only
    the nearest. `condition` is its `#[cfg]` or `#if` as a name, such as `not_feature_big`, or "".
    """

    kind: Kind
    name: str
    scope: tuple[str, ...]
    line: int
    test_only: bool
    type: ValueType
    value: Shape
    text: str
    condition: str = ""


@dataclass(frozen=True, kw_only=True)  # no slots: the look-up by name is computed once
class SourceFile:
    """All that is known of one file's text.

    `broken` is the first line that is not Rust; no file of C or C++ has one, because a macro may
    stand for any text. `lengths` are the names of array lengths.
    """

    name: str
    text: str
    constants: tuple[SourceConstant, ...]
    aliases: Mapping[str, ValueType]
    comments: tuple[str, ...]
    headings: tuple[Comment, ...]
    broken: int | None
    lengths: frozenset[str] = frozenset()

    @cached_property
    def by_name(self) -> Mapping[str, tuple[SourceConstant, ...]]:
        """The constants of each name, in the order of the text."""
        found: dict[str, list[SourceConstant]] = {}
        for constant in self.constants:
            found.setdefault(constant.name, []).append(constant)
        return {name: tuple(constants) for name, constants in found.items()}


_WHAT = {
    "boolean_literal": "a bool",
    "true": "a bool",
    "false": "a bool",
    "char_literal": "a character",
    "string_literal": "a string",
    "raw_string_literal": "a string",
    "concatenated_string": "a string",
    "call_expression": "computed by a call",
    "macro_invocation": "computed by a macro",
}
NUMBERS = ("integer_literal", "float_literal", "number_literal")


COMMENTS = frozenset({"line_comment", "block_comment", "comment"})

DEEPEST = 32
"""Levels of brackets in a value or a type that are looked into."""


def literals(shape: Shape) -> Iterator[Literal]:
    """All the numbers in a shape, in the order they are written."""
    if isinstance(shape, Literal):
        yield shape
    elif isinstance(shape, Group):
        for item in shape.items:
            yield from literals(item)


_NO_CONTENT = COMMENTS | {"attribute_item", "mutable_specifier"}


def preorder(first: Visited, inside: Callable[[Visited], Iterable[Visited]]) -> Iterator[Visited]:
    """`first` and all below it, in the order of the text.

    Without recursion, as sources may nest deeply.
    """
    waiting = [first]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(inside(current))))


def content(node: Node) -> list[Node]:
    """The named children of a node that are not comments or attributes."""
    return [child for child in node.named_children if child.type not in _NO_CONTENT]


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def number_at(text: str, start: int, end: int, notation: Notation = RUST) -> Literal | None:
    """The literal that `text`, from byte `start` to `end` of the file, writes, if it does."""
    try:
        return Literal(literal.read(text, notation), text, start, end, notation)
    except ValueError:
        return None


def factor(node: Node, number: Callable[[Node], Literal | None]) -> Literal | None:
    """The 3 of `3 * ONE_PLY`, which counts units; None for `X * 3`, which is derived from X."""
    sides = content(node)
    if node.type != "binary_expression" or len(sides) != 2 or node.children[1].type != "*":
        return None
    name = text_of(sides[1]).rsplit("::", 1)[-1]
    return number(sides[0]) if name.isidentifier() and name.isupper() else None


def arguments(items: tuple[Shape, ...], callee: str = "") -> Shape | None:
    """What a call is made with: its only argument, or all of them if one has a number."""
    if not any(True for item in items for _ in literals(item)):
        return None
    return items[0] if len(items) == 1 else Group(items, True, (), callee.rsplit("::", 1)[-1])


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


def headings(comments: Iterable[tuple[Node, Node | None]]) -> Iterator[Comment]:
    """The comments that stand alone on their lines; each comes with its earlier sibling."""
    for node, before in comments:
        # a doc comment's node ends behind its line break
        if before is None or before.end_point < (node.start_point.row, 1):
            yield Comment(node.start_point.row + 1, text_of(node).strip("/*! \t\r\n"))
