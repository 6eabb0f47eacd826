"""A TOML file: its values, the line of each of them, and the faults that are found in it."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from spsa.core.json_values import is_number
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.files import content

Key = tuple[str, ...]

_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
_MAX_BYTES = 2**22  # bytes; TOML is read at a megabyte a second
_PART = r"""[\w-]+|"[^"]*"|'[^']*'"""
_HEADER = re.compile(r"""\s*(\[\[?)((?:[\w.\s-]|"[^"]*"|'[^']*')+)\]\]?""")
_KEY = re.compile(rf"\s*((?:{_PART})(?:\s*\.\s*(?:{_PART}))*)\s*=")


Found = tuple[Key, str, str]
"""The path of a key, what was found, and what would be right; () is the path of the whole file."""


def nth(number: int) -> str:
    """The part of a path for a table, from 0, of an array of tables."""
    return f"#{number}"


@dataclass(frozen=True, slots=True)
class Document:
    """A file that parses. `lines` maps the path of a table or key to its line, from 1."""

    path: Path
    text: str
    data: Mapping[str, object]
    lines: Mapping[Key, int]

    def faults(self, found: Iterable[Found]) -> tuple[Fault, ...]:
        """At most MAX_FAULTS in the order of the file, each under the name of its table."""
        faults = (
            Fault(
                file=str(self.path),
                line=self._line(key),
                name=".".join(p for p in key[:-1] or key if p[:1] != "#") or self.path.name,
                found=what,
                remedy=remedy,
            )
            for key, what, remedy in islice(found, MAX_FAULTS)
        )
        return tuple(sorted(faults, key=lambda fault: fault.line or 0))

    def _line(self, key: Key) -> int | None:
        """The line of `key`, or of the nearest table around it that is written."""
        around = (key[:n] for n in range(len(key), 0, -1))
        return next((self.lines[outer] for outer in around if outer in self.lines), None)


def refused(path: Path, key: Key, found: str, remedy: str) -> InvalidInput:
    """The error for what was found at a key of a file that was read before."""
    return InvalidInput(read_document(path).faults([(key, found, remedy)]))


def read_document(path: Path) -> Document:
    """Read a TOML file. Raises InvalidInput if it is missing or not valid TOML."""
    text = file_text(path)
    try:
        return Document(path, text, tomllib.loads(text), _lines(text))
    except RecursionError:
        raise InvalidInput.of(
            path, path.name, "is nested too deeply", "write plain tables"
        ) from None
    except ValueError as error:  # TOMLDecodeError, or what int() says of 5000 digits
        found = _LINE.search(str(error))
        line = None if found is None else int(found[1] or len(text.rstrip().split("\n")))
        said, remedy = (line and _second_table(text, line)) or (
            f"is not TOML: {_LINE.sub('', str(error)).strip()}",
            "correct this line",
        )
        raise InvalidInput.of(path, path.name, said, remedy, line) from None


def _second_table(text: str, number: int) -> tuple[str, str] | None:
    """What is said of a header in this line, from 1, if a line above begins the same table."""
    *headers, this = (_HEADER.match(line) for line in text.split("\n")[:number])
    for before, header in enumerate(headers, start=1):
        if this and header and _parts(header[2]) == _parts(this[2]) and "[" in (header[1], this[1]):
            found = f"line {before} has {header[0].strip()}, and line {number} {this[0].strip()}"
            is_several = this[2].strip() == "time_control"
            several = "write [[time_control]] in both lines"
            return found, several if is_several else "write all its keys under one of them"
    return None


def file_text(path: Path) -> str:
    """The text of a file. Raises InvalidInput where there is none."""
    try:
        return content(path, _MAX_BYTES).decode("utf-8-sig")  # Notepad writes a mark
    except FileNotFoundError:
        remedy = "write it, or let `spsa-master init` do it"
        raise InvalidInput.of(path, path.name, "does not exist", remedy) from None
    except OSError as error:
        raise InvalidInput.of(
            path, path.name, f"cannot be read: {error.strerror}", "name a file"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidInput.of(path, path.name, "is not UTF-8", "save it as UTF-8", line) from None


def _lines(text: str) -> dict[Key, int]:
    """The line of each key that begins one, and of the tables around it; the first one wins."""
    lines: dict[Key, int] = {}
    outer: Key = ()
    tables: Counter[Key] = Counter()  # of each array of tables
    for number, line in enumerate(text.split("\n"), start=1):
        header, found = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            outer = key = _parts(header[2])
            if header[1] == "[[":
                outer = key = (*key, nth(tables[key]))
                tables[key[:-1]] += 1
        elif found is not None:
            key = outer + _parts(found[1])
        else:
            continue
        for depth, _ in enumerate(key, start=1):
            lines.setdefault(key[:depth], number)
    return lines


def _parts(written: str) -> Key:
    return tuple(part.strip("\"'") for part in re.findall(_PART, written))


def shown(value: object) -> str:
    """A value for a message: as TOML writes it, shortened."""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    if isinstance(value, bool | list):
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


def as_number(value: Any) -> float | None:
    """`value` as a finite float, or None."""
    return float(value) if is_number(value) else None
