"""Reads one table of a file key by key; collects all faults and raises them at the end."""

import errno
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import isfinite
from pathlib import Path

from spsa.config.document import Document, Key
from spsa.errors import MAX_FAULTS, Fault, InvalidInput

MAX_NUMBER = 1e15
"""The largest number in a file: beyond it a float cannot tell whole numbers apart."""

LONGEST_TEXT = 4096
_MAX_COMPARED = 5000
"""Names that a misspelt name is compared with."""


class Faults:
    """The faults found in one file so far."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._found: list[Fault] = []

    def __len__(self) -> int:
        return len(self._found)

    @property
    def file(self) -> str:
        return self._document.path.name

    def note(self, key: Key, name: str, found: str, remedy: str) -> None:
        """Note a fault on the line of `key`."""
        file, line = str(self._document.path), self.line(key)
        self.add(Fault(file=file, line=line, name=name, found=found, remedy=remedy))

    def add(self, fault: Fault) -> None:
        """Add a fault of the file or of a variable that overrides it; raises at MAX_FAULTS."""
        self._found.append(fault)
        if len(self._found) == MAX_FAULTS:
            self.raise_any()

    def line(self, key: Key) -> int | None:
        """The line of `key`, or of the nearest table around it that is written."""
        lines = self._document.lines
        return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)

    @property
    def found(self) -> tuple[Fault, ...]:
        """All faults in the order of the file."""
        return tuple(sorted(self._found, key=lambda fault: fault.line or 0))

    def raise_any(self) -> None:
        """Raise InvalidInput with all faults, if there are any."""
        if self._found:
            raise InvalidInput(self.found)


class Section:
    """One table. Every key that is read is a known one; `close` refuses all others.

    A missing or wrong value is noted as a fault and replaced by the default, so that reading goes
    on.
    """

    def __init__(self, faults: Faults, path: Key, table: object) -> None:
        self._faults = faults
        self._path = path
        self._known: set[str] = set()
        self._wrong = 0
        self._table: Mapping[str, object] = table if isinstance(table, dict) else {}
        if not isinstance(table, dict):
            self.fault(None, f"{shown(table)} is not a table", f"write [{self.name}] and its keys")

    @property
    def name(self) -> str:
        """Its name in messages: its path, or the file's name for the top level."""
        return ".".join(self._path) or self._faults.file

    @property
    def sound(self) -> bool:
        """Whether this section has no faults so far."""
        return self._wrong == 0

    def fault(self, key: str | None, found: str, remedy: str) -> None:
        self._wrong += 1
        path = self._path if key is None else (*self._path, key)
        self._faults.note(path, self.name, found, remedy)

    def fault_elsewhere(self, origin: str, found: str, remedy: str) -> None:
        """A fault of a variable or an option, called `origin`, that overrides this section."""
        self._wrong += 1
        self._faults.add(Fault(file=origin, line=None, name=self.name, found=found, remedy=remedy))

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the table, in the order of the file."""
        return tuple(self._table)

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def line(self, key: str) -> int | None:
        """The line of the key in the file."""
        return self._faults.line((*self._path, key))

    def get(self, key: str) -> object:
        """The raw value, None if the key is absent."""
        self._known.add(key)
        return self._table.get(key)

    def section(self, key: str) -> "Section":
        """The table `key` inside this one, empty if it is absent."""
        return Section(
            self._faults, (*self._path, key), {} if self.get(key) is None else self.get(key)
        )

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        least: float = -MAX_NUMBER,
        above: float | None = None,
        most: float = MAX_NUMBER,
    ) -> float:
        """A number from `least` to `most`, greater than `above`; required without a default."""
        value = self._present(key, default, "a number")
        if value is None:
            return default or 0.0
        number = as_number(value)
        if number is None:
            self.fault(
                key, f"{key} = {shown(value)} is not a finite number", f"write {key} = 1.5, say"
            )
        elif above is not None and number <= above:
            self.fault(key, f"{key} = {shown(value)} is too small", f"use more than {above:g}")
        elif number < least:
            self.fault(key, f"{key} = {shown(value)} is too small", f"use at least {least:g}")
        elif number > most:
            self.fault(key, f"{key} = {shown(value)} is too large", f"use at most {most:g}")
        else:
            return value if isinstance(value, int) else number
        return default or 0.0

    def whole(
        self, key: str, default: int | None = None, *, least: int = 0, most: int = 2**63 - 1
    ) -> int:
        """A whole number from `least` to `most`; required if there is no default."""
        value = self._present(key, default, "a whole number")
        if value is None:
            return default or 0
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(
                key,
                f"{key} = {shown(value)} is not a whole number",
                f"write {key} = {max(least, 0) + 1}, say",
            )
        elif value < least:
            self.fault(key, f"{key} = {shown(value)} is too small", f"use at least {least}")
        elif value > most:
            limit = "less than 2^63" if most == 2**63 - 1 else f"at most {most}"
            self.fault(key, f"{key} = {shown(value)} is too large", f"use {limit}")
        else:
            return value
        return default or 0

    def text(self, key: str, default: str = "", *, lines: bool = False) -> str:
        """A printable text on one line, or where `lines` is set on several."""
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, str) and is_plain(value.translate(_BREAKS) if lines else value):
            return value
        limit = f" of at most {LONGEST_TEXT} printable characters{'' if lines else ' on one line'}"
        kind = f"a text{limit if isinstance(value, str) else ''}"
        self.fault(key, f"{key} = {shown(value)} is not {kind}", f'write {key} = "..."')
        return default

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self.get(key)
        if value is None:
            return default
        if isinstance(value, list) and all(isinstance(v, str) and is_plain(v) for v in value):
            return tuple(value)
        self.fault(
            key, f"{key} = {shown(value)} is not a list of texts", f'write {key} = ["...", "..."]'
        )
        return default

    def path(self, key: str, folder: Path, default: str = "") -> Path:
        """The absolute path that a text names, from `folder`; the file need not exist."""
        name = self.text(key, default)
        try:
            path = folder / Path(name).expanduser()
            path.stat()
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                self.fault(key, f"{key} = {shown(name)} is too long for a path", "shorten it")
                return folder
        except RuntimeError:
            self.fault(key, f"{key} = {shown(name)} is in no user's home", "name another path")
            return folder
        try:
            return path.resolve()
        except RuntimeError:  # a circle of links; opening the path reports it
            return path

    def flag(self, key: str, default: bool) -> bool:
        value = self.get(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self.fault(key, f"{key} = {shown(value)} is neither true nor false", f"write {key} = true")
        return default

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        value = self.get(key)
        if value is None or (isinstance(value, str) and value in choices):
            return default if value is None else str(value)
        listed = ", ".join(f'"{choice}"' for choice in choices)
        self.fault(key, f"{key} = {shown(value)} is not known", f"use one of {listed}")
        return default

    def close(self) -> None:
        """Note every key that was not read."""
        for key in self._table:
            if key not in self._known:
                self.fault(key, f"unknown key {key!r}", suggestion(key, self._known))

    def _present(self, key: str, default: object, kind: str) -> object:
        value = self.get(key)
        if value is None and default is None:
            self.fault(key, f"{key} is missing", f"give it {kind}: {key} = ...")
        return value


def as_number(value: object) -> float | None:
    """`value` as a finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) else None


_BREAKS = {ord(mark): " " for mark in "\r\n\t"}


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


def suggestion(word: str, known: Sequence[str] | set[str]) -> str:
    """A remedy for an unknown word: the closest known one, or all of them."""
    close = get_close_matches(word, sorted(known)[:_MAX_COMPARED], n=1)
    return f'did you mean "{close[0]}"?' if close else f"use one of {', '.join(sorted(known))}"
