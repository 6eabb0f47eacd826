"""From the text of a source to its constants, by the marks of its language."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from tree_sitter import Node

from spsa.builds.sources.c import CPP, C
from spsa.builds.sources.constant import Bounds, Kind, Opaque, SourceConstant, SourceFile
from spsa.builds.sources.language import Entry, Mark, Parts, Tree, declared, text_of, unambiguous
from spsa.builds.sources.rust import RUST
from spsa.builds.sources.values import Items, Place, Type, Values, with_beside
from spsa.core.parameter import MAX_SCOPES, Location, Number

LANGUAGES = (RUST, C, CPP)
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}

PRINTED, ATTRIBUTE = "option name", "#[]"
"""Makers of ranges that are no macro."""
_PRINTED = re.compile(
    r"option name (?P<name>\w+) type spin default "
    r"(?:(?P<value>-?\d+)|%l?[di]|\{\}|\"\s*<<\s*(?:\w+(?:\.|->|::))*(?P<written>\w+)\s*<<\s*\")"
    r" min (?P<low>-?\d+) max (?P<high>-?\d+)"
    r"(?:(?:\\n)?\"\s*,\s*(?:(?:\(int\)\s*)?\(\s*)?(?:\w+(?:\.|->|::))*(?P<sent>\w+)"
    r"(?:\s*\*\s*(?P<unit>[1-9]\d*)(?:\.0)?\s*\)(?: as \w+)?)?\s*\))?"
)
"""The line of an option. Its default is written there, or is a variable, perhaps times a unit."""
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)


def parse(
    text: str, name: str = "the constants file", known: Mapping[str, str] = MappingProxyType({})
) -> SourceFile:
    """Read a file, called `name` in messages; one whose name tells no language is Rust.

    `known` are types that other files declare, by name what they are made of.
    """
    tree = _tree(name, text)
    values = Values(tree, {**known, **tree.types()})
    broken = (mark.node.start_point.row + 1 for mark in tree.marked("broken"))
    lengths = frozenset(word for one in tree.marked("length") for word in _words(one.node))
    return SourceFile(
        name=name,
        text=text,
        constants=tuple(_constants(values)),
        broken=min(broken, default=None),
        lengths=lengths,
        definitions=(*_definitions(tree), *_MACRO.findall(text)),
        bounds=(*(_bounds(values, mark.parts) for mark in tree.marked("bounds")), *_printed(text)),
    )


def parse_all(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Read files by their names. In Rust a type of one may be declared in another.

    Such a type says what a number may be; in C it could change the location, which `parse` of one
    file has to find again.
    """
    rust = {name: text for name, text in texts.items() if name.endswith(RUST.suffixes)}
    known = unambiguous(
        named for name, text in rust.items() for named in _tree(name, text).types().items()
    )
    return {name: parse(text, name, known) for name, text in texts.items()}


def _definitions(tree: Tree) -> Iterator[tuple[str, str]]:
    """The functions with their texts, and what has a value outside of them.

    Macros have no name: what reads the values that they declare is not known.
    """
    end = 0
    for node, name, parts in sorted(tree.marks, key=lambda mark: mark.node.start_byte):
        is_value = name in ("constant", "variable") and "value" in parts
        if (is_value and node.start_byte >= end) or name == "function":
            if name == "function":
                end = max(end, node.end_byte)
            own = text_of(parts["name"]).partition("[")[0].rpartition("::")[2]
            yield own, text_of(parts["value"] if is_value else node)
        elif name == "macro" and node.start_byte >= end:
            yield "", text_of(node)


def _bounds(values: Values, parts: Parts) -> Bounds:
    numbers = values.numbers_of(values.tree.content(parts["arguments"])[1:])
    maker = text_of(parts["callee"]) if "callee" in parts else ""  # a row of a table
    return Bounds(maker, text_of(parts["name"]), tuple(numbers))


