"""Reads a file of any known format as params.toml would be read: with all faults, by line."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spsa.config.document import Document, file_text
from spsa.config.formats.lines import COLUMNS, LineFault, Lines, read_lines
from spsa.config.formats.objects import NotRead, chess_tuning_tools, fishtest_run, weather_factory
from spsa.config.formats.peer import PeerParameter, PeerTune, Plan, tables_of
from spsa.config.section import Faults
from spsa.config.space import space_of
from spsa.core.params import Space
from spsa.errors import Fault, InvalidInput

FORMATS = ("fishtest", "openbench", "weather-factory", "chess-tuning-tools", "json")
_VARIANTS = {"tune": "fishtest", "fishtest-run": "fishtest", "digest": "openbench"}
_UNKNOWN = f"name its format: {', '.join(FORMATS)}"
_OBJECTS = {"fishtest-run": fishtest_run, "chess-tuning-tools": chess_tuning_tools}


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A space, and the tune of a peer that it was read from; None for our own formats."""

    format: str
    space: Space
    tune: PeerTune | None


def read_file(path: Path, kind: str | None, plan: Plan) -> Imported:
    """Read a file of the format `kind`, or of the one that it looks like.

    A format may have variants: a file of Fishtest is a list, the same among other lines of an
    engine, or a run as JSON; one of OpenBench is a list, or the digest of a running tune.

    Raises InvalidInput with all its faults, in the words of params.toml.
    """
    text = file_text(path)
    variant = guessed(text)
    found = kind or _VARIANTS.get(variant or "", variant)
    if found is None:
        raise _refused(path, None, path.name, "is of no known format", _UNKNOWN)
    if found == "json":
        own = Document(path, text, _object(path, text), {})
        return Imported(format=found, space=space_of(own), tune=None)
    is_of_it = variant is not None and _VARIANTS.get(variant) == found
    tune = _tune(path, text, variant if variant and is_of_it else found, plan)
    lines = {p.name: p.line for p in tune.parameters}
    tables = tables_of(tune)
    document = Document(
        path, text, tables, {(name,): lines[str(t["option"])] for name, t in tables.items()}
    )
    return Imported(format=found, space=space_of(document), tune=tune)


def gains_file(path: Path) -> Mapping[str, Any]:
    """weather-factory's spsa.json."""
    return _object(path, file_text(path))


def guessed(text: str) -> str | None:
    """The format of a text: by any line of OpenBench, else by the first that is no greeting."""
    if text.lstrip().startswith("{"):
        return _guessed_object(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rows = [[f.strip().lower() for f in line.split(",")] for line in lines if line[0] != "#"]
    listed = [row for row in rows if len(row) > 1]
    if not listed:
        return None
    if any(row[1] in ("int", "float") for row in listed):
        return "openbench"
    return _guessed_row(listed[0], alone=len(listed) == len(rows))


def _guessed_row(row: list[str], *, alone: bool) -> str | None:
    if len(row) == len(COLUMNS["openbench"]):
        return "openbench"
    if len(row) == len(COLUMNS["digest"]):
        return "digest"
    return "fishtest" if alone else "tune"


def _guessed_object(text: str) -> str | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return "json"  # reading it tells where it is wrong
    if "args" in data:
        return "fishtest-run"
    if "parameter_ranges" in data:
        return "chess-tuning-tools"
    tables = [table for table in data.values() if isinstance(table, dict)]
    peers = "uci_params" in data or any("min_value" in table for table in tables)
    return "weather-factory" if peers else "json"


def _tune(path: Path, text: str, kind: str, plan: Plan) -> PeerTune:
    if kind == "weather-factory" or kind in _OBJECTS:
        data = _object(path, text)
        with _named(path):
            read = _OBJECTS.get(kind)
            return weather_factory(data, plan) if read is None else read(data)
    return PeerTune(parameters=_parameters(path, text, kind), schedule=plan.schedule)


def _parameters(path: Path, text: str, kind: str) -> tuple[PeerParameter, ...]:
    faults = Faults(Document(path, text, {}, {}))
    found: dict[str, PeerParameter] = {}
    for one in _read(kind, enumerate(text.splitlines(), start=1)):
        match one:
            case LineFault(line, name, wrong, remedy):
                _note(faults, path, line, name, wrong, remedy)
            case PeerParameter() if one.name in found:
                wrong = f"line {found[one.name].line} has it already"
                _note(faults, path, one.line, one.name, wrong, "keep one of the two lines")
            case PeerParameter():
                found[one.name] = one
    faults.raise_any()
    return tuple(found.values())


def _read(kind: str, lines: Lines) -> Iterator[PeerParameter | LineFault]:
    if kind == "tune":  # among the other lines that the engine writes at its start
        listed = [(n, text) for n, text in lines if text.count(",") + 1 == len(COLUMNS["fishtest"])]
        return read_lines(COLUMNS["fishtest"], listed)
    return read_lines(COLUMNS[kind], lines)


def _object(path: Path, text: str) -> Mapping[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refused(path, error.lineno, path.name, f"is not JSON: {error.msg}", _FIX) from None
    except (ValueError, RecursionError):
        raise _refused(path, None, path.name, "is no JSON that can be read", _FIX) from None
    if not isinstance(data, dict):
        raise _refused(path, None, path.name, "is no JSON object", "write {...}")
    return data


def _note(faults: Faults, path: Path, line: int, name: str, found: str, remedy: str) -> None:
    faults.add(Fault(file=str(path), line=line, name=name, found=found, remedy=remedy))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Add the file to what is wrong with a part of it."""
    try:
        yield
    except NotRead as wrong:
        raise _refused(path, wrong.line, wrong.name, wrong.found, wrong.remedy) from None


def _refused(path: Path, line: int | None, name: str, found: str, remedy: str) -> InvalidInput:
    return InvalidInput([Fault(file=str(path), line=line, name=name, found=found, remedy=remedy)])


_FIX = "correct it, or name the format that it has"
