"""Rust: which nodes of its syntax tree hold numbers, how it writes them, what macros are given."""

import re
from collections.abc import Iterator

import tree_sitter
import tree_sitter_rust
from tree_sitter import Node

from spsa.builds.sources.constant import Notation, ranges
from spsa.builds.sources.language import DEEPEST, OF_OPERATORS, Entry, Language, declared, text_of
from spsa.core.parameter import Number

_MARKS = r"""
[(const_item) (static_item)] @bare
(const_item name: (_) @name type: (_) @type value: (_)? @value) @constant
(static_item name: (_) @name type: (_) @type value: (_)? @value) @constant
(let_declaration pattern: (identifier) @name type: (_)? @type value: (_) @value) @variable
(function_item name: (_) @name return_type: (_)? @type body: (_) @body) @function
(source_file [(macro_invocation macro: (_) @callee (token_tree) @body)
  (expression_statement (macro_invocation macro: (_) @callee (token_tree) @body))] @macro)
(declaration_list [(macro_invocation macro: (_) @callee (token_tree) @body)
  (expression_statement (macro_invocation macro: (_) @callee (token_tree) @body))] @macro)
(type_item name: (_) @name type: (_) @type) @alias
(struct_item name: (_) @name body: (_) @type) @structure

[(mod_item name: (_) @name) (trait_item name: (_) @name)] @scope
(impl_item type: [(type_identifier) @name (scoped_type_identifier name: (_) @name)
  (reference_type type: (type_identifier) @name) (generic_type type: (type_identifier) @name)
  (generic_type type: (scoped_type_identifier name: (_) @name))]) @scope
([(attribute_item) (line_comment) (block_comment)] @above . (_) @below)
((attribute_item) @range (#match? @range "\\bmin\\b.*\\bmax\\b"))
((attribute_item) @test (#match? @test "^#\\[\\s*(test|cfg\\s*\\(\\s*test\\s*\\))\\s*\\]$"))

[(integer_literal) (float_literal)] @number
(unary_expression "-" [(integer_literal) (float_literal)]) @number
[(parenthesized_expression) (reference_expression)] @inner
(type_cast_expression value: (_) @value) @same
(array_expression !length) @array
(array_expression length: (_) @bare)
(tuple_expression) @tuple
(tuple_expression . (string_literal) @name . (_) @value . (_) . (_)) @row
(arguments . (string_literal) @name . (_) @value . (_) . (_)) @row
(struct_expression body: (_) @body) @record
(field_initializer field: (_) @name value: (_) @value) @field
(call_expression function: (_) @callee arguments: (_) @arguments
  (#not-match? @callee "\\.|capacity")) @call
(macro_invocation) @text

[(function_item) (macro_definition) (macro_invocation) (parameters) (range_expression)
  (type_arguments) (array_type)] @bare
(let_declaration pattern: (identifier)) @bare
(_ [pattern: (_) type: (_) return_type: (_)] @bare)
(while_expression condition: (_) @bare)
(match_arm pattern: (_) @_piece value: (_) @bare (#match? @_piece "(?i)king"))
[(index_expression (_) . (_) @bare) (field_expression (_) . (_) @bare)]
(field_expression . [(integer_literal) (float_literal)] @bare)
(index_expression . [(integer_literal) (float_literal)] @bare)

[(line_comment) (block_comment) (attribute_item) (mutable_specifier) (visibility_modifier)] @aside
(_ length: (_) @length)
(call_expression function: (_) @_made (#match? @_made "with_capacity$")
  arguments: (arguments . [(identifier) (scoped_identifier)] @length))
(type_arguments (_) (type_identifier) @length)
(index_expression (_) . [(identifier) (scoped_identifier)] @length)
(index_expression (_) . (field_expression field: (_) @length))
(binary_expression operator: ["<<" ">>" "%"] right: [(identifier) (scoped_identifier)] @length)
(ERROR) @broken
(MISSING) @broken
"""

_AT_MOST = re.compile(r"(\bas\s+[\w:]+\s*)<=")
"""A comparison behind a type, whose `<` the parser takes for the begin of generic arguments."""


def _prepared(text: str) -> str:
    """The text with a comparison that the parser understands, which says as much of the numbers."""
    return _AT_MOST.sub(r"\1>=", text)


_BITS = {"8": 8, "16": 16, "32": 32, "64": 64, "128": 128, "size": 64}
_SIGNED, _UNSIGNED = ({f"{sign}{name}": n for name, n in _BITS.items()} for sign in "iu")
_REALS = ("f32", "f64")
_NOTATION = Notation(
    pattern=re.compile(
        # the digits of a hexadecimal number go on for as long as they can: 0x1f32 is no f32
        r"(?P<digits>0x[0-9a-fA-F_]*[0-9a-fA-F]|0o[0-7_]*[0-7]|0b[01_]*[01]"
        r"|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?_*[0-9][0-9_]*)?)"
        r"_*(?P<suffix>[iu](?:8|16|32|64|128|size)|f(?:32|64))?"
    ),
    separator="_",
    suffixes={name: name for name in (*_SIGNED, *_UNSIGNED, *_REALS)},
    integers=ranges(_SIGNED, _UNSIGNED),
    reals=_REALS,
    aliases={f"Atomic{name.capitalize()}": name for name in (*_SIGNED, *_UNSIGNED)},
)

_NAMES = ("identifier", "type_identifier", "string_literal", "default")
_LITERALS = ("integer_literal", "float_literal")
_MARKS_OF_VALUES = ("=", ":", ",", "=>")
_RANGES = ("..=", "..")
_OF_RANGE = (*_LITERALS, *_RANGES, "-")

Tokens = list[Node]


