"""The constants of a C or C++ file: where they are and what they hold.

A macro may stand for any text, so a part that the parser does not understand is passed over. What
is written is compared as for Rust, and the compiler has the last word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import tree_sitter_c
import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from spsa.builds.sources.c.values import moved, numbers_in, shape_of, type_of, value_of
from spsa.builds.sources.literal import UNKNOWN, Literal, Named, ValueType
from spsa.builds.sources.shape import (
    COMMENTS,
    Group,
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

_C = Language(tree_sitter_c.language())
_CPP = Language(tree_sitter_cpp.language())
_DEEPEST = 100
"""Levels of the syntax tree; a constant below them is not looked for."""


def parse(text: str, name: str = "the constants file") -> SourceFile:
    """Read a file, called `name` in messages; `broken` is always None."""
    language = _C if name.endswith(".c") else _CPP
    root = Parser(language).parse(text.encode("utf-8", "surrogatepass")).root_node
    visits = list(preorder(_Visit(root, None), _inside))
    comments = [visit for visit in visits if visit.node.type in COMMENTS]
    return SourceFile(
        name=name,
        text=text,
        # where the text is no C, the parser may insert a name that is empty
        constants=tuple(one for visit in visits for one in _constants(visit) if one.name),
        aliases=dict(_aliases(visits)),
        comments=tuple(text_of(comment.node) for comment in comments),
        headings=tuple(headings((visit.node, visit.before) for visit in comments)),
        broken=None,
        lengths=frozenset(name for visit in visits for name in _lengths(visit.node)),
    )


class _Visit(NamedTuple):
    """A node with what is known on the way to it."""

    node: Node
    before: Node | None  # its earlier sibling
    scope: tuple[str, ...] = ()  # the innermost names
    depth: int = 0
    condition: str = ""
    inside_function: bool = False


def _inside(outer: _Visit) -> Iterator[_Visit]:
    name = _scope_name(outer.node)
    scope = (*outer.scope, *name)[-MAX_SCOPES:] if name else outer.scope
    condition = _condition(outer.node, outer.condition)
    function = outer.inside_function or outer.node.type in _BODIES
    before = None
    for child in outer.node.children:
        yield _Visit(child, before, scope, outer.depth + 1, condition, function)
        before = child


_BODIES = ("function_definition", "compound_statement")  # also one of a macro's function


def _scope_name(node: Node) -> tuple[str, ...]:
    """The names by which a scope is addressed: a namespace's, a type's, a function's."""
    if node.type in ("namespace_definition", "class_specifier", "struct_specifier"):
        name = node.child_by_field_name("name")
    elif node.type == "function_definition":
        name = _function_name(node)
    else:
        return ()
    return tuple(re.findall(r"\w+", text_of(name))) if name is not None else ()


def _function_name(node: Node) -> Node | None:
    inner = node.child_by_field_name("declarator")
    while inner is not None and inner.type.endswith("_declarator"):
        inner = inner.child_by_field_name("declarator")
    plain = ("identifier", "field_identifier", "qualified_identifier")
    return inner if inner is not None and inner.type in plain else None


def _condition(node: Node, above: str) -> str:
    """The `#if` that a node is inside of, as a name; the branches of one have different names."""
    match node.type:
        case "preproc_ifdef":
            name, negated = node.child_by_field_name("name"), text_of(node).startswith("#ifndef")
            if negated and _defines(node, name):
                return above  # it guards against being read twice
        case "preproc_if" | "preproc_elif":
            name, negated = node.child_by_field_name("condition"), False
        case "preproc_else":
            return above.removeprefix("not_") if above.startswith("not_") else f"not_{above}"
        case _:
            return above
    words = "_".join(re.findall(r"\w+", text_of(name))) if name is not None else ""
    return f"not_{words}" if negated else words


def _defines(node: Node, name: Node | None) -> bool:
    names = (child.child_by_field_name("name") for child in node.children if child != name)
    return any(one and name and text_of(one) == text_of(name) for one in names)


def _constants(visit: _Visit) -> Iterator[SourceConstant]:
    if visit.depth > _DEEPEST:
        return
    match visit.node.type:
        case "declaration" | "field_declaration":
            yield from _declared(visit)
        case "enumerator":
            yield from _named_value(visit, visit.node.child_by_field_name("value"))
        case "preproc_def":
            yield from _defined(visit)
        case "expression_statement" if not visit.inside_function:
            yield from _macro(visit)
        case "function_definition":
            yield from _function(visit)


@dataclass(frozen=True, slots=True)
class _Declarator:
    """One declared name of a declaration: `node` holds it and its value; `arrays` nested."""

    node: Node
    name: Node
    value: Node
    arrays: int


def _declared(visit: _Visit) -> Iterator[SourceConstant]:
    kind, written = _kind(visit), visit.node.child_by_field_name("type")
    for one in _declarators(visit.node):
        type_ = type_of(written, one.arrays)
        array = one.arrays > 0 or type_ != type_of(written) or not isinstance(type_, Named)
        shape = value_of(one.value, array=array)
        if type_ == Named("bool"):
            shape = Opaque("a bool", text_of(one.value))
        if kind is Kind.LOCAL and isinstance(shape, Opaque):
            shape = numbers_in(one.value)
            if not shape.items:
                continue
        yield _constant(visit, kind, one.name, type_, shape, text_of(one.node))


