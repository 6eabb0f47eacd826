"""The value and the type of a constant, and the numbers of an expression, from the syntax tree."""

from tree_sitter import Node

from spsa.builds.sources.literal import (
    RUST_INTEGERS,
    ArrayOf,
    Literal,
    Named,
    StructOf,
    TupleOf,
    ValueType,
)
from spsa.builds.sources.shape import (
    COMMENTS,
    DEEPEST,
    NUMBERS,
    Group,
    Opaque,
    Shape,
    arguments,
    content,
    factor,
    literals,
    number_at,
    opaque,
    preorder,
    text_of,
)

_BRACKETS = {"parenthesized_expression", "reference_expression"}


def shape_of(node: Node, depth: int = 0) -> Shape:
    """The shape of the value that `node` writes, inside `depth` brackets."""
    if depth > DEEPEST:
        return Opaque("nested too deeply", text_of(node))
    if node.type in _BRACKETS:
        return _inner(node, depth + 1)
    if node.type == "array_expression":
        return _array(node, depth + 1)
    if node.type == "tuple_expression":
        return Group(_items(node, depth + 1), tuple_=True)
    return _number(node) or factor(node, _number) or _wrapped(node, depth + 1) or opaque(node)


def numbers_in(node: Node) -> Group:
    """The numbers that an expression is computed from, in the order they are written.

    Positions, ranges, patterns, types and macros hold no strength and are left out, and so is all
    that has a name of its own.
    """
    numbers = (_number(one) for one in preorder(node, _operands))
    return Group(tuple(one for one in numbers if one is not None), tuple_=True, computed=True)


def name_of_let(node: Node) -> Node | None:
    """The one name that a `let` gives its value; None for a pattern of several."""
    pattern = node.child_by_field_name("pattern")
    return pattern if pattern is not None and pattern.type == "identifier" else None


_WITHOUT_STRENGTH = frozenset(
    {
        "const_item",
        "function_item",
        "macro_definition",
        "macro_invocation",
        "parameters",
        "range_expression",
        "static_item",
        "type_arguments",
    }
)


def _operands(node: Node) -> list[Node]:
    if (
        _number(node) is not None
        or node.type in _WITHOUT_STRENGTH
        or node.type.endswith("_pattern")
    ):
        return []
    inner = content(node)
    if node.type == "let_declaration" and name_of_let(node) is not None:
        return []
    if node.type in ("field_expression", "index_expression"):
        # `pair.0`, `5.max(x)`, `table[3]`: the number is a position, or binds to what follows
        return [one for one in inner[:1] if one.type not in NUMBERS]
    if node.type == "array_expression" and (length := node.child_by_field_name("length")):
        return [one for one in inner if one != length]
    return [one for one in inner if not one.type.endswith("_type")]


def _inner(node: Node, depth: int) -> Shape:
    inner = content(node)
    return shape_of(inner[-1], depth) if inner else opaque(node)


def _items(node: Node, depth: int) -> tuple[Shape, ...]:
    return tuple(shape_of(item, depth) for item in content(node))


def _array(node: Node, depth: int) -> Shape:
    if node.child_by_field_name("length") is not None:
        return Opaque("one number repeated", text_of(node))
    return Group(_items(node, depth), tuple_=False)


def _wrapped(node: Node, depth: int) -> Shape | None:
    """The numbers inside a cast, a struct, a call or a macro; None where they hold none."""
    inner = content(node)
    if node.type == "type_cast_expression" and inner:
        cast = shape_of(inner[0], depth)
        return cast if isinstance(cast, Literal) else None
    if node.type == "struct_expression":
        return _struct(node, depth)
    if node.type == "call_expression" and inner[0].type != "field_expression":
        return arguments(_items(inner[1], depth), text_of(inner[0]))
    if node.type == "macro_invocation" and len(inner) > 1:
        return arguments(separated(inner[1], depth), f"{text_of(inner[0])}!")
    return None


def _struct(node: Node, depth: int) -> Shape | None:
    fields = node.child_by_field_name("body")
    named = [one for one in content(fields) if one.type == "field_initializer"] if fields else []
    parts = [(content(one)[0], content(one)[-1]) for one in named]
    group = Group(
        tuple(shape_of(value, depth) for _, value in parts),
        tuple_=True,
        names=tuple(text_of(name) for name, _ in parts),
    )
    return group if any(True for _ in literals(group)) else None


def _number(node: Node) -> Literal | None:
    """A literal, with the minus before it; None for anything else, such as `-(5)` or `-X`."""
    digits = content(node)[0] if node.type == "unary_expression" and content(node) else node
    if digits.type not in NUMBERS:
        return None
    return number_at(text_of(node), node.start_byte, node.end_byte)


_ATOMIC = {f"Atomic{name.upper()}": name for name in (*RUST_INTEGERS, "bool")} | {
    "AtomicUsize": "usize",
    "AtomicIsize": "isize",
}


def type_of(node: Node, depth: int = 0) -> ValueType:
    """The type that `node` writes, inside `depth` brackets; references are looked through."""
    if depth > DEEPEST:
        return Named("nested too deeply")
    if node.type == "reference_type":
        return type_of(content(node)[-1], depth + 1)
    if node.type == "array_type" and (element := node.child_by_field_name("element")) is not None:
        return ArrayOf(type_of(element, depth + 1))
    if node.type == "tuple_type":
        return TupleOf(tuple(type_of(field, depth + 1) for field in content(node)))
    name = text_of(node).rsplit("::", 1)[-1]
    return Named(_ATOMIC.get(name, name))


def struct_of(node: Node) -> ValueType | None:
    """What a struct is made of; None for one without fields."""
    body = node.child_by_field_name("body")
    if body is None:
        return None
    parts = [part for part in content(body) if part.type != "visibility_modifier"]
    if body.type == "ordered_field_declaration_list":
        return TupleOf(tuple(type_of(part) for part in parts))
    named = [(part.child_by_field_name("name"), part.child_by_field_name("type")) for part in parts]
    fields = [(text_of(name), type_of(kind)) for name, kind in named if name and kind]
    return StructOf(tuple(name for name, _ in fields), tuple(kind for _, kind in fields))


def separated(tree: Node, depth: int) -> tuple[Shape, ...]:
    """The values between the commas of a macro's brackets."""
    return tuple(shape_of_tokens(part, depth) for part in split(tree.children[1:-1], ","))


def split(tokens: list[Node], separator: str) -> list[list[Node]]:
    """Tokens between separators, without comments; what is empty is left out."""
    parts: list[list[Node]] = [[]]
    for token in tokens:
        if token.type == separator:
            parts.append([])
        elif token.type not in COMMENTS:
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
