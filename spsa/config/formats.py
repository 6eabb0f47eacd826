"""The formats of other tuners, read into spaces and written from them.

    fishtest         name,start,min,max,c_end,r_end; also among the lines that TUNE() prints
    openbench        name, int|float, start, min, max, c_end, r_end; also the digest of a tune:
                     Name,Curr,Start,Min,Max,C,C_end,R,R_end
    JSON             see `object_formats`

Fishtest and OpenBench count in perturbations. `c_end` is the perturbation of the last planned
iteration, which is one step here, so that a parameter keeps its size and its learning rate:

    step = c_end,   c_end here = 1,   r_end here = r_end

Their plans are counted in games. c_k and R_k depend on k / N and A / N alone, so they are the same
after the same games. `docs/formats.md` derives it.

Sources: spsa_workflow.py of Fishtest; spsa_utils.py of OpenBench.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from spsa.config.document import Document, Key, as_number, file_text, shown
from spsa.config.object_formats import (
    OWN,
    TUNING_TOOLS,
    WEATHER_FACTORY,
    Table,
    read_objects,
    written_objects,
)
from spsa.config.projection import params_document
from spsa.config.space import space_of
from spsa.core.params import Number, Parameter, Space
from spsa.errors import MAX_FAULTS, Fault, InvalidInput

_USUAL_R_END = 0.002
_MIN_C_END = 0.5  # of a whole number: below, plus and minus are often the same number

_COLUMNS: Mapping[str, Sequence[str]] = {
    "fishtest": ("name", "start", "min", "max", "c_end", "r_end"),
    "openbench": ("name", "int|float", "start", "min", "max", "c_end", "r_end"),
}
_DIGEST = ("name", "curr", "start", "min", "max", "c", "c_end", "r", "r_end")

EXPORTED = (*_COLUMNS, WEATHER_FACTORY, TUNING_TOOLS, OWN)
_KNOWN = f"name a file of {', '.join(EXPORTED)}"
_OF_WHOLE_NUMBERS = ("fishtest", WEATHER_FACTORY)
_NUMBER = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Imported:
    """The space of a peer's file, and the r_end of each parameter, if the format has one.

    `raised` are those whose c_end was too small for a step.
    """

    format: str
    space: Space
    r_ends: Mapping[str, float] = field(default_factory=dict)
    raised: Sequence[str] = ()

    @property
    def r_end(self) -> float:
        """The r_end of the tune, the median where its parameters differ."""
        return median(self.r_ends.values()) if self.r_ends else _USUAL_R_END

    @property
    def notes(self) -> Iterator[str]:
        """How the numbers were mapped, and what is not the same here."""
        if self.format == TUNING_TOOLS:
            yield "the file has ranges alone: write the engine's values where the middle is wrong"
        if self.r_ends:
            yield "step = c_end: the last planned perturbation is one step"
        if self.raised:
            yield f"c_end is below {_MIN_C_END}, so the step is that: {', '.join(self.raised)}"
        if others := [name for name, r_end in self.r_ends.items() if r_end != self.r_end]:
            yield (
                f"r_end differs: a run has one, and {self.r_end:g} is the median; another r_end "
                f"had {', '.join(others)}"
            )


@dataclass(frozen=True, slots=True)
class _Line:
    """A parameter of a list: its table in params.toml, and what has no key there."""

    number: int
    table: Table
    r_end: float
    is_raised: bool


def read_file(path: Path) -> Imported:
    """Read a file of a peer.

    Raises InvalidInput with all its faults, in the words of params.toml.
    """
    text = file_text(path)
    if text.lstrip().startswith("{"):
        kind, tables = read_objects(path, text)
        own = Document(path, text, tables, {})
        return Imported(kind, space_of(own if kind == OWN else _document(path, text, tables)))
    rows = [(line, row) for line, row in _rows(text) if len(row) > 1]
    if not rows:
        raise InvalidInput.of(path, path.name, "is of no known format", _KNOWN)
    kind, columns = _columns([row for _, row in rows])
    each = _lines(path, rows, columns)
    tables = {name: one.table for name, one in each.items()}
    numbers = {name: one.number for name, one in each.items()}
    return Imported(
        kind,
        space_of(_document(path, text, tables, numbers)),
        {name: one.r_end for name, one in each.items()},
        [name for name, one in each.items() if one.is_raised],
    )


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is neither empty nor a comment, and its number from 1."""
    for line, row in enumerate(text.splitlines(), start=1):
        if row.strip() and not row.lstrip().startswith("#"):
            yield line, [field.strip() for field in row.split(",")]


def _columns(rows: Sequence[Sequence[str]]) -> tuple[str, Sequence[str]]:
    """The format of some lines, and its columns."""
    if len(rows[0]) == len(_DIGEST):
        return "openbench", _DIGEST
    typed = any(row[1].lower() in ("int", "float") for row in rows)
    is_openbench = typed or len(rows[0]) == len(_COLUMNS["openbench"])
    kind = "openbench" if is_openbench else "fishtest"
    return kind, _COLUMNS[kind]


def _lines(
    path: Path, rows: Sequence[tuple[int, Sequence[str]]], columns: Sequence[str]
) -> dict[str, _Line]:
    """The lines by their names, without the header."""
    found: dict[str, _Line] = {}
    faults: list[Fault] = []
    for number, row in rows:
        name = row[0]
        if [text.lower() for text in row] == list(columns):
            continue
        try:
            if name in found:
                raise _Refused(f"line {found[name].number} has it already", "keep one of the two")
            found[name] = _line(number, row, columns)
        except _Refused as refused:
            said, remedy = refused.args
            fault = Fault(
                file=str(path), line=number, name=name or "line", found=said, remedy=remedy
            )
            faults.append(fault)
    if faults:
        raise InvalidInput(faults[:MAX_FAULTS])
    return found


