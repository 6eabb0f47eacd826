"""Formats of one parameter a line: Fishtest, OpenBench, and OpenBench's table of a running tune.

    fishtest   name,start,min,max,c_end,r_end         also what TUNE() of Stockfish prints
    openbench  name, int|float, start, min, max, c_end, r_end
    digest     Name,Curr,Start,Min,Max,C,C_end,R,R_end

Sources: parse_spsa_params of Fishtest's server/fishtest/spsa_workflow.py, spsa_utils.py of
OpenBench.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spsa.config.formats.peer import USUAL_R_END, PeerParameter
from spsa.config.section import as_number, shown
from spsa.core.params import Number

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "fishtest": ("name", "start", "min", "max", "c_end", "r_end"),
    "openbench": ("name", "int|float", "start", "min", "max", "c_end", "r_end"),
    "digest": ("name", "curr", "start", "min", "max", "c", "c_end", "r", "r_end"),
}

_NUMBER = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,25}", re.ASCII)
_KINDS = ("int", "float")


@dataclass(frozen=True, slots=True)
class LineFault:
    """What is wrong on a line, and what would be right."""

    line: int
    name: str
    found: str
    remedy: str


Lines = Iterable[tuple[int, str]]
"""Lines with their numbers, from 1."""


def number(text: str) -> Number | None:
    """A finite decimal number, whole if it is written so; None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    return as_number(float(text))


def read_lines(columns: Sequence[str], lines: Lines) -> Iterator[PeerParameter | LineFault]:
    """One parameter for every line that is neither empty, a comment nor the header."""
    for line, text in lines:
        fields = [field.strip() for field in text.split(",")]
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        if [field.lower() for field in fields] != list(columns):
            yield _parameter(line, fields, columns)


def _parameter(
    line: int, fields: Sequence[str], columns: Sequence[str]
) -> PeerParameter | LineFault:
    if len(fields) != len(columns):
        found = f"{len(fields)} fields instead of {len(columns)}"
        return LineFault(line, fields[0] or "line", found, f"write {','.join(columns)}")
    named = dict(zip(columns, fields, strict=True))
    kind = named.pop("int|float", None)
    name = named.pop("name")
    if kind not in (*_KINDS, None):
        return LineFault(line, name, f"{shown(kind)} is no type", "write int or float")
    numbers: dict[str, Number] = {}
    for key, text in named.items():
        if (read := number(text)) is None:
            remedy = f"write {','.join(columns)}"
            return LineFault(line, name, f"{key} {shown(text)} is not a number", remedy)
        numbers[key] = read
    if kind is None:  # the digest writes whole numbers without decimals
        kind = _KINDS["curr" in numbers and isinstance(numbers["start"], float)]
    return _of_numbers(line, name, numbers, integral=kind == "int")


def _of_numbers(
    line: int, name: str, numbers: Mapping[str, Number], *, integral: bool
) -> PeerParameter:
    return PeerParameter(
        name=name,
        value=numbers.get("curr", numbers["start"]),
        minimum=_plain(numbers["min"], integral=integral),
        maximum=_plain(numbers["max"], integral=integral),
        c_end=numbers["c_end"],
        r_end=numbers["r_end"],
        integral=integral,
        line=line,
    )


def _plain(value: Number, *, integral: bool) -> Number:
    """A whole number without its decimals, such as 10.0."""
    return int(value) if integral and value == int(value) else value


def write_lines(columns: Sequence[str], parameters: Iterable[PeerParameter]) -> str:
    """The text of a file with these columns."""
    comma = ", " if "int|float" in columns else ","
    return "".join(f"{comma.join(_fields(p, columns))}\n" for p in parameters)


def _fields(p: PeerParameter, columns: Sequence[str]) -> Iterator[str]:
    values = {
        "name": p.name,
        "int|float": "int" if p.integral else "float",
        "start": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "c_end": p.c_end,
        "r_end": USUAL_R_END if p.r_end is None else p.r_end,
    }
    return (str(values[column]) for column in columns)
