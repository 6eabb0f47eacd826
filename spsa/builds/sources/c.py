"""C and C++: which nodes of their syntax trees hold numbers, and how they write them.

A macro may stand for any text, so a part that the parser does not understand is passed over. What
is written is compared as for Rust, and the compiler has the last word.
"""

import re
from dataclasses import replace

import tree_sitter
import tree_sitter_c
import tree_sitter_cpp

from spsa.builds.sources.constant import Notation, ranges
from spsa.builds.sources.language import OF_OPERATORS, Language

_MARKS = r"""
(declaration type: (_) @type declarator: (init_declarator
  declarator: [(identifier) (array_declarator)] @name value: (_) @value)) @variable
(enumerator name: (_) @name value: (_) @value) @constant
(preproc_def name: (_) @name value: (_) @value) @constant
(function_definition type: (_) @type declarator: [
  (function_declarator declarator: (identifier) @name)
  (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))]
  body: (_) @body) @function
(expression_statement (call_expression function: (_) @callee arguments:
  (argument_list . [(identifier) (string_literal)] @name . (_) @value) @body)) @macro
(type_definition type: (_) @type declarator: (type_identifier) @name) @alias
(call_expression function: (identifier) @callee arguments:
  (argument_list . [(identifier) (subscript_expression)] @name . (_) . (_)) @arguments) @bounds
(call_expression function: [(identifier) (field_expression)] @callee arguments: (argument_list
  . (string_literal) . [(identifier) @name (pointer_expression argument: (_) @name)]
  . (_) . (_)) @arguments) @bounds
(initializer_list . (string_literal) . (pointer_expression argument: (_) @name) . (_) . (_)
  ) @arguments @bounds

(struct_specifier name: (_) @name) @scope
(compound_statement) @block

[(number_literal) (unary_expression ["-" "+"] (number_literal))] @number
[(parenthesized_expression) (return_statement)] @inner
(cast_expression value: (_) @value) @same
(binary_expression left: (call_expression) @value operator: "/" right: (number_literal)) @same
(initializer_list) @list
(initializer_list . (string_literal) @name . (_) @value) @row
(argument_list) @given
(argument_list . (string_literal) @name . (_) @value) @row
(initializer_pair designator: (_) @name value: (_) @value) @field
(call_expression function: (_) @callee arguments: (argument_list) @arguments
  (#not-match? @callee "\\.|->")) @call
(compound_literal_expression type: (_) @callee value: (_) @arguments) @call
(preproc_arg) @text
(array_declarator declarator: (_) @value) @array_of

[(array_declarator) (declaration) (enum_specifier) (parameter_list) (sizeof_expression)
  (struct_specifier) (type_descriptor) (preproc_if) (preproc_ifdef) (preproc_def)
  (preproc_function_def) (preproc_call) (preproc_include)] @bare
(subscript_expression (_) . (_) @bare)
(for_statement [initializer: (_) condition: (_) update: (_)] @bare)
[(case_statement value: (_) @bare) (while_statement condition: (_) @bare)]

(comment) @aside
(array_declarator size: (_) @length)
[(subscript_designator (identifier) @length) (case_statement value: (identifier) @length)]
(binary_expression left: (number_literal) operator: "<<" right: (identifier) @length)
(binary_expression operator: [">>" "%"]
  right: [(identifier) @length (field_expression field: (_) @length)])
"""
_MORE = "(subscript_expression index: [(identifier) @length (field_expression field: (_) @length)])"
_MARKS_OF_CPP = r"""
(declaration type: (_) @type declarator: (init_declarator
  declarator: (qualified_identifier) @name value: (_) @value)) @variable
(field_declaration type: (_) @type declarator: [(field_identifier) (array_declarator)] @name
  . default_value: (_) @value) @variable
(function_definition type: (_)? @type declarator: [
  (function_declarator declarator: [(field_identifier) (qualified_identifier)] @name)
  (pointer_declarator declarator: (function_declarator declarator:
    [(field_identifier) (qualified_identifier)] @name))]
  body: (_) @body) @function
(declaration type: (_) @type declarator: (init_declarator
  declarator: (reference_declarator (identifier) @name) value: (_) @value)) @variable
(alias_declaration name: (_) @name type: (_) @type) @alias
(field_initializer . (field_identifier) @name
  . [(argument_list . (_) @value .) (initializer_list . (_) @value .)]) @variable
[(namespace_definition name: (_) @name) (class_specifier name: (_) @name)] @scope
(qualified_identifier name: (_) @value) @same
[(class_specifier) (static_assert_declaration) (subscript_argument_list) (template_argument_list)]
  @bare
(subscript_argument_list
  . [(identifier) @length (qualified_identifier) @length (field_expression field: (_) @length)] .)
(template_argument_list (type_descriptor)
  [(identifier) (qualified_identifier) (binary_expression)] @length)
(template_argument_list (type_descriptor) (type_descriptor type: (_) @length) .)
(call_expression function: (identifier) @callee arguments:
  (argument_list . (qualified_identifier) @name . (_) . (_)) @arguments) @bounds
(for_range_loop [declarator: (_) right: (_)] @bare)
"""