class _Refused(Exception):
    """What was found in a line, and what would be right."""


def _line(line: int, row: Sequence[str], columns: Sequence[str]) -> _Line:
    remedy = f"write {','.join(columns)}"
    if len(row) != len(columns):
        raise _Refused(f"{len(row)} fields instead of {len(columns)}", remedy)
    said = dict(zip(columns, row, strict=True))
    # the digest has no types, and writes whole numbers without decimals
    is_real = "curr" in said and not said["start"].lstrip("+-").isdigit()
    kind = said.pop("int|float", "float" if is_real else "int")
    if kind not in ("int", "float"):
        raise _Refused(f"{shown(kind)} is no type", "write int or float")
    numbers = {
        column: _number(column, text, remedy) for column, text in said.items() if column != "name"
    }
    is_raised = kind == "int" and 0 < numbers["c_end"] < _MIN_C_END
    low, high = (
        int(n) if kind == "int" and n == int(n) else n for n in (numbers["min"], numbers["max"])
    )
    table: Table = {
        "value": numbers.get("curr", numbers["start"]),
        "min": low,
        "max": high,
        "step": _MIN_C_END if is_raised else numbers["c_end"],
        "type": kind,
    }
    return _Line(line, table, numbers["r_end"], is_raised)


def _number(column: str, text: str, remedy: str) -> Number:
    """A finite decimal number, whole if it is written so."""
    if not _NUMBER.fullmatch(text) or (number := as_number(float(text))) is None:
        raise _Refused(f"{column} {shown(text)} is not a number", remedy)
    return int(text) if text.lstrip("+-").isdigit() else number


def _document(
    path: Path, text: str, tables: Mapping[str, Table], lines: Mapping[str, int] | None = None
) -> Document:
    """What params.toml would be: a table for each option."""
    taken: set[str] = set()
    named: dict[str, object] = {}
    places: dict[Key, int] = {}
    for option, table in tables.items():
        name = _free_name(option, taken)
        named[name] = {**table, "option": option}
        if lines:
            places[(name,)] = lines[option]
    return Document(path, text, named, places)


def _free_name(option: str, taken: set[str]) -> str:
    """A name for the table: the option's own where it can be one; case does not tell two apart."""
    plain = re.sub(r"\W", "_", option, flags=re.ASCII)[:90]
    if not plain.isidentifier() or plain == "constraints":
        plain = f"option_{plain}"
    numbered = (f"{plain}_{n}" for n in range(2, len(taken) + 3))
    free = next(each for each in (plain, *numbered) if each.upper() not in taken)
    taken.add(free.upper())
    return free


def spsa_tables(
    r_end: float, games: int, played: int, games_per_iteration: int
) -> dict[str, dict[str, object]]:
    """[games] and [spsa] with which a tune of so many games, some of them played, goes on here."""
    done = round(played / games_per_iteration)
    planned = games / games_per_iteration
    return {
        "games": {"games_per_iteration": games_per_iteration},
        "spsa": {
            "algorithm": "fishtest",
            "max_iterations": round(planned) - done,
            "played": done,
            "r_end": max(r_end, 0.000001),
            "c_end": 1.0,
            "A": 0.1 * planned,
            "alpha": 0.602,
            "gamma": 0.101,
        },
    }


def exported(kind: str, space: Space, rule: Mapping[str, object], file: str) -> str:
    """The active parameters as options of a peer, in the engine's units; `file` has the space.

    JSON has all of params.toml instead. Raises InvalidInput for fractions where the format of the
    peer has whole numbers alone.
    """
    if kind == OWN:
        return f"{json.dumps(params_document(space), indent=2)}\n"
    real = [p for p in space.active if not _is_whole(p)]
    if real and kind in _OF_WHOLE_NUMBERS:
        found = "is no whole number, and this format has no others"
        remedy = "give it a scale, or export it to openbench"
        raise InvalidInput(
            [Fault(file=file, line=p.line, name=p.name, found=found, remedy=remedy) for p in real]
        )
    rows = {p.option: _row(p, rule) for p in space.active}
    if kind not in _COLUMNS:
        return written_objects(kind, rows)
    comma = ", " if kind == "openbench" else ","
    fields = ([str(row[column]) for column in _COLUMNS[kind]] for row in rows.values())
    return "".join(f"{comma.join(each)}\n" for each in fields)


def _is_whole(p: Parameter) -> bool:
    return p.integral or p.scale is not None


def _row(p: Parameter, rule: Mapping[str, object]) -> dict[str, object]:
    """What any format has of a parameter."""
    low, high = (_times(p, bound) for bound in (p.minimum, p.maximum))
    value, c_end = (
        _times(p, number) for number in (p.value, p.step * (as_number(rule.get("c_end")) or 1.0))
    )
    return {
        "name": p.option,
        "int|float": "int" if _is_whole(p) else "float",
        "is_whole": _is_whole(p),
        "start": value,
        "value": value,
        "min": round(low) if _is_whole(p) else low,
        "max": round(high) if _is_whole(p) else high,
        "c_end": c_end,
        "step": c_end,
        "r_end": as_number(rule.get("r_end")) or _USUAL_R_END,
    }


def _times(p: Parameter, value: float) -> Number:
    """The number that the engine gets, as a person would write it: 0.29 * 100 is 29."""
    product = value if p.scale is None else round(value * p.scale, 9)
    return int(product) if product == int(product) else product