def _printed(text: str) -> Iterator[Bounds]:
    """The ranges of options, behind the default if that is written, in the unit of the number."""
    for found in _PRINTED.finditer(text):
        low, high = int(found["low"]), int(found["high"])
        if found["value"] is not None:
            yield Bounds(PRINTED, found["name"], (int(found["value"]), low, high))
        elif name := found["written"] or found["sent"]:
            unit = found["unit"]
            own = (low / int(unit), high / int(unit)) if unit else (low, high)
            yield Bounds(PRINTED, name, own)


def _tree(name: str, text: str) -> Tree:
    language = _BY_SUFFIX.get(name.rpartition(".")[2], RUST)
    return Tree(language, language.prepared(text).encode("utf-8", "surrogatepass"))


class _Around(NamedTuple):
    """What is known of the place inside a node that ends at the byte `end`.

    `beside` are a minimum, a maximum and a step that an attribute names.
    """

    end: float = inf
    scope: tuple[str, ...] = ()
    test_only: bool = False
    function: Kind | None = None
    beside: tuple[Number, ...] = ()


def _constants(values: Values) -> Iterator[SourceConstant]:
    """All that holds a number by a name, in the order of the text."""
    tree, around = values.tree, [_Around()]
    told = _attributed(tree)
    for mark in sorted(tree.marks, key=lambda mark: (mark.node.start_byte, -mark.node.end_byte)):
        while mark.node.start_byte >= around[-1].end:
            around.pop()
        attributes, outer = told.get(mark.node.id, _Around()), around[-1]
        here = outer._replace(
            test_only=attributes.test_only or outer.test_only, beside=attributes.beside
        )
        yield from _named(values, mark, here)
        if (inside := _inside(mark, here._replace(end=mark.node.end_byte))) is not None:
            around.append(inside)


def _attributed(tree: Tree) -> dict[int, _Around]:
    """What the attributes above a node say of it, by node."""
    told: dict[int, _Around] = {}
    for node, _, parts in tree.marked("above"):
        before, marks = told.get(node.id, _Around()), tree.of(node)
        told[parts["below"].id] = _Around(
            test_only=before.test_only or "test" in marks,
            beside=_range(text_of(node)) if "range" in marks else before.beside,
        )
    return told


def _range(attribute: str) -> tuple[Number, ...]:
    """The minimum, maximum and step in `#[uci(min = 0, max = 8, step = 1)]`."""
    named = {name: float(n) for name, n in re.findall(r"(\w+)\s*=\s*(-?\d+(?:\.\d+)?)", attribute)}
    numbers = declared({"value": 0.0, **named})[1:]
    return tuple(int(number) if number.is_integer() else number for number in numbers)


def _inside(mark: Mark, here: _Around) -> _Around | None:
    """What is known inside a node with this mark; None where that is no more than around it."""
    named = _words(mark.parts["name"]) if "name" in mark.parts else []
    scope = (*here.scope, *named)[-MAX_SCOPES:]
    match mark.name:
        case "scope":
            return here._replace(scope=scope)
        case "function":
            return here._replace(scope=scope, function=_kind_of_function(mark))
        case "block":
            return here._replace(function=here.function or Kind.FUNCTION)
    return None


def _words(node: Node) -> list[str]:
    return re.findall(r"\w+", text_of(node))


def _named(values: Values, mark: Mark, here: _Around) -> Iterator[SourceConstant]:
    """The constants of a mark: one, several for a macro, or none."""
    parts = mark.parts
    if mark.name in ("constant", "variable"):
        yield from _variable(values, mark, here)
    elif mark.name == "function":
        inner = values.tree.content(parts["body"])
        alone = inner[0] if len(inner) == 1 else parts["body"]
        place = Place(_location(parts["name"]), _type(values, mark, here))
        yield from _constant(
            _kind_of_function(mark), parts["name"], here, *_made_of(values, alone, place)
        )
    elif mark.name == "macro" and here.function is None:
        entries = values.tree.language.entries
        told = [_told(values, parts)] if "value" in parts else entries(parts["body"])
        for name, scope, type_name, value, beside in told:
            inside = here._replace(scope=(*here.scope, *scope))
            found = values.snippet(value, Place(_location(name), values.type_of(type_name)))
            callee = text_of(parts["callee"])
            each = (with_beside([one], beside, callee) for one in _written_out(found))
            items = [*chain.from_iterable(each)]
            yield from _constant(Kind.MACRO, name, inside, items)


