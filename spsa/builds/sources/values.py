"""The numbers of a value, by the marks of its language, each with its type."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from tree_sitter import Node

from spsa.builds.sources.constant import Element, Opaque
from spsa.builds.sources.language import DEEPEST, Parts, Range, Tree, declared, text_of
from spsa.core.parameter import Location, Number

_LONGEST = 400
"""Bytes of a text that is no number; a message shows fewer."""

_MOST_GIVEN = 6
"""Numbers in braces that may be given to a constructor; more are a list."""

_SHIFT = re.compile(r"(\d{1,9}) *<< *(\d\d?)")
_MACRO, _MACRO_OF_ARRAY = re.compile(rb"(\w+)!(?=\s*\()"), re.compile(rb"\w+!(?=\s*\[)")

_READ = (
    *("number", "same", "row", "inner", "text", "record", "list", "array", "tuple", "given"),
    "call",
)
"""The marks of values; of several that a node has, the first that holds a number counts."""

Items = list[Element | Opaque]


class Type(NamedTuple):
    """A type as it is written, and the one type of numbers that it is made of."""

    text: str = ""
    number: str | None = None

    @property
    def name(self) -> str:
        return self.text.rpartition("::")[2].rpartition(" ")[2]

    @property
    def is_array(self) -> bool:
        return re.search(r"\[|\b(array|vector)\b", self.text) is not None


class Place(NamedTuple):
    """Where a value stands, of which type it is, and how many brackets are around it."""

    location: Location
    type: Type = Type()
    depth: int = 0

    def inside(self, position: int | str, *, field: bool) -> "Place":
        return self._replace(location=self.location.at(position, field=field))


@dataclass(frozen=True, slots=True)
class Values:
    """Reads the values of a tree. `types` are what types are made of, by their names."""

    tree: Tree
    types: Mapping[str, str]
    _known: dict[str, Type] = field(default_factory=dict)

    def type_of(self, text: str) -> Type:
        """What is known of the type that is written so."""
        if text not in self._known:
            self._known[text] = Type(text, self.tree.language.notation.number_in(text, self.types))
        return self._known[text]

    def value(self, node: Node, place: Place) -> Items:
        """The numbers of a declared value.

        `{5}` is the 5 where the type is no array, and `{5, 1, 9}` is given to a class.
        """
        marks, inner = self.tree.of(node), self.tree.content(node)
        name, is_number = place.type.name, place.type.number is not None
        is_class = name.isidentifier() and name != "auto" and not is_number
        few = len(inner) == 1 or (2 < len(inner) <= _MOST_GIVEN and is_class)
        is_given = "list" in marks and few and not place.type.is_array
        found = self._call(node, name, place) if is_given and "row" not in marks else []
        return found or self.items(node, place)

    def snippet(self, part: Range, place: Place) -> Items:
        """The numbers of a value that the parser gives as text or as tokens.

        The macros in it are read as calls, and those with square brackets as arrays.
        """
        before, behind = self.tree.language.frame
        text = self.tree.source[part[0] : part[1]]
        plain = _MACRO.sub(lambda found: found[1].ljust(len(found[0])), text)
        plain = _MACRO_OF_ARRAY.sub(lambda found: b" " * len(found[0]), plain)
        offset = self.tree.offset + part[0] - len(before)
        tree = Tree(self.tree.language, before + plain + behind, offset)
        value = tree.only_value()
        return [] if value is None else Values(tree, self.types).value(value, place)

    def numbers_in(self, node: Node, at: Location) -> Items:
        """The numbers that an expression is computed from, in the order they are written."""
        found = chain.from_iterable(self._number(one, Place(at)) for one in self.tree.below(node))
        return [replace(one, location=at.at(i, field=True)) for i, one in enumerate(found)]

    def items(self, node: Node, place: Place) -> Items:
        """The numbers of the value that `node` writes, and what stands in the place of one."""
        marks, inner = self.tree.of(node), place._replace(depth=place.depth + 1)
        read = _READ if place.depth <= DEEPEST else ()
        found = (self._read(mark, node, marks[mark], inner) for mark in read if mark in marks)
        if numbers := next(filter(None, found), None):
            return numbers
        text = self.tree.source[node.start_byte : node.end_byte][:_LONGEST]
        shown = " ".join(text.decode(errors="replace").split())
        return [Opaque(location=place.location, text=shown)]

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
                return self._call(node, place.type.name, place)
            case _:
                callee = text_of(parts["callee"]).rpartition("::")[2]
                return self._call(parts["arguments"], callee, place)

    def _number(self, node: Node, place: Place) -> Items:
        """A literal with the minus before it; nothing for any other node."""
        notation, text = self.tree.language.notation, text_of(node)
        number = notation.read(text) if "number" in self.tree.of(node) else None
        if number is None:
            return []
        kind = notation.suffixes.get(notation.split(text)[1].lower()) or place.type.number
        return [
            Element(
                location=place.location,
                number=number,
                text=text,
                start=node.start_byte + self.tree.offset,
                end=node.end_byte + self.tree.offset,
                type=None if isinstance(number, float) and kind in notation.integers else kind,
                notation=notation,
            )
        ]

    def _each(self, values: Sequence[Node], place: Place, *, field: bool) -> Items:
        places = (place.inside(i, field=field) for i in range(len(values)))
        return list(chain.from_iterable(map(self.items, values, places)))

    def _call(self, arguments: Node, callee: str, place: Place) -> Items:
        """What a call is made with: its only argument, or all of them.

        Their types are known if the callee is the type of the value.
        """
        if row := self.tree.of(arguments).get("row"):
            return self._row(arguments, row, place, callee)
        values = self.tree.content(arguments)
        if len(values) == 1:
            return _some(self.items(values[0], place))
        told = callee == "Self" or callee in re.findall(r"\w+", place.type.text)
        inner = place if told else place._replace(type=Type())
        found = _some(self._each(values, inner, field=True))
        numbers = [one.number for one in found if isinstance(one, Element)]
        return with_beside(found, numbers[1:], callee)

    def _row(self, node: Node, parts: Parts, place: Place, maker: str = "") -> Items:
        """The number behind a name in quotes, or behind its range, with the numbers beside it."""
        found, more = _only(self.items(parts["value"], place), place), self.tree.content(node)[2:]
        behind = self.numbers_of(more)
        match found, behind:
            case [Element(number=low)], [high, value] if low <= value <= high > low:
                found, behind = self.items(more[-1], place), [low, high]  # "margin", 40, 120, 80
        return with_beside(found, behind, maker, text_of(parts["name"]).strip('"'))

    def numbers_of(self, values: Iterable[Node]) -> list[Number]:
        """All that is written as a number in further values of a row; `2 << 16` is one."""
        found: list[Number] = []
        for value in values:
            shift = _SHIFT.fullmatch(text_of(value))
            items = [] if shift else self.items(value, Place(Location("")))
            found += [one.number for one in items if isinstance(one, Element)]
            found += [int(shift[1]) << int(shift[2])] if shift else []
        return found

    def _fields(self, inner: Sequence[Node], place: Place) -> Items:
        """The values of named or numbered fields; nothing where what is inside has none."""
        marks = (self.tree.of(one).get("field") for one in inner)
        fields = {re.sub(r"\W", "", text_of(one["name"])): one["value"] for one in marks if one}
        found: dict[str, Items] = {}
        for name in fields:
            number = int(name) if name.isdecimal() else None
            inside = place.inside(name if number is None else number, field=number is None)
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


def _only(found: Items, place: Place) -> Items:
    """The one number that stands there itself, or the numbers of a range."""
    first = found[0]
    alone = isinstance(first, Element) and (first.beside or first.location == place.location)
    return found if alone else []


def _some(found: Items) -> Items:
    """What holds at least one number."""
    return found if any(isinstance(one, Element) for one in found) else []