_MACROS = re.compile(
    r"^[ \t]*(?:[A-Z][A-Z0-9_]+[ \t]+)+"
    r"(?=(?:\w+[ \t]+)*[\w:]+(?:<[^=;\n]*>)?[ \t*&]+\w+[ \t]*(?:\[[^=\n]*\][ \t]*)*=)",
    re.MULTILINE,
)
"""Macros before the type of a declaration, which a parser takes for the type."""
_BEFORE_FUNCTION = re.compile(
    r"^[ \t]*[A-Z][A-Z0-9_]+\([^()\n;{}]*\)[ \t]+(?=\w+[ \t]*\([^;{}]*\)[^;{}()=]*\{)", re.MULTILINE
)
"""A macro that stands for what is before a function's name, its type as well."""
_ROWS = r"[ \t]*\\\n(?:[ \t]*(?:\w+\([a-zA-Z_]\w*,{}[^()\n]*\)|/\*[^\n]*\*/)?[ \t]*\\?\n)+"
_RANGED = r"(?=(?:[ \t]*[a-zA-Z_]\w*,)?(?:[ \t]*-?[\d.]+[,)]){3})"
_LISTED = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+\w+(?:"
    + _ROWS.format(r"[ \t]*-?[\d.]")
    + r"|\(\w+(?:,[ \t]*\w+)?\)"
    + _ROWS.format(_RANGED)
    + ")",
    re.MULTILINE | re.ASCII,
)
"""A macro that is a list of calls: `#define ALL PARAM(margin, 80) PARAM(depth, 7)`, one a line.

With arguments, `#define ALL(PARAM)`, the calls need ranges: others may be of anything.
"""
_TYPE_GIVEN = re.compile(r"(?<=,)[ \t]*[a-zA-Z_]\w*,(?=[ \t]*-?[\d.])", re.ASCII)
"""A type between a name and its value: `PARAM(margin, int, 80, 40, 120)`."""
_RANGED_CALL = re.compile(
    r"^[ \t]*\w+\(\w+,[ \t]*[a-zA-Z_]\w*,(?:[ \t]*-?[\d.']+,){2}[ \t]*-?[\d.']",
    re.MULTILINE | re.ASCII,
)


def _prepared(text: str) -> str:
    """The text without what a parser takes for something else; all else keeps its place."""
    text = _MACROS.sub(lambda found: " " * len(found[0]), text)
    text = _BEFORE_FUNCTION.sub(lambda found: "void".ljust(len(found[0].encode())), text)
    text = _LISTED.sub(_calls, text)
    return _RANGED_CALL.sub(lambda found: _without_type(found[0]), text)


def _calls(found: re.Match[str]) -> str:
    """The calls of a list as a file has them, each in its place."""
    head, _, calls = found[0].partition("\n")
    return " " * len(head) + "\n" + _without_type(calls).replace("\\", ";")


def _without_type(calls: str) -> str:
    return _TYPE_GIVEN.sub(lambda typed: " " * len(typed[0]), calls)


_BITS = {"char": 8, "short": 16, "int": 32, "long": 64, "long long": 64}
_FIXED = {f"int{bits}_t": bits for bits in (8, 16, 32, 64)}
_UNSIGNED = {f"unsigned {name}": bits for name, bits in _BITS.items()}
_NOTATION = Notation(
    pattern=re.compile(
        r"(?P<digits>0[xX][0-9a-fA-F']*[0-9a-fA-F]|0[bB][01']*[01]"
        r"|(?=\.?[0-9])[0-9']*(?:\.[0-9']*)?(?:[eE][+-]?[0-9]+)?)"
        r"(?P<suffix>[uUlLzZ]{1,3}|[fF])?"
    ),
    separator="'",
    suffixes={"f": "float", "u": "unsigned", "l": "long", "ll": "long long"}
    | dict.fromkeys(("ul", "lu", "ull", "llu"), "unsigned long long"),
    integers=ranges(
        signed=_BITS | _FIXED,
        unsigned={f"u{name}": bits for name, bits in _FIXED.items()}
        | _UNSIGNED
        | {"unsigned": 32, "size_t": 64},
    ),
    reals=("float", "double"),
    aliases={"long int": "long", "short int": "short", "signed": "int", "signed char": "char"},
    words=re.compile(r"(?:(?:unsigned|signed|long|short) )+(?:char|int|long|short)|\w+"),
    octal=True,
)
C = Language(
    suffixes=("c",),
    grammar=tree_sitter.Language(tree_sitter_c.language()),
    marks=_MARKS + OF_OPERATORS + _MORE,
    notation=_NOTATION,
    frame=(b"int x = ", b"\n;"),
    prepared=_prepared,
)
CPP = replace(
    C,
    suffixes=("h", "cc", "hh", "cpp", "hpp", "cxx", "hxx", "inl", "inc", "def"),
    grammar=tree_sitter.Language(tree_sitter_cpp.language()),
    marks=_MARKS + OF_OPERATORS + _MARKS_OF_CPP,
)
