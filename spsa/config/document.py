"""A TOML file: its values, the line of each of them, and the faults that are found in it."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from pathlib import Path

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.files import content

Key = tuple[str, ...]

LONGEST_TEXT = 4096
_MAX_COMPARED = 5000
"""Names that a misspelt name is compared with."""

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


class Faults:
    """The faults found in one file so far."""

    def __init__(self, document: Document, origins: Mapping[Key, str] | None = None) -> None:
        """`origins` says where the values of keys come from that override the file."""
        self._document = document
        self._origins = origins or {}
        self._found: list[Fault] = []

    @property
    def found(self) -> tuple[Fault, ...]:
        """All faults in the order of the file."""
        return tuple(sorted(self._found, key=lambda fault: fault.line or 0))

    def note(self, key: Key, found: str, remedy: str) -> None:
        """Note a fault on the line of `key`, under the name of its table; () is the whole file.

        Raises InvalidInput when there are MAX_FAULTS.
        """
        name = ".".join(key[:-1] or key) or self._document.path.name
        file, line = self._origins.get(key), None
        if file is None:
            file, line = str(self._document.path), self.line(key)
        self._found.append(Fault(file=file, line=line, name=name, found=found, remedy=remedy))
        if len(self._found) == MAX_FAULTS:
            self.raise_any()

    def line(self, key: Key) -> int | None:
        """The line of `key`, or of the nearest table around it that is written."""
        lines = self._document.lines
        return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)

    def raise_any(self) -> None:
        """Raise InvalidInput with all faults, if there are any."""
        if self._found:
            raise InvalidInput(self.found)


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


def is_plain(text: str) -> bool:
    """Whether a text can go to a terminal, a command line or an engine unchanged."""
    return text.isprintable() and len(text) <= LONGEST_TEXT


def shown(value: object) -> str:
    """A value for a message: as TOML writes it, shortened."""
    text = (
        str(value).lower()
        if isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else _decimal(value)
    )
    return text if len(text) <= 40 else f"{text[:37]}..."


def _decimal(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # a hexadecimal number of thousands of decimal digits
        return "a number of thousands of digits"


def suggestion(word: str, known: Iterable[str]) -> str:
    """A remedy for an unknown word: the closest known one, or all of them."""
    names = sorted(known)
    close = get_close_matches(word, names[:_MAX_COMPARED], n=1)
    return f'did you mean "{close[0]}"?' if close else f"use one of {', '.join(names)}"


def as_number(value: object) -> float | None:
    """`value` as a finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None
