"""A Rust file's constants: where they are and what they hold."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from spsa.builds.sources.literal import UNKNOWN, Named, ValueType
from spsa.builds.sources.rust.macros import entries_of
from spsa.builds.sources.rust.values import name_of_let, numbers_in, shape_of, struct_of, type_of
from spsa.builds.sources.shape import (
    COMMENTS,
    Kind,
    Opaque,
    Shape,
    SourceConstant,
    SourceFile,
    content,
    headings,
    preorder,
    text_of,
)
from spsa.core.params import MAX_SCOPES

_LANGUAGE = Language(tree_sitter_rust.language())
_NAMED_SCOPES = {"mod_item": "name", "function_item": "name", "trait_item": "name"}
_DEEPEST = 100
"""Levels of the syntax tree; a constant below them is not looked for."""


def parse(text: str, name: str = "the constants file") -> SourceFile:
    """Read a file, called `name` in messages. A text that is not Rust says so in `broken`."""
    root = Parser(_LANGUAGE).parse(text.encode("utf-8", "surrogatepass")).root_node
    visits = list(preorder(_Visit(root, None, (), test_only=False, depth=0), _inside))
    comments = [visit for visit in visits if visit.node.type in COMMENTS]
    return SourceFile(
        name=name,
        text=text,
        constants=tuple(_constants(visits)),
        aliases=_aliases(visits),
        comments=tuple(text_of(comment.node) for comment in comments),
        headings=tuple(headings((visit.node, visit.before) for visit in comments)),
        broken=_broken(visits) if root.has_error else None,
        lengths=frozenset(_lengths(visits)),
    )


class _Visit(NamedTuple):
    """A node with what is known on the way to it.

    Tree-sitter finds a parent or an earlier sibling by a search from the root, so it is not asked.
    """

    node: Node
    before: Node | None  # its earlier sibling
    scope: tuple[str, ...]  # the innermost names
    test_only: bool
    depth: int
    condition: str = ""
    function: Kind | None = None  # of which kind the function around it is


def _inside(outer: _Visit) -> Iterator[_Visit]:
    name = _scope_name(outer.node)
    scope = (*outer.scope, name)[-MAX_SCOPES:] if name else outer.scope
    function = _function_kind(outer.node) or outer.function
    before, attributes = None, ""
    for child in outer.node.children:
        test_only = outer.test_only or (attributes != "" and _TEST.search(attributes) is not None)
        condition = _condition(attributes) if attributes else ""
        yield _Visit(child, before, scope, test_only, outer.depth + 1, condition, function)
        if child.type == "attribute_item":
            attributes += "".join(text_of(child).split())
        elif child.is_named and child.type not in COMMENTS:
            attributes = ""
        before = child


_TEST = re.compile(r"#\[(?:cfg\(test\)|test)\]")
_CONDITION = re.compile(r"#\[cfg\((.*?)\)\](?=#|$)")


def _condition(attributes: str) -> str:
    return "_".join(re.findall(r"\w+", "_".join(_CONDITION.findall(attributes))))


def _function_kind(node: Node) -> Kind | None:
    if node.type != "function_item":
        return None
    modifiers = (text_of(one) for one in node.children if one.type == "function_modifiers")
    return Kind.CONST_FUNCTION if "const" in "".join(modifiers).split() else Kind.FUNCTION


def _constants(visits: list[_Visit]) -> Iterator[SourceConstant]:
    for visit in visits:
        if visit.depth > _DEEPEST:
            continue
        match visit.node.type:
            case "const_item" | "static_item":
                yield from _declared(visit)
            case "let_declaration":
                yield from _local(visit)
            case "function_item":
                yield from _function(visit)
            case "source_file" | "declaration_list":
                yield from _in_macros(visit)


def _declared(visit: _Visit) -> Iterator[SourceConstant]:
    name, kind = visit.node.child_by_field_name("name"), visit.node.child_by_field_name("type")
    if name is not None and kind is not None:
        value = visit.node.child_by_field_name("value")
        shape = Opaque("declared without a value", "") if value is None else shape_of(value)
        yield _constant(visit, Kind.CONSTANT, name, kind, shape, text_of(visit.node))


def _local(visit: _Visit) -> Iterator[SourceConstant]:
    name, value = name_of_let(visit.node), visit.node.child_by_field_name("value")
    shape = None if name is None or value is None else _made_of(value)
    if name is not None and shape is not None:
        kind = visit.node.child_by_field_name("type")
        mutable = any(child.type == "mutable_specifier" for child in visit.node.children)
        constant = visit.function is Kind.CONST_FUNCTION and not mutable
        yield _constant(visit, Kind.CONST_FUNCTION if constant else Kind.LOCAL, name, kind, shape)


def _function(visit: _Visit) -> Iterator[SourceConstant]:
    name, body = visit.node.child_by_field_name("name"), visit.node.child_by_field_name("body")
    inner = [] if body is None else content(body)
    alone = len(inner) == 1 and inner[0].type != "let_declaration"
    shape = None if body is None else _made_of(inner[0] if alone else body)
    if name is not None and shape is not None:
        kind = visit.node.child_by_field_name("return_type")
        yield _constant(visit, _function_kind(visit.node) or Kind.FUNCTION, name, kind, shape)


def _made_of(node: Node) -> Shape | None:
    """The value that is written out, else the numbers of its expressions; None without any."""
    shape = shape_of(node)
    if isinstance(shape, Opaque):
        numbers = numbers_in(node)
        return numbers if numbers.items else None
    return shape


def _constant(
    visit: _Visit, origin: Kind, name: Node, kind: Node | None, value: Shape, text: str = ""
) -> SourceConstant:
    return SourceConstant(
        kind=origin,
        name=text_of(name),
        scope=visit.scope,
        line=visit.node.start_point.row + 1,
        test_only=visit.test_only,
        type=_known(UNKNOWN if kind is None else type_of(kind), visit.scope),
        value=value,
        text=text,
        condition=visit.condition,
    )


def _known(kind: ValueType, scope: tuple[str, ...]) -> ValueType:
    """`Self` is the type whose `impl` this stands in."""
    return Named(scope[-1]) if kind == Named("Self") and scope else kind


def _in_macros(visit: _Visit) -> Iterator[SourceConstant]:
    scope = visit.scope
    for node in visit.node.children:
        inner = node.children[0] if node.type == "expression_statement" else node
        if inner.type != "macro_invocation":
            continue
        for entry in entries_of(inner):
            yield SourceConstant(
                kind=Kind.MACRO,
                name=entry.name,
                scope=(*scope, *entry.scope)[-MAX_SCOPES:],
                line=entry.line,
                test_only=visit.test_only,
                type=entry.type,
                value=entry.value,
                text="",
            )


def _scope_name(node: Node) -> str:
    """The name by which a scope is addressed: a module's, a function's, an impl's type's."""
    field = "type" if node.type == "impl_item" else _NAMED_SCOPES.get(node.type)
    found = node.child_by_field_name(field) if field else None
    if found is not None and found.type == "generic_type":
        found = found.child_by_field_name("type")
    words = re.findall(r"\w+", text_of(found)) if found is not None else ()
    return words[-1] if words else ""


def _aliases(visits: list[_Visit]) -> dict[str, ValueType]:
    """What the file's types and structs are; a name with two meanings is left unknown."""
    meanings: dict[str, set[ValueType]] = {}
    for node in (visit.node for visit in visits):
        name = node.child_by_field_name("name") if node.type in _TYPES else None
        kind = node.child_by_field_name("type") if node.type == "type_item" else None
        found = struct_of(node) if node.type == "struct_item" else kind and type_of(kind)
        if name is not None and found is not None:
            meanings.setdefault(text_of(name), set()).add(found)
    return {name: kinds.pop() for name, kinds in meanings.items() if len(kinds) == 1}


_TYPES = ("type_item", "struct_item")


def _lengths(visits: list[_Visit]) -> Iterator[str]:
    """The names that lengths of arrays are computed from."""
    for node in (visit.node for visit in visits):
        if node.type in ("array_type", "array_expression"):
            length = node.child_by_field_name("length")
            yield from re.findall(r"[^\W\d]\w*", text_of(length)) if length is not None else ()


def _broken(visits: list[_Visit]) -> int:
    lines = (v.node.start_point.row + 1 for v in visits if v.node.is_error or v.node.is_missing)
    return next(lines, 1)
