"""The numbers of a value, by the marks of its language, each with its type."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from tree_sitter import Node

from spsa.builds.sources.constant import Element, Opaque
from spsa.builds.sources.language import (
    DEEPEST,
    UNKNOWN,
    Parts,
    Range,
    Tree,
    ValueType,
    declared,
    text_of,
)
from spsa.core.params import Location, Number

_LIMIT = re.compile(r"(\d{1,4}) ?<< ?(\d\d?)")
_LONGEST = 400
"""Bytes of a text that is no number; a message shows fewer."""
_MOST_NODES = 1000
"""Nodes of an expression that are searched for the constants it is derived from."""

_MOST_GIVEN = 6
"""Numbers in braces that may be given to a constructor; more are a list."""

Items = list[Element | Opaque]


class Place(NamedTuple):
    """Where a value stands, of which type it is, and how many brackets are around it."""

    location: Location
    kind: ValueType = UNKNOWN
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Values:
    """Reads the values of a tree. `types` are what the names of types stand for."""

    tree: Tree
    types: Mapping[str, ValueType]

    def value(self, node: Node, place: Place) -> Items:
        """The numbers of a declared value; `{5}` is the 5 where the type is no array."""
        marks, inner = self.tree.of(node), self.tree.content(node)
        if "list" not in marks or "row" in marks or place.kind.parts:
            return self.items(node, place)
        if any("field" in self.tree.of(one) for one in inner):
            return self.items(node, place)
        if len(inner) == 1 or (2 < len(inner) <= _MOST_GIVEN and self._is_class(place.kind)):
            found = self._arguments(inner, place, place.kind.name, told=False)
            return found or self.items(node, place)
        return self.items(node, place)

    def _is_class(self, kind: ValueType) -> bool:
        """Whether a value of this type in braces is the call of a constructor, and no list."""
        name, notation = self._resolved(kind).name, self.tree.language.notation
        known = name in notation.integers or name in notation.reals
        return name.isidentifier() and name != "auto" and not known

    def snippet(self, part: Range, place: Place) -> Items:
        """The numbers of a value that the parser gives as text or as tokens."""
        before, behind = self.tree.language.frame
        text = self.tree.source[part[0] : part[1]]
        offset = self.tree.offset + part[0] - len(before)
        tree = Tree(self.tree.language, before + text + behind, offset)
        value = tree.only_value()
        if value is None:
            return [Opaque(location=place.location, text=_shown(text))]
        return Values(tree, self.types).value(value, place)

    def numbers_in(self, node: Node, at: Location) -> Items:
        """The numbers that an expression is computed from, in the order they are written."""
        found = chain.from_iterable(self._number(one, Place(at)) for one in self.tree.below(node))
        return [replace(one, location=at.at(i, field=True)) for i, one in enumerate(found)]

    def items(self, node: Node, place: Place) -> Items:
        """The numbers of the value that `node` writes, and what stands in the place of one."""
        if place.depth > DEEPEST:
            return [self._opaque(node, place)]
        marks, inner = self.tree.of(node), place._replace(depth=place.depth + 1)
        found = (self._read(mark, node, marks[mark], inner) for mark in _READ if mark in marks)
        return next(filter(None, found), None) or [self._opaque(node, place)]

    def _read(self, mark: str, node: Node, parts: Parts, place: Place) -> Items:
        """What a node with this mark holds; nothing where it holds no number."""
        inner = self.tree.content(node)
        match mark:
            case "number":
                return self._number(node, place)
            case "row":
                return self._row(node, parts, place)
            case "same":
                return _only(self.items(parts["value"], place), place)
            case "inner":
                return self.items(inner[-1], place) if inner else []
            case "text":
                return self.snippet((node.start_byte, node.end_byte), place)
            case "record":
                return _some(self._fields(self.tree.content(parts["body"]), place))
            case "list" | "array":
                return self._fields(inner, place) or self._each(inner, place, field=False)
            case "tuple":
                return self._each(inner, place, field=True)
            case "given":
                return self._arguments(inner, place, place.kind.name, told=False)
            case _:
                callee = text_of(parts["callee"]).rsplit("::", 1)[-1]
                if row := self.tree.of(parts["arguments"]).get("row"):
                    return self._row(parts["arguments"], row, place, callee)
                values = self.tree.language.separated(parts["arguments"])
                inner = self.tree.content(parts["arguments"])
                told = callee in (place.kind.name, "Self")
                return self._arguments(values or inner, place, callee, told=told)

    def _number(self, node: Node, place: Place) -> Items:
        """A literal with the minus before it; nothing for any other node."""
        notation, text = self.tree.language.notation, text_of(node)
        try:
            number = notation.read(text) if "number" in self.tree.of(node) else None
        except ValueError:
            number = None
        if number is None:
            return []
        name = self._resolved(place.kind).name
        known = name if name in notation.integers or name in notation.reals else None
        return [
            Element(
                location=place.location,
                number=number,
                text=text,
                start=node.start_byte + self.tree.offset,
                end=node.end_byte + self.tree.offset,
                type=notation.type_of(text) or known,
                notation=notation,
            )
        ]

    def _resolved(self, kind: ValueType) -> ValueType:
        """A type with known names looked up; a circle of aliases ends where it starts."""
        seen: set[str] = set()
        while not kind.parts and kind.name in self.types and kind.name not in seen:
            seen.add(kind.name)
            kind = self.types[kind.name]
        return kind

    def _inside(self, place: Place, position: int | str, *, field: bool) -> Place:
        kind = self._resolved(place.kind).inside(position)
        return place._replace(location=place.location.at(position, field=field), kind=kind)

    def _each(self, values: Sequence[Node | Range], place: Place, *, field: bool) -> Items:
        found = (
            self._any(one, self._inside(place, i, field=field)) for i, one in enumerate(values)
        )
        return list(chain.from_iterable(found))

    def _any(self, value: Node | Range, place: Place) -> Items:
        return self.items(value, place) if isinstance(value, Node) else self.snippet(value, place)

    def _arguments(
        self, values: Sequence[Node | Range], place: Place, callee: str, *, told: bool
    ) -> Items:
        """What a call is made with: its only argument, or all of them; their types are `told`."""
        if len(values) == 1:
            return _some(self._any(values[0], place))
        inner = place if told else place._replace(kind=UNKNOWN)
        found = _some(self._each(values, inner, field=True))
        return _with_first(found, found, callee)

    def _row(self, node: Node, parts: Parts, place: Place, maker: str = "") -> Items:
        """The number behind a name in quotes, with the numbers beside it."""
        found = _only(self.items(parts["value"], place), place)
        label = text_of(parts["name"]).strip('"')
        return self.with_beside(found, self.tree.content(node)[2:], maker, label)

    def with_beside(
        self, found: Items, values: Sequence[Node | Range], maker: str, label: str = ""
    ) -> Items:
        """The one number of `found` with what stands behind it in a row."""
        here = Place(Location(""))
        behind = chain.from_iterable(self._any(value, here) for value in values)
        told: Items = [replace(e, label=label) if isinstance(e, Element) else e for e in found]
        return _with_first(told, [*told[:1], *behind], maker)

    def _fields(self, inner: Sequence[Node], place: Place) -> Items:
        """The values of named fields; nothing where what is inside has no names."""
        marks = (self.tree.of(one).get("field") for one in inner)
        fields = {re.sub(r"\W", "", text_of(one["name"])): one["value"] for one in marks if one}
        if not any(name.isdigit() for name in fields):
            places = (self._inside(place, name, field=True) for name in fields)
            found = list(chain.from_iterable(map(self.items, fields.values(), places)))
            named = {str(one.location.accesses[-1].position).lower(): one for one in found}
            return _with_first(found, declared(named))
        if [*fields] == [str(i) for i in range(len(fields))]:
            return self._each([*fields.values()], place, field=False)
        return [Opaque(location=place.location, text="a list with places out of order")]

    def _opaque(self, node: Node, place: Place) -> Opaque:
        text = self.tree.source[node.start_byte : node.end_byte]
        names = tuple(dict.fromkeys(self._references(node)))
        return Opaque(location=place.location, text=_shown(text), names=names)

    def _references(self, node: Node) -> Iterator[str]:
        """The constants an expression mentions: its upper-case identifiers."""
        waiting = [node]
        for _ in range(_MOST_NODES):
            if not waiting:
                return
            current = waiting.pop()
            if current.type == "identifier" and text_of(current).isupper():
                yield text_of(current)
            if "path" not in self.tree.of(current):
                waiting.extend(reversed(current.named_children[:_MOST_NODES]))


_READ = (
    *("number", "same", "row", "inner", "text", "record", "list", "array", "tuple", "given"),
    "call",
)
"""The marks of values; of several that a node has, the first that holds a number counts."""


def _with_first(found: Items, numbers: Items, maker: str = "") -> Items:
    """The items with the further ones of these numbers beside the first of them."""
    start = next((i for i, one in enumerate(numbers) if isinstance(one, Element)), len(numbers))
    first = numbers[start] if numbers[start:] else None
    beside = tuple(n for n in map(_number_of, numbers[start + 1 :]) if n is not None)
    told = isinstance(first, Element) and replace(first, maker=maker, beside=beside)
    return [told if told and one is first else one for one in found]


def _number_of(one: Element | Opaque) -> Number | None:
    """The number of an item, also of one written as `1 << 16`; None for no number."""
    if isinstance(one, Element):
        return one.number
    found = _LIMIT.fullmatch(one.text)
    return int(found[1]) << int(found[2]) if found else None


def _shown(text: bytes) -> str:
    return " ".join(text[:_LONGEST].decode(errors="replace").split())


def _only(found: Items, place: Place) -> Items:
    """The one number that stands there itself."""
    return found if isinstance(found[0], Element) and found[0].location == place.location else []


def _some(found: Items) -> Items:
    """What holds at least one number."""
    return found if any(isinstance(one, Element) for one in found) else []
