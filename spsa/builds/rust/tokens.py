"""Values inside macros, where the parser gives tokens and no expressions."""

from tree_sitter import Node

from spsa.builds.rust.shape import (
    DEEPEST,
    NUMBERS,
    Group,
    Opaque,
    Shape,
    literals,
    number_at,
    text_of,
)


def arguments(items: tuple[Shape, ...], callee: str = "") -> Shape | None:
    """What a call is made with: its only argument, or all of them if one has a number."""
    if not any(True for item in items for _ in literals(item)):
        return None
    return items[0] if len(items) == 1 else Group(items, True, (), callee.rsplit("::", 1)[-1])


def separated(tree: Node, depth: int) -> tuple[Shape, ...]:
    """The values between the commas of a macro's brackets."""
    return tuple(shape_of_tokens(part, depth) for part in split(tree.children[1:-1], ","))


def split(tokens: list[Node], separator: str) -> list[list[Node]]:
    """Tokens between separators, without comments; what is empty is left out."""
    parts: list[list[Node]] = [[]]
    for token in tokens:
        if token.type == separator:
            parts.append([])
        elif token.type not in ("line_comment", "block_comment"):
            parts[-1].append(token)
    return [part for part in parts if part]


def shape_of_tokens(tokens: list[Node], depth: int) -> Shape:
    """The shape of a value inside a macro, where the parser gives tokens and no expressions."""
    whole = b" ".join(token.text or b"" for token in tokens).decode()
    last = tokens[-1] if tokens else None
    if last is None or depth > DEEPEST:
        return Opaque("nested too deeply" if tokens else "nothing", whole)
    if len(tokens) == 1 and last.type == "token_tree" and last.children[0].type != "{":
        brackets = last.children[0].type
        items = separated(last, depth + 1)
        if any(token.type == ";" for token in last.children):
            return Opaque("one number repeated", whole)
        return Group(items, tuple_=brackets == "(")
    signed = [token.type for token in tokens[:-1]] in ([], ["-"])
    if signed and last.type in NUMBERS:
        found = number_at(whole, tokens[0].start_byte, last.end_byte)
        return found or Opaque("an expression", whole)
    callee = "".join(text_of(token) for token in tokens[:-1])
    if last.type == "token_tree" and callee.replace("::", "").replace("!", "").isidentifier():
        return arguments(separated(last, depth + 1), callee) or Opaque("an expression", whole)
    return Opaque("an expression", whole)