def _kind(visit: _Visit) -> Kind:
    words = {text_of(child) for child in visit.node.children if child.type in _QUALIFIERS}
    if visit.inside_function:
        return Kind.CONSTANT if words & {"constexpr", "static"} else Kind.LOCAL
    return Kind.CONSTANT if words & {"const", "constexpr"} else Kind.VARIABLE


_QUALIFIERS = ("type_qualifier", "storage_class_specifier")


def _declarators(declaration: Node) -> Iterator[_Declarator]:
    """The names with a value; pointers and references hold no number."""
    pending: Node | None = None
    for position, child in enumerate(declaration.children):
        match declaration.field_name_for_child(position):
            case "declarator" if child.type == "init_declarator":
                name, value = (child.child_by_field_name(f) for f in ("declarator", "value"))
                yield from _declarator(child, name, value)
            case "declarator":
                pending = child  # of a class, whose value is a sibling
            case "default_value":
                yield from _declarator(declaration, pending, child)


def _declarator(whole: Node, name: Node | None, value: Node | None) -> Iterator[_Declarator]:
    arrays = 0
    while name is not None and name.type == "array_declarator":
        name, arrays = name.child_by_field_name("declarator"), arrays + 1
    if name is not None and value is not None and name.type in _PLAIN:
        yield _Declarator(whole, name, value, arrays)


_PLAIN = ("identifier", "field_identifier", "qualified_identifier")


def _named_value(visit: _Visit, value: Node | None) -> Iterator[SourceConstant]:
    name = visit.node.child_by_field_name("name")
    if name is not None and value is not None:
        yield _constant(visit, Kind.CONSTANT, name, UNKNOWN, shape_of(value), text_of(visit.node))


def _defined(visit: _Visit) -> Iterator[SourceConstant]:
    """A `#define` without parameters, whose value the parser gives as text."""
    name, value = (visit.node.child_by_field_name(field) for field in ("name", "value"))
    if name is not None and value is not None:
        yield _constant(visit, Kind.CONSTANT, name, UNKNOWN, _parsed(value), text_of(visit.node))


_BEFORE = b"auto x = "


def _parsed(value: Node) -> Shape:
    text = re.split(r"//|/\*", text_of(value))[0].strip()
    root = Parser(_CPP).parse(_BEFORE + text.encode() + b";").root_node
    declarators = list(_declarators(root.children[0])) if root.children else []
    if root.has_error or len(root.children) != 1 or len(declarators) != 1:
        return Opaque("an expression", text)
    return moved(value_of(declarators[0].value, array=False), value.start_byte - len(_BEFORE))


def _macro(visit: _Visit) -> Iterator[SourceConstant]:
    """What a macro of the file or a namespace declares: `TUNE_INT(name, 77, 0, 200);`."""
    inner = content(visit.node)
    if not inner or inner[0].type != "call_expression" or len(content(inner[0])) != 2:
        return
    items = content(content(inner[0])[1])
    named = items and items[0].type in ("identifier", "string_literal")
    value = shape_of(items[1]) if named and len(items) > 1 else None
    if isinstance(value, Literal | Group):
        yield _constant(visit, Kind.MACRO, items[0], UNKNOWN, value, "")


def _function(visit: _Visit) -> Iterator[SourceConstant]:
    name, body = _function_name(visit.node), visit.node.child_by_field_name("body")
    inner = content(body) if body is not None else []
    if name is None or body is None:
        return
    alone = len(inner) == 1 and inner[0].type == "return_statement" and content(inner[0])
    shape = shape_of(content(inner[0])[0]) if alone else Opaque("a function", "")
    if isinstance(shape, Opaque):
        shape = numbers_in(body)
    if isinstance(shape, Literal) or (isinstance(shape, Group) and shape.items):
        words = {text_of(child) for child in visit.node.children if child.type in _QUALIFIERS}
        kind = Kind.CONST_FUNCTION if "constexpr" in words else Kind.FUNCTION
        written = type_of(visit.node.child_by_field_name("type"))
        yield _constant(visit, kind, name, written, shape)


def _constant(
    visit: _Visit, kind: Kind, name: Node, written: ValueType, value: Shape, text: str = ""
) -> SourceConstant:
    *outer, own = re.findall(r"\w+", text_of(name)) or [""]
    return SourceConstant(
        kind=kind,
        name=own,
        scope=(*visit.scope, *outer)[-MAX_SCOPES:],
        line=visit.node.start_point.row + 1,
        test_only=False,
        type=written,
        value=value,
        text=text,
        condition=visit.condition,
    )


def _aliases(visits: list[_Visit]) -> Iterator[tuple[str, ValueType]]:
    """What `typedef int Value;` and `using Value = int;` name."""
    for node in (visit.node for visit in visits):
        name = {"type_definition": "declarator", "alias_declaration": "name"}.get(node.type)
        found = node.child_by_field_name(name) if name else None
        if found is not None and found.type == "type_identifier":
            kind = type_of(node.child_by_field_name("type"))
            if kind != Named(text_of(found)):
                yield text_of(found), kind


def _lengths(node: Node) -> Iterator[str]:
    """The names that lengths of arrays are computed from."""
    size = node.child_by_field_name("size") if node.type == "array_declarator" else None
    yield from re.findall(r"[^\W\d]\w*", text_of(size)) if size is not None else ()
