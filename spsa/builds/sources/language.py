"""What is special to a language, and the syntax tree of a text with the marks of its language.

A language marks the nodes of its syntax tree by one query. The name of a mark is the part that a
node plays here: `@constant`, `@list`, `@number`. What else a pattern captures (`@name`, `@value`)
are the parts of that node. `Language` lists the marks.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import tree_sitter
from tree_sitter import Node, Parser, Query, QueryCursor

from spsa.builds.sources.constant import Notation
from spsa.core.parameter import Number

DEEPEST = 32
"""Levels of brackets in a value or a type that are looked into."""

OF_OPERATORS = r"""
(binary_expression left: (_) @value operator: "*" right: (_) @_unit
  (#match? @_unit "^([A-Za-z0-9_]+::)*[A-Z0-9_]*[A-Z][A-Z0-9_]*$")
  (#not-match? @_unit "MILLION|THOUSAND|MATE(_|$)|INFIN")) @same
(binary_expression left: (number_literal) @bare operator: "-" (#eq? @bare "7"))
(binary_expression operator: ["&" "|" "^" "==" "!="] (number_literal) @bare)
(binary_expression operator: ["<<" "%"] right: (number_literal) @bare)
(binary_expression operator: ">>" right: (number_literal) @bare (#match? @bare "^[2-6]\\d$"))
"""

Parts = Mapping[str, Node]
Range = tuple[int, int]
_PARTS = ("name", "type", "value", "body", "callee", "arguments", "below")


class Entry(NamedTuple):
    """A name in a macro's brackets with the bytes of its value; `scope` are the blocks around.

    `beside` are the numbers behind the value.
    """

    name: Node
    scope: tuple[str, ...]
    type: str
    value: Range
    beside: tuple[Number, ...] = ()


_DECLARED = (
    ("value", "default", "val", "init", "initial", "start"),
    ("min", "minimum", "low", "lower", "min_value"),
    ("max", "maximum", "high", "upper", "max_value"),
    ("step", "c_end"),
)
Anything = TypeVar("Anything")


def declared(named: Mapping[str, Anything]) -> list[Anything]:
    """The value, minimum, maximum and step among named things; nothing without the first three."""
    found = [next((named[name] for name in names if name in named), None) for names in _DECLARED]
    return [] if None in found[:3] else [one for one in found if one is not None]


@dataclass(frozen=True, kw_only=True)  # no slots: the query is compiled once
class Language:
    """All that is special to one language.

    `marks` is a query with these marks, and the parts of the marked nodes in brackets.

    Of what has a name: @constant, @variable (name, type, value), @function (name, type, body),
    @macro (callee, body; also name, value), @bounds (callee, name, arguments), @alias and
    @structure (name, type: what it is made of).
    Of what is around that: @scope (name), @block (a function without a name), @test, @range (with a
    minimum and a maximum) and @above (below: what an attribute is about).
    Of values: @number, @inner (brackets around a value), @same (value: that of another node),
    @array, @list (an array, or brackets around one value), @tuple, @record (body), @field (name,
    value), @call (callee, arguments), @given (to a constructor), @row (name, value, and more),
    @text (to be parsed) and @bare (its numbers have no strength).
    And @array_of (value: the name of an array of C), @aside (a comment and the like, which is
    passed over), @length (of an array, an index or a shift), @broken.

    `frame` stands before and behind a value in a text that declares nothing else. `entries` are
    those in the body of a macro. `prepared` is a text for the parser, with each byte in its place.
    """

    suffixes: tuple[str, ...]
    grammar: tree_sitter.Language
    marks: str
    notation: Notation
    frame: tuple[bytes, bytes]
    entries: Callable[[Node], Iterator[Entry]] = lambda _: iter(())
    prepared: Callable[[str], str] = str

    @cached_property
    def query(self) -> Query:
        return Query(self.grammar, self.marks)


class Mark(NamedTuple):
    node: Node
    name: str
    parts: Parts


class Tree:
    """The syntax tree of a text that begins at the byte `offset` of its file, with its marks."""

    def __init__(self, language: Language, source: bytes, offset: int = 0) -> None:
        self.language, self.source, self.offset = language, source, offset
        self.root = Parser(language.grammar).parse(source).root_node
        self.marks = [_mark(found) for _, found in QueryCursor(language.query).matches(self.root)]
        self._by_node: dict[int, dict[str, Parts]] = {}
        for node, name, parts in self.marks:
            self._by_node.setdefault(node.id, {}).setdefault(name, parts)

    def of(self, node: Node) -> Mapping[str, Parts]:
        return self._by_node.get(node.id, {})

    def marked(self, name: str) -> Iterator[Mark]:
        return (mark for mark in self.marks if mark.name == name)

    def content(self, node: Node) -> list[Node]:
        """The named children of a node that are not comments, attributes and the like."""
        return [one for one in node.named_children if "aside" not in self.of(one)]

    def below(self, node: Node) -> Iterator[Node]:
        """`node` and all below it that is not bare, in the order of the text."""
        waiting = [node]
        while waiting:
            current = waiting.pop()
            if "bare" not in self.of(current):
                yield current
                number = "number" in self.of(current)
                waiting.extend([] if number else reversed(self.content(current)))

    def only_value(self) -> Node | None:
        """The value of the constant that the text begins with; None where it has errors."""
        if self.root.has_error:
            return None
        marks = self.of(self.root.children[0]).values()
        values = [parts["value"] for parts in marks if "value" in parts]
        return values[0] if values else None

    def types(self) -> dict[str, str]:
        """What types and structs are made of, by name; a name with two meanings is left out."""
        named = (parts for _, name, parts in self.marks if name in ("alias", "structure"))
        return unambiguous((text_of(one["name"]), text_of(one["type"])) for one in named)


def text_of(node: Node) -> str:
    return (node.text or b"").decode()


def _mark(captures: Mapping[str, list[Node]]) -> Mark:
    parts = {part: captures[part][0] for part in _PARTS if part in captures}
    name = next(name for name in captures if name not in parts and name[0] != "_")
    return Mark(captures[name][0], name, parts)


def unambiguous(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The types by name, without the names of several."""
    meanings: dict[str, set[str]] = {}
    for name, meaning in named:
        meanings.setdefault(name, set()).add(meaning)
    return {name: found.pop() for name, found in meanings.items() if len(found) == 1}
