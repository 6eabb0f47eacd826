"""A Rust file's constants: where they are, what they hold, what is wrong with asking for one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import tree_sitter_rust
from tree_sitter import Language, Node, Parser

from spsa.rust_constants.shape import Opaque, Shape, shape_of, text_of
from spsa.rust_constants.types import RustType, type_of

_LANGUAGE = Language(tree_sitter_rust.language())
_NAMED_SCOPES = {"mod_item": "name", "function_item": "name", "trait_item": "name"}
_COMMENTS = frozenset({"line_comment", "block_comment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RustConstant:
    """A `const` or `static`. `scope` names what it stands in, the nearest last; line from 1."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RustFile:
    """All that is known of one file's text. `broken` is the first line that is not Rust."""

    name: str
    text: str
    constants: tuple[RustConstant, ...]
    aliases: Mapping[str, RustType]
    comments: tuple[str, ...]
    headings: tuple[Comment, ...]
    broken: int | None


def parse(text: str, name: str = "the constants file") -> RustFile:
    """Read a file, called `name` in messages. A text that is not Rust says so in `broken`."""
    root = Parser(_LANGUAGE).parse(text.encode("utf-8", "surrogatepass")).root_node
    nodes = list(_walk(root))
    comments = [node for node in nodes if node.type in _COMMENTS]
    return RustFile(
        name=name,
        text=text,
        constants=tuple(_constants(nodes)),
        aliases=_aliases(nodes),
        comments=tuple(text_of(comment) for comment in comments),
        headings=tuple(_headings(comments)),
        broken=_broken(nodes) if root.has_error else None,
    )


def _walk(node: Node) -> Iterator[Node]:
    """Every node, in the order of the text, without recursion (sources may nest deeply)."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(current.children))


def _constants(nodes: list[Node]) -> Iterator[RustConstant]:
    for node in nodes:
        if node.type not in ("const_item", "static_item"):
            continue
        name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
        if name is not None and kind is not None:
            yield _constant(node, name, kind)


def _constant(node: Node, name: Node, kind: Node) -> RustConstant:
    value = node.child_by_field_name("value")
    around = list(_ancestors(node))
    return RustConstant(
        name=text_of(name),
        scope=tuple(scope for outer in reversed(around) if (scope := _scope_name(outer))),
        line=node.start_point.row + 1,
        test_only=any(_under_test(outer) for outer in (node, *around)),
        type=type_of(kind),
        value=Opaque("declared without a value", "") if value is None else shape_of(value),
        text=text_of(node),
    )


def _ancestors(node: Node) -> Iterator[Node]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _scope_name(node: Node) -> str:
    """The name by which a scope is addressed: a module's, a function's, an impl's type's."""
    field = "type" if node.type == "impl_item" else _NAMED_SCOPES.get(node.type)
    found = node.child_by_field_name(field) if field else None
    if found is not None and found.type == "generic_type":
        found = found.child_by_field_name("type")
    return "" if found is None else text_of(found).rsplit("::", 1)[-1]


def _under_test(node: Node) -> bool:
    """Whether `#[cfg(test)]` or `#[test]` stands before the item."""
    before = node.prev_named_sibling
    while before is not None and (before.type == "attribute_item" or before.type in _COMMENTS):
        if "".join(text_of(before).split()) in ("#[cfg(test)]", "#[test]"):
            return True
        before = before.prev_named_sibling
    return False


def _aliases(nodes: list[Node]) -> dict[str, RustType]:
    """What the file's `type` items stand for; a name with two meanings is left unknown."""
    meanings: dict[str, set[RustType]] = {}
    for node in nodes:
        name, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
        if node.type == "type_item" and name is not None and kind is not None:
            meanings.setdefault(text_of(name), set()).add(type_of(kind))
    return {name: kinds.pop() for name, kinds in meanings.items() if len(kinds) == 1}


def _headings(comments: list[Node]) -> Iterator[Comment]:
    for node in comments:
        before = node.prev_sibling
        # a doc comment's node ends behind its line break
        if before is None or before.end_point < (node.start_point.row, 1):
            yield Comment(node.start_point.row + 1, text_of(node).strip("/*! \t\r\n"))


def _broken(nodes: list[Node]) -> int:
    return next((node.start_point.row + 1 for node in nodes if node.is_error or node.is_missing), 1)
