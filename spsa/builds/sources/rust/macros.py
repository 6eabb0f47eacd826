"""The values that a macro at the top of a file or module is given: `tunable! { NAME = 3; }`."""

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from spsa.builds.sources.literal import REALS, RUST_INTEGERS, UNKNOWN, Named, ValueType
from spsa.builds.sources.rust.values import shape_of_tokens, split
from spsa.builds.sources.shape import DEEPEST, Opaque, Shape, text_of

_NAMES = ("identifier", "type_identifier")
_MARKS = ("=", ":", ",", "=>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name with its value. `scope` names the brackets it stands in, the nearest last."""

    name: str
    scope: tuple[str, ...]
    line: int
    type: ValueType
    value: Shape


def entries_of(macro: Node) -> Iterator[Entry]:
    """The entries of a macro's brackets, in the order of the text.

    They are written `name = value`, `name: type = value`, `type name: value` or, where they end
    with semicolons, also `name, value, and more`.
    """
    trees = [child for child in macro.children if child.type == "token_tree"]
    for tree in trees:
        yield from _entries(tree, (), 0)


def _entries(tree: Node, scope: tuple[str, ...], depth: int) -> Iterator[Entry]:
    tokens = tree.children[1:-1]
    listed = any(token.type == ";" for token in tokens)
    statements = (s for part in split(tokens, ";" if listed else ",") for s in _split_blocks(part))
    for statement in statements if depth <= DEEPEST else ():
        if _is_block(statement[-1]):
            name = next((text_of(t) for t in statement if t.type in _NAMES), "")
            inner = (*scope, name) if name else scope
            yield from _entries(statement[-1], inner, depth + 1)
        elif (entry := _entry(statement, scope, listed=listed)) is not None:
            yield entry


def _is_block(token: Node) -> bool:
    return token.type == "token_tree" and token.children[0].type == "{"


def _split_blocks(tokens: list[Node]) -> Iterator[list[Node]]:
    """A block ends a statement, with or without a semicolon."""
    start = 0
    for i, token in enumerate(tokens):
        if _is_block(token):
            yield tokens[start : i + 1]
            start = i + 1
    if tokens[start:]:
        yield tokens[start:]


def _entry(tokens: list[Node], scope: tuple[str, ...], *, listed: bool) -> Entry | None:
    kinds = [token.type for token in tokens]
    mark = next((i for i, kind in enumerate(kinds) if kind in _MARKS), 0)
    if mark == 0 or kinds[mark - 1] not in _NAMES or (kinds[mark] == "," and not listed):
        return None
    sign = "=" if "=" in kinds else kinds[mark]
    start = kinds.index(sign) + 1
    end = next((i for i in range(start, len(kinds)) if kinds[i] == ","), len(kinds))
    value = shape_of_tokens(tokens[start:end], 0)
    if isinstance(value, Opaque):
        return None
    name = tokens[mark - 1]
    written = [*tokens[mark + 1 : start - 1], *tokens[: mark - 1]]
    return Entry(
        name=text_of(name),
        scope=scope,
        line=name.start_point.row + 1,
        type=_type(written),
        value=value,
    )


def _type(tokens: list[Node]) -> ValueType:
    """The type among the tokens beside a name: of numbers if there is one, else the last name."""
    words = [text_of(token) for token in tokens if token.type in ("primitive_type", *_NAMES)]
    numeric = [word for word in words if word in RUST_INTEGERS or word in REALS]
    return Named((numeric or words)[-1]) if words else UNKNOWN