def _told(values: Values, parts: Parts) -> Entry:
    """The one entry of a call that declares a number, with those behind it."""
    value, behind = parts["value"], values.tree.content(parts["body"])[2:]
    part = value.start_byte, value.end_byte
    return Entry(parts["name"], (), "", part, tuple(values.numbers_of(behind)))


def _variable(values: Values, mark: Mark, here: _Around) -> Iterator[SourceConstant]:
    name, kind, type_ = mark.parts["name"], _kind(mark, here), _type(values, mark, here)
    while (inner := values.tree.of(name).get("array_of")) is not None:
        name, type_ = inner["value"], type_._replace(text=f"{type_.text}[]")
    place, value = Place(_location(name), type_), mark.parts.get("value")
    computed = False
    if value is not None and kind in (Kind.LOCAL, Kind.CONST_FUNCTION):
        items, computed = _made_of(values, value, place)
    elif value is None or type_.text == "bool":
        text = "it has no value here" if value is None else text_of(value)
        items = [Opaque(location=place.location, text=text)]
    else:
        items = values.value(value, place)
        if here.beside and len(items) == 1:
            items = with_beside(items, here.beside, ATTRIBUTE)
    yield from _constant(kind, name, here, items, computed)


def _location(name: Node) -> Location:
    return Location((_words(name) or [""])[-1])


def _made_of(values: Values, node: Node, place: Place) -> tuple[Items, bool]:
    """The value that is written out, else the numbers of its expressions, which are computed.

    It is not where a number without a name of its own stands in a row with expressions.
    """
    found = _written_out(values.value(node, place))
    mixed = any(
        isinstance(one, Opaque) and isinstance(one.location.accesses[0].position, int)
        for one in found
    )
    if found and not mixed:
        return found, False
    return values.numbers_in(node, place.location), True


def _constant(
    kind: Kind, name: Node, here: _Around, items: Items, computed: bool = False
) -> Iterator[SourceConstant]:
    """One constant; none for a name that is no word, and where there are no items."""
    *outer, own = _words(name) or [""]
    if own and items and name.type.endswith(("identifier", "string_literal")):
        yield SourceConstant(
            kind=kind,
            name=own,
            scope=(*here.scope, *outer)[-MAX_SCOPES:],
            line=name.start_point.row + 1,
            test_only=here.test_only,
            items=tuple(items),
            computed=computed,
        )


def _written_out(found: Items) -> Items:
    """The items of a value, but for one that is no number."""
    return [] if len(found) == 1 and isinstance(found[0], Opaque) else found


def _type(values: Values, mark: Mark, here: _Around) -> Type:
    """The type that is written; `Self` is the one whose `impl` this stands in."""
    text = text_of(mark.parts["type"]) if "type" in mark.parts else ""
    return values.type_of(here.scope[-1] if text == "Self" and here.scope else text)


def _kind(mark: Mark, here: _Around) -> Kind:
    if mark.name == "constant":
        return Kind.CONSTANT
    words = _before_name(mark)
    if here.function is None and "let" not in words:
        return Kind.CONSTANT if words & {"const", "constexpr"} else Kind.VARIABLE
    if words & {"constexpr", "static"}:
        return Kind.CONSTANT
    unchanged = "const" in words or ("let" in words and "mut" not in words)
    return Kind.CONST_FUNCTION if unchanged and here.function is Kind.CONST_FUNCTION else Kind.LOCAL


def _kind_of_function(mark: Mark) -> Kind:
    words = _before_name(mark)
    constant = "constexpr" in words or {"const", "fn"} <= words
    return Kind.CONST_FUNCTION if constant else Kind.FUNCTION


def _before_name(mark: Mark) -> set[str]:
    length = mark.parts["name"].start_byte - mark.node.start_byte
    return set(re.findall(r"\w+", text_of(mark.node)[:length]))
