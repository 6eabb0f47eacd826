"""Files of one parameter a line, as Fishtest and OpenBench have them.

Sources: parse_spsa_params of Fishtest's server/fishtest/spsa_workflow.py; spsa_utils.py of
OpenBench.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spsa.config.document import as_number, shown
from spsa.config.peer import File, PeerParameter, PeerTune
from spsa.core.params import Number
from spsa.errors import MAX_FAULTS, Fault, InvalidInput

FISHTEST = ("name", "start", "min", "max", "c_end", "r_end")
OPENBENCH = ("name", "int|float", "start", "min", "max", "c_end", "r_end")
DIGEST = ("name", "curr", "start", "min", "max", "c", "c_end", "r", "r_end")
"""The columns of a line; of OpenBench also those of the table that shows a running tune."""

_NUMBER = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?", re.ASCII)


def read_lines(columns: Sequence[str], file: File, *, among_others: bool = False) -> PeerTune:
    """A parameter for each line with these columns; `among_others`: other lines are ignored."""
    tables: dict[str, Mapping[str, object]] = {}
    lines: dict[str, int] = {}
    r_ends: dict[str, float] = {}
    faults: list[Fault] = []
    for line, fields in rows(file.text):
        is_header = [field.lower() for field in fields] == list(columns)
        if is_header or (among_others and len(fields) != len(columns)):
            continue
        try:
            name, row = _row(file, line, fields, columns)
            if lines.setdefault(name, line) != line:
                found = f"line {lines[name]} has it already"
                raise file.refused(name, found, "keep one of the two lines", line)
            r_ends[name] = float(row.pop("r_end"))
            tables[name] = row
        except InvalidInput as error:
            faults += error.faults
    if faults:
        raise InvalidInput(faults[:MAX_FAULTS])
    return PeerTune(tables=tables, lines=lines, r_ends=r_ends, schedule=file.plan.schedule)


def rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is neither empty nor a comment, and its number from 1."""
    for line, row in enumerate(text.splitlines(), start=1):
        if row.strip() and not row.lstrip().startswith("#"):
            yield line, [field.strip() for field in row.split(",")]


def _row(
    file: File, line: int, fields: Sequence[str], columns: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The name of a parameter, and its table with `r_end` in it."""
    remedy = f"write {','.join(columns)}"
    if len(fields) != len(columns):
        found = f"{len(fields)} fields instead of {len(columns)}"
        raise file.refused(fields[0] or "line", found, remedy, line)
    row = dict(zip(columns, fields, strict=True))
    name, kind = row.pop("name"), row.pop("int|float", "int")
    if kind not in ("int", "float"):
        raise file.refused(name, f"{shown(kind)} is no type", "write int or float", line)
    numbers: dict[str, Number] = {}
    for key, text in row.items():
        if (value := number(text)) is None:
            raise file.refused(name, f"{key} {shown(text)} is not a number", remedy, line)
        numbers[key] = value
    if "curr" in numbers and isinstance(numbers["start"], float):
        kind = "float"  # the digest has no types, and writes whole numbers without decimals
    return name, {
        "value": numbers.get("curr", numbers["start"]),
        "min": whole(numbers["min"], kind),
        "max": whole(numbers["max"], kind),
        "step": numbers["c_end"],
        "type": kind,
        "r_end": numbers["r_end"],
    }


def number(text: str) -> Number | None:
    """A finite decimal number, whole if it is written so; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if text.lstrip("+-").isdigit() else as_number(float(text))


def whole(value: Number, kind: str = "int") -> Number:
    """A bound of whole numbers without decimals, as 10.0 has them."""
    return int(value) if kind == "int" and value == int(value) else value


def write_lines(columns: Sequence[str], parameters: Iterable[PeerParameter]) -> str:
    comma = ", " if "int|float" in columns else ","
    return "".join(f"{comma.join(_to_row(p, columns))}\n" for p in parameters)


def _to_row(p: PeerParameter, columns: Sequence[str]) -> Iterator[str]:
    values = {
        "name": p.name,
        "int|float": "int" if p.integral else "float",
        "start": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "c_end": p.c_end,
        "r_end": p.r_end,
    }
    return (str(values[column]) for column in columns)