def _entries(tree: Node, scope: tuple[str, ...] = (), depth: int = 0) -> Iterator[Entry]:
    """The entries of a macro's brackets, in the order of the text: `tunable! { NAME = 3; }`.

    They are written `name = value`, `name: type = value`, `type name: value` or, where they end
    with semicolons or are rows of numbers, also `name, value, and more`. A range stands behind the
    value, `name = value; 1..=9; step = 2;`, `name = value (1..=9);` or `name => value | 1..=9;`, or
    before it, `name: 1..=9 = value`.
    """
    tokens = tree.children[1:-1]
    if [token.type for token in tokens[1:4]] == [",", "primitive_type", ","]:
        del tokens[2:4]  # the type of the one entry: tunable!(NAME, i32, 80, 40, 120);
    listed = any(token.type == ";" for token in tokens) or _is_row(tokens)
    statements = _split(tokens, ";" if listed else ",", blocks=True)
    for statement, behind in _with_ranges(statements):
        body = statement[-1]
        is_row = len(statement) == 1 and _is_row(body.children[1:-1])
        if depth < DEEPEST and (is_row or _is_block(body)):
            yield from _inner(statement, scope, depth + 1)
        elif (entry := _entry(statement, scope)) is not None:
            yield entry._replace(beside=(*entry.beside, *behind))


def _with_ranges(statements: list[Tokens]) -> list[tuple[Tokens, list[Number]]]:
    """Statements with the numbers of a range and a step that stand behind their semicolons."""
    told: list[tuple[Tokens, list[Number]]] = []
    for statement in statements:
        is_step = text_of(statement[0]) == "step" and told and told[-1][1]
        if told and all(token.type in _OF_RANGE for token in statement[2 if is_step else 0 :]):
            told[-1][1].extend(_numbers(statement))
        else:
            told.append((statement, []))
    return told


def _inner(statement: Tokens, scope: tuple[str, ...], depth: int) -> Iterator[Entry]:
    """The entries of a block; if they are a value, its minimum and its maximum, that is one."""
    name, body = next((one for one in statement if one.type in _NAMES), None), statement[-1]
    inner = list(_entries(body, scope if name is None else (*scope, text_of(name)), depth))
    told = declared({text_of(entry.name): entry for entry in inner})
    if name is None or not told:
        yield from inner
        return
    text, start = text_of(body).encode(), body.start_byte
    parts = (text[one.value[0] - start : one.value[1] - start].decode() for one in told[1:])
    beside = tuple(number for number in map(_NOTATION.read, parts) if number is not None)
    yield Entry(name, scope, _text(statement[1:-1]), told[0].value, beside)


def _split(tokens: Tokens, separator: str, *, blocks: bool = False) -> list[Tokens]:
    """Tokens between separators, without comments; what is empty is left out.

    With `blocks` a block ends a part, with or without a separator.
    """
    parts: list[Tokens] = [[]]
    for token in tokens:
        if token.type != separator and not token.type.endswith("comment"):
            parts[-1].append(token)
        if token.type == separator or (blocks and _is_block(token)):
            parts.append([])
    return [part for part in parts if part]


def _is_block(token: Node) -> bool:
    return token.type == "token_tree" and token.children[0].type == "{"


def _entry(tokens: Tokens, scope: tuple[str, ...]) -> Entry | None:
    kinds = [token.type for token in tokens]
    if kinds[1:2] == [","] and kinds[3:4] in ([":"], ["="]):
        return _entry(tokens[2:], scope)  # the name of the whole block is before it
    mark = next((i for i, kind in enumerate(kinds) if kind in _MARKS_OF_VALUES), 0)
    if mark == 0:
        return None
    start = kinds.index(next(kind for kind in ("=", "=>", kinds[mark]) if kind in kinds)) + 1
    value = next(iter(_split(tokens[start:], ",")), [])
    if not value or kinds[start] == ",":
        return None
    if len(value) > 1 and any(token.type in _RANGES for token in value[-1].children):
        value.pop()
    elif any(token.type in _RANGES for token in value):  # behind a bar
        value = _split(value, "|")[0]
    around = [*tokens[mark + 1 : start - 1], *tokens[: mark - 1]]
    told = around if any(token.type in _RANGES for token in around) else []
    behind = tuple(_numbers([*told, *tokens[tokens.index(value[-1]) + 1 :]]))
    part = value[0].start_byte, value[-1].end_byte
    return Entry(tokens[mark - 1], scope, _text(around), part, behind)


def _is_row(tokens: Tokens) -> bool:
    """Whether these are a name and at least three numbers, with commas between them."""
    parts = _split(tokens, ",")
    all_numbers = len(parts) > 3 and all(part[-1].type in _LITERALS for part in parts[1:])
    return all_numbers and [token.type in _NAMES for token in parts[0]] == [True]


def _numbers(tokens: Tokens) -> Iterator[Number]:
    """The numbers among tokens, in brackets or ranges as well, each with its minus."""
    sign = ""
    for token in tokens:
        if token.type == "token_tree":
            yield from _numbers(token.children)
        number = _NOTATION.read(sign + text_of(token)) if token.type in _LITERALS else None
        if number is not None:
            yield number
        sign = "-" if token.type == "-" else ""


def _text(tokens: Tokens) -> str:
    return " ".join(map(text_of, tokens))


RUST = Language(
    suffixes=("rs",),
    grammar=tree_sitter.Language(tree_sitter_rust.language()),
    marks=_MARKS + OF_OPERATORS.replace("number", "integer"),
    notation=_NOTATION,
    frame=(b"const X: T = ", b"\n;"),
    entries=_entries,
    prepared=_prepared,
)
