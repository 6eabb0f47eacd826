"""A Rust file's constants: where they are and what they hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from spsa.builds.rust.shape import Opaque, Shape, shape_of, text_of
from spsa.builds.rust.types import RustType, type_of
from spsa.core.params import MOST_SCOPES

_LANGUAGE = Language(tree_sitter_rust.language())
_NAMED_SCOPES = {"mod_item": "name", "function_item": "name", "trait_item": "name"}
_COMMENTS = frozenset({"line_comment", "block_comment"})
_DEEPEST = 100
"""Levels of the syntax tree; a constant below them is not looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RustConstant:
    """A `const` or `static`; line from 1.

    `scope` names what it stands in, the nearest last, and of very many only the nearest.
    """

    name: str
    scope: tuple[str, ...]
    line: int
    test_only: bool
    type: RustType
    value: Shape
    text: str


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that stands alone on its line."""

    line: int
    text: str


@dataclass(frozen=True, kw_only=True)  # no slots: the look-up by name is computed once
class RustFile:
    """All that is known of one file's text. `broken` is the first line that is not Rust."""

    name: str
    text: str
    constants: tuple[RustConstant, ...]
    aliases: Mapping[str, RustType]
    comments: tuple[str, ...]
    headings: tuple[Comment, ...]
    broken: int | None

    @cached_property
    def by_name(self) -> Mapping[str, tuple[RustConstant, ...]]:
        """The constants of each name, in the order of the text."""
        found: dict[str, list[RustConstant]] = {}
        for constant in self.constants:
            found.setdefault(constant.name, []).append(constant)
        return {name: tuple(constants) for name, constants in found.items()}


def parse(text: str, name: str = "the constants file") -> RustFile:
    """Read a file, called `name` in messages. A text that is not Rust says so in `broken`."""
    root = Parser(_LANGUAGE).parse(text.encode("utf-8", "surrogatepass")).root_node
    visits = list(_walk(root))
    comments = [visit for visit in visits if visit.node.type in _COMMENTS]
    return RustFile(
        name=name,
        text=text,
        constants=tuple(_constants(visits)),
        aliases=_aliases(visits),
        comments=tuple(text_of(comment.node) for comment in comments),
        headings=tuple(_headings(comments)),
        broken=_broken(visits) if root.has_error else None,
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


def _walk(root: Node) -> Iterator[_Visit]:
    """Every node, in the order of the text, without recursion (sources may nest deeply)."""
    waiting = [_Visit(root, None, (), test_only=False, depth=0)]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list(_inside(current))))


def _inside(outer: _Visit) -> Iterator[_Visit]:
    name = _scope_name(outer.node)
    scope = (*outer.scope, name)[-MOST_SCOPES:] if name else outer.scope
    before, announced = None, False
    for child in outer.node.children:
        test_only = outer.test_only or announced
        yield _Visit(child, before, scope, test_only=test_only, depth=outer.depth + 1)
        if child.type == "attribute_item":
            announced |= "".join(text_of(child).split()) in ("#[cfg(test)]", "#[test]")
        elif child.is_named and child.type not in _COMMENTS:
            announced = False
        before = child


def _constants(visits: list[_Visit]) -> Iterator[RustConstant]:
    for visit in visits:
        node = visit.node
        if node.type not in ("const_item", "static_item") or visit.depth > _DEEPEST:
            continue
        name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is not None and kind is not None:
            yield _constant(visit, name, kind)


def _constant(visit: _Visit, name: Node, kind: Node) -> RustConstant:
    value = visit.node.child_by_field_name("value")
    return RustConstant(
        name=text_of(name),
        scope=visit.scope,
        line=visit.node.start_point.row + 1,
        test_only=visit.test_only,
        type=type_of(kind),
        value=Opaque("declared without a value", "") if value is None else shape_of(value),
        text=text_of(visit.node),
    )


def _scope_name(node: Node) -> str:
    """The name by which a scope is addressed: a module's, a function's, an impl's type's."""
    field = "type" if node.type == "impl_item" else _NAMED_SCOPES.get(node.type)
    found = node.child_by_field_name(field) if field else None
    if found is not None and found.type == "generic_type":
        found = found.child_by_field_name("type")
    return "" if found is None else text_of(found).rsplit("::", 1)[-1]


def _aliases(visits: list[_Visit]) -> dict[str, RustType]:
    """What the file's `type` items stand for; a name with two meanings is left unknown."""
    meanings: dict[str, set[RustType]] = {}
    for node in (visit.node for visit in visits if visit.node.type == "type_item"):
        name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is not None and kind is not None:
            meanings.setdefault(text_of(name), set()).add(type_of(kind))
    return {name: kinds.pop() for name, kinds in meanings.items() if len(kinds) == 1}


def _headings(comments: list[_Visit]) -> Iterator[Comment]:
    for visit in comments:
        node, before = visit.node, visit.before
        # a doc comment's node ends behind its line break
        if before is None or before.end_point < (node.start_point.row, 1):
            yield Comment(node.start_point.row + 1, text_of(node).strip("/*! \t\r\n"))


def _broken(visits: list[_Visit]) -> int:
    lines = (v.node.start_point.row + 1 for v in visits if v.node.is_error or v.node.is_missing)
    return next(lines, 1)
