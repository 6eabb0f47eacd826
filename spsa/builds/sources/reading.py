"""From the text of a source to its constants, by the marks of its language."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from tree_sitter import Node

from spsa.builds.sources.c import CPP, C
from spsa.builds.sources.constant import Element, Kind, Opaque, SourceConstant, SourceFile
from spsa.builds.sources.language import (
    Entry,
    Mark,
    Parts,
    Tree,
    ValueType,
    declared,
    text_of,
    unambiguous,
)
from spsa.builds.sources.rust import RUST
from spsa.builds.sources.values import Items, Place, Values, with_beside
from spsa.core.params import Location, Number
from spsa.core.params.placement import MAX_SCOPES

LANGUAGES = (RUST, C, CPP)
_BY_SUFFIX = {suffix: language for language in LANGUAGES for suffix in language.suffixes}


def parse(
    text: str,
    name: str = "the constants file",
    known: Mapping[str, ValueType] = MappingProxyType({}),
) -> SourceFile:
    """Read a file, called `name` in messages; one whose name tells no language is Rust.

    `known` are types that other files declare.
    """
    tree = _tree(name, text)
    broken = (mark.node.start_point.row + 1 for mark in tree.marked("broken"))
    return SourceFile(
        name=name,
        text=text,
        constants=tuple(_constants(Values(tree, {**known, **tree.types()}))),
        broken=min(broken, default=None),
        lengths=frozenset(
            word
            for mark in tree.marked("length")
            for word in re.findall(r"[^\W\d]\w*", text_of(mark.node))
        ),
    )


def parse_all(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    """Read files by their names. A type of one may be declared in another.

    Each is parsed twice: the syntax trees of all are too large to be kept.
    """
    known = unambiguous(
        named for name, text in texts.items() for named in _tree(name, text).types().items()
    )
    return {name: parse(text, name, known) for name, text in texts.items()}


def _tree(name: str, text: str) -> Tree:
    language = _BY_SUFFIX.get(name.rpartition(".")[2], RUST)
    return Tree(language, text.encode("utf-8", "surrogatepass"))


class _Around(NamedTuple):
    """What is known of the place inside a node that ends at the byte `end`.

    `beside` are a minimum, a maximum and a step that an attribute names.
    """

    end: float = inf
    scope: tuple[str, ...] = ()
    condition: str = ""
    test_only: bool = False
    function: Kind | None = None
    beside: tuple[Number, ...] = ()


def _constants(values: Values) -> Iterator[SourceConstant]:
    """All that holds a number by a name, in the order of the text."""
    tree = values.tree
    told = _attributed(tree)
    around = [_Around()]
    for mark in sorted(tree.marks, key=_position):
        while mark.node.start_byte >= around[-1].end:
            around.pop()
        here = _with(around[-1], told.get(mark.node.id, _Around()))
        yield from _named(values, mark, here)
        inherited = here._replace(condition=around[-1].condition, beside=())
        if (inside := _inside(tree, mark, inherited)) is not None:
            around.append(inside._replace(end=mark.node.end_byte))


def _position(mark: Mark) -> tuple[int, int]:
    """What is around comes before what is inside."""
    return mark.node.start_byte, -mark.node.end_byte


def _attributed(tree: Tree) -> dict[int, _Around]:
    """What the attributes above a node say of it, by node."""
    told: dict[int, _Around] = {}
    for node, _, parts in tree.marked("above"):
        before, marks = told.get(node.id, _Around()), tree.of(node)
        named = _words(marks["when"]["name"]) if "when" in marks else []
        told[parts["below"].id] = _Around(
            condition="_".join([before.condition, *named] if before.condition else named),
            test_only=before.test_only or "test" in marks,
            beside=_range(text_of(node)) if "range" in marks else before.beside,
        )
    return told


def _range(attribute: str) -> tuple[Number, ...]:
    """The minimum, maximum and step in `#[uci(min = 0, max = 8, step = 1)]`."""
    named = {name: float(n) for name, n in re.findall(r"(\w+)\s*=\s*(-?\d+(?:\.\d+)?)", attribute)}
    numbers = declared({"value": 0.0, **named})[1:]
    return tuple(int(number) if number.is_integer() else number for number in numbers)


def _with(around: _Around, attributes: _Around) -> _Around:
    return around._replace(
        condition=attributes.condition or around.condition,
        test_only=attributes.test_only or around.test_only,
        beside=attributes.beside,
    )


def _inside(tree: Tree, mark: Mark, here: _Around) -> _Around | None:
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
        case "if":
            return here._replace(condition="_".join(named))
        case "unless" if "guard" not in tree.of(mark.node):
            return here._replace(condition="_".join(("not", *named)))
        case "else":
            is_negated = here.condition.startswith("not_")
            other = here.condition[4:] if is_negated else f"not_{here.condition}"
            return here._replace(condition=other)
    return None


def _words(node: Node) -> list[str]:
    return re.findall(r"\w+", text_of(node))


def _named(values: Values, mark: Mark, here: _Around) -> Iterator[SourceConstant]:
    """The constants of a mark: one, several for a macro, or none."""
    tree, parts = values.tree, mark.parts
    match mark.name:
        case "constant" | "variable":
            yield from _variable(values, mark, here)
        case "function":
            inner = tree.content(parts["body"])
            alone = inner[0] if len(inner) == 1 else parts["body"]
            named = _Name(_kind_of_function(mark), parts["name"], here)
            yield from named.made_of(values, alone, _known(values, mark, here))
        case "macro" if here.function is None:
            entries = (
                [_told(values, parts)] if "value" in parts else tree.language.entries(parts["body"])
            )
            for name, scope, type_name, value, beside in entries:
                named = _Name(Kind.MACRO, name, here._replace(scope=(*here.scope, *scope)))
                found = values.snippet(value, Place(named.location, ValueType(type_name)))
                yield from named.of(
                    with_beside(_written_out(found), beside, text_of(parts["callee"]))
                )


def _told(values: Values, parts: Parts) -> Entry:
    """The one entry of a call that declares a number, with those behind it."""
    value, behind = parts["value"], values.tree.content(parts["body"])[2:]
    part = value.start_byte, value.end_byte
    return Entry(parts["name"], (), "", part, tuple(values.numbers_of(behind)))


def _variable(values: Values, mark: Mark, here: _Around) -> Iterator[SourceConstant]:
    name, written = mark.parts["name"], _known(values, mark, here)
    kind = written
    while (inner := values.tree.of(name).get("array_of")) is not None:
        name, kind = inner["value"], ValueType("", ((None, kind),))
    named = _Name(_kind(mark, here), name, here)
    value = mark.parts.get("value")
    if value is None:
        yield from named.of([named.opaque("it has no value here")])
    elif named.kind in (Kind.LOCAL, Kind.CONST_FUNCTION):
        yield from named.made_of(values, value, kind)
    elif written.name == "bool":
        yield from named.of([named.opaque(text_of(value))])
    else:
        found = values.value(value, Place(named.location, kind))
        if len(found) == 1 and isinstance(found[0], Element) and here.beside:
            found = [replace(found[0], beside=here.beside)]
        yield from named.of(found)


class _Name(NamedTuple):
    """The name of a constant, of which only the items are missing."""

    kind: Kind
    node: Node
    here: _Around

    @property
    def location(self) -> Location:
        return Location((_words(self.node) or [""])[-1])

    def opaque(self, text: str) -> Opaque:
        return Opaque(location=self.location, text=text)

    def made_of(self, values: Values, node: Node, kind: ValueType) -> Iterator[SourceConstant]:
        """With the value that is written out, else with the numbers of its expressions."""
        found = _written_out(values.value(node, Place(self.location, kind)))
        numbers = [] if found else values.numbers_in(node, self.location)
        yield from self.of(found or numbers, computed=not found)

    def of(self, items: Items, *, computed: bool = False) -> Iterator[SourceConstant]:
        """One constant; none for a name that is no word, and where there are no items."""
        *outer, own = _words(self.node) or [""]
        if own and items and self.node.type.endswith(("identifier", "string_literal")):
            yield SourceConstant(
                kind=self.kind,
                name=own,
                scope=(*self.here.scope, *outer)[-MAX_SCOPES:],
                line=self.node.start_point.row + 1,
                test_only=self.here.test_only,
                condition=self.here.condition,
                items=tuple(items),
                computed=computed,
            )


def _written_out(found: Items) -> Items:
    """The items of a value, but for one that is no number."""
    return [] if len(found) == 1 and isinstance(found[0], Opaque) else found


def _known(values: Values, mark: Mark, here: _Around) -> ValueType:
    """The type that is written; `Self` is the one whose `impl` this stands in."""
    found = values.tree.type_of(mark.parts.get("type"))
    return ValueType(here.scope[-1]) if found.name == "Self" and here.scope else found


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
