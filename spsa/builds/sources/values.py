"""The numbers of a value, by the marks of its language, each with its type."""

import re
from collections.abc import Iterable, Mapping, Sequence
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

_LONGEST = 400
"""Bytes of a text that is no number; a message shows fewer."""

_MOST_GIVEN = 6
"""Numbers in braces that may be given to a constructor; more are a list."""

_READ = (
    *("number", "same", "row", "inner", "text", "record", "list", "array", "tuple", "given"),
    "call",
)
"""The marks of values; of several that a node has, the first that holds a number counts."""

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
        """The numbers of a declared value.

        `{5}` is the 5 where the type is no array, and `{5, 1, 9}` is given to a class.
        """
        marks, inner = self.tree.of(node), self.tree.content(node)
        named = "row" in marks or any("field" in self.tree.of(one) for one in inner)
        few = len(inner) == 1 or (2 < len(inner) <= _MOST_GIVEN and self._is_class(place.kind))
        if "list" in marks and few and not named and not place.kind.parts:
            found = self._arguments(inner, place, place.kind.name, told=False)
            return found or self.items(node, place)
        return self.items(node, place)

    def _is_class(self, kind: ValueType) -> bool:
        """Whether a value of this type in braces is the call of a constructor, and no list."""
        name = self._resolved(kind).name
        return (
            name.isidentifier() and name != "auto" and not self.tree.language.notation.knows(name)
        )

    def snippet(self, part: Range, place: Place) -> Items:
        """The numbers of a value that the parser gives as text or as tokens."""
        before, behind = self.tree.language.frame
        text = self.tree.source[part[0] : part[1]]
        offset = self.tree.offset + part[0] - len(before)
        tree = Tree(self.tree.language, before + text + behind, offset)
        value = tree.only_value()
        if value is None:
            return [_opaque(text, place)]
        return Values(tree, self.types).value(value, place)

    def numbers_in(self, node: Node, at: Location) -> Items:
        """The numbers that an expression is computed from, in the order they are written."""
        found = chain.from_iterable(self._number(one, Place(at)) for one in self.tree.below(node))
        return [replace(one, location=at.at(i, field=True)) for i, one in enumerate(found)]

    def items(self, node: Node, place: Place) -> Items:
        """The numbers of the value that `node` writes, and what stands in the place of one."""
        marks, inner = self.tree.of(node), place._replace(depth=place.depth + 1)
        read = _READ if place.depth <= DEEPEST else ()
        found = (self._read(mark, node, marks[mark], inner) for mark in read if mark in marks)
        text = self.tree.source[node.start_byte : node.end_byte]
        return next(filter(None, found), None) or [_opaque(text, place)]

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
                return self._call(parts["arguments"], text_of(parts["callee"]), place)

    def _number(self, node: Node, place: Place) -> Items:
        """A literal with the minus before it; nothing for any other node."""
        notation, text = self.tree.language.notation, text_of(node)
        number = notation.read(text) if "number" in self.tree.of(node) else None
        if number is None:
            return []
        name = self._resolved(place.kind).name
        return [
            Element(
                location=place.location,
                number=number,
                text=text,
                start=node.start_byte + self.tree.offset,
                end=node.end_byte + self.tree.offset,
                type=notation.type_of(text) or (name if notation.knows(name) else None),
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

    def _call(self, arguments: Node, path: str, place: Place) -> Items:
        callee = path.rsplit("::", 1)[-1]
        if row := self.tree.of(arguments).get("row"):
            return self._row(arguments, row, place, callee)
        values = self.tree.language.separated(arguments) or self.tree.content(arguments)
        return self._arguments(values, place, callee, told=callee in (place.kind.name, "Self"))

    def _arguments(
        self, values: Sequence[Node | Range], place: Place, callee: str, *, told: bool
    ) -> Items:
        """What a call is made with: its only argument, or all of them; their types are `told`."""
        if len(values) == 1:
            return _some(self._any(values[0], place))
        inner = place if told else place._replace(kind=UNKNOWN)
        found = _some(self._each(values, inner, field=True))
        numbers = [one for one in found if isinstance(one, Element)]
        return with_beside(found, [one.number for one in numbers[1:]], callee)

    def _row(self, node: Node, parts: Parts, place: Place, maker: str = "") -> Items:
        """The number behind a name in quotes, with the numbers beside it."""
        found = _only(self.items(parts["value"], place), place)
        behind = self.numbers_of(self.tree.content(node)[2:])
        return with_beside(found, behind, maker, text_of(parts["name"]).strip('"'))

    def numbers_of(self, values: Iterable[Node]) -> list[Number]:
        """All that is written as a number in further values of a row."""
        found = chain.from_iterable(self.items(value, Place(Location(""))) for value in values)
        return [one.number for one in found if isinstance(one, Element)]

    def _fields(self, inner: Sequence[Node], place: Place) -> Items:
        """The values of named or numbered fields; nothing where what is inside has none."""
        marks = (self.tree.of(one).get("field") for one in inner)
        fields = {re.sub(r"\W", "", text_of(one["name"])): one["value"] for one in marks if one}
        found: dict[str, Items] = {}
        for name in sorted(fields, key=lambda name: int(name) if name.isdecimal() else 0):
            number = int(name) if name.isdecimal() else None
            inside = self._inside(place, name if number is None else number, field=number is None)
            found[name.lower()] = self.items(fields[name], inside)
        single = {
            name: (name, items[0].number)
            for name, items in found.items()
            if len(items) == 1 and isinstance(items[0], Element)
        }
        if told := declared(single):
            name = told[0][0]
            found[name] = with_beside(found[name], [number for _, number in told[1:]])
        return list(chain.from_iterable(found.values()))


def with_beside(found: Items, beside: Sequence[Number], maker: str = "", label: str = "") -> Items:
    """The items, of which the first number has these beside it."""
    first = next((one for one in found if isinstance(one, Element)), None)
    told = first and replace(first, beside=tuple(beside), maker=maker, label=label)
    return [told if told and one is first else one for one in found]


def _opaque(text: bytes, place: Place) -> Opaque:
    shown = " ".join(text[:_LONGEST].decode(errors="replace").split())
    return Opaque(location=place.location, text=shown)


def _only(found: Items, place: Place) -> Items:
    """The one number that stands there itself."""
    return found if isinstance(found[0], Element) and found[0].location == place.location else []


def _some(found: Items) -> Items:
    """What holds at least one number."""
    return found if any(isinstance(one, Element) for one in found) else []
