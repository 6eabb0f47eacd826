"""A TOML file: its values, and the line of each of them."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from spsa.errors import Fault, InvalidInput
from spsa.files import content

Key = tuple[str, ...]

_LANGUAGE = Language(tree_sitter_toml.language())
_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_LONG_NUMBER = re.compile(r"[\da-fA-F_]{1000}")
_MAX_BYTES = 2**22  # bytes; TOML is read at a megabyte a second
_DEEPEST = 16
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*(?:{_PART}[ \t]*\.[ \t]*){{{_DEEPEST}}}")


@dataclass(frozen=True, slots=True)
class Document:
    """A file that parses. `lines` maps the path of every table and key to its line, from 1."""

    path: Path
    text: str
    data: Mapping[str, object]
    lines: Mapping[Key, int]


def read_document(path: Path) -> Document:
    """Read a TOML file. Raises InvalidInput if it is missing or not valid TOML."""
    text = file_text(path)
    if found := _DEEP_KEY.search(text):  # which would take tomllib a time quadratic in its parts
        line = text.count("\n", 0, found.end()) + 1
        raise _unreadable(path, "has a key of too many parts", "write plain tables", line)
    try:
        return Document(path, text, _data(path, text), _lines(text))
    except RecursionError:
        raise _unreadable(path, "is nested too deeply", "write plain tables") from None


def file_text(path: Path) -> str:
    try:
        data = content(path, _MAX_BYTES)
    except FileNotFoundError:
        raise _unreadable(
            path, "does not exist", "write it, or let `spsa-master init` do it"
        ) from None
    except IsADirectoryError:
        raise _unreadable(path, "is a folder", "name the file in it") from None
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}", "make it readable") from None
    if data.startswith(b"\xef\xbb\xbf"):
        raise _unreadable(path, "starts with a byte order mark", "save it as UTF-8 without one", 1)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unreadable(path, "is not UTF-8", "save it as UTF-8", line) from None


def _data(path: Path, text: str) -> dict[str, object]:
    try:
        data = tomllib.loads(text)
        repr(data)  # a hexadecimal number may be read that Python refuses to print
    except ValueError as error:  # TOMLDecodeError, or what int() and repr() say of 5000 digits
        line = _line_of(text, str(error))
        message = _LINE.sub("", str(error)).strip()
        raise _unreadable(path, f"is not TOML: {message}", "correct this line", line) from None
    return data


def _line_of(text: str, message: str) -> int | None:
    """The line that a message names; for an error of int(), the line of the long number."""
    found = _LINE.search(message)
    if found is None:
        at = _LONG_NUMBER.search(text)
        return at and text.count("\n", 0, at.start()) + 1
    return int(found[1]) if found[1] else max(1, len(text.rstrip().split("\n")))


def _unreadable(path: Path, found: str, remedy: str, line: int | None = None) -> InvalidInput:
    return InvalidInput(
        [Fault(file=str(path), line=line, name=path.name, found=found, remedy=remedy)]
    )


def _lines(text: str) -> dict[Key, int]:
    root = Parser(_LANGUAGE).parse(text.encode()).root_node
    return dict(reversed([*_entries(root, ())]))  # reversed: the first of several wins


def _entries(node: Node, outer: Key) -> Iterator[tuple[Key, int]]:
    """Every key below `node`; `outer` is the path of the table around it."""
    for child in node.named_children:
        if child.type not in ("pair", "table", "table_array_element"):
            continue
        key = outer + _key(child.named_children[0])
        yield from ((key[:depth], child.start_point.row + 1) for depth in range(len(key), 0, -1))
        inner = [value for value in child.named_children[1:] if value.type == "inline_table"]
        for table in inner or ([] if child.type == "pair" else [child]):
            yield from _entries(table, key)


def _key(node: Node) -> Key:
    if node.type == "dotted_key":
        return tuple(name for part in node.named_children for name in _key(part))
    text = (node.text or b"").decode()
    if node.type == "quoted_key":
        return (next(iter(tomllib.loads(f"{text} = 0"))),)
    return (text,)
