"""The formats of other tuners, read into spaces and written from them.

    fishtest            name,start,min,max,c_end,r_end; also among the lines that TUNE() prints
    openbench           name, int|float, start, min, max, c_end, r_end; also the digest of a tune:
                        Name,Curr,Start,Min,Max,C,C_end,R,R_end
    weather-factory     its config.json: {"NAME": {"value", "min_value", "max_value", "step"}, ...}
    chess-tuning-tools  {"parameter_ranges": {"NAME": "Integer(0, 100)", "OTHER": "Real(0.0, 1.0)"}}
    json                the tables and keys of params.toml

`c_end` of Fishtest and OpenBench is one step here; docs/formats.md derives it, and their gains.
Sources: spsa_workflow.py of Fishtest; spsa_utils.py of OpenBench; github.com/jnlt3/weather-factory;
the documentation of chess-tuning-tools.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from statistics import median

from spsa.config.document import Document, Key, as_number, file_text, shown
from spsa.config.space import params_document, readable_space, space_of
from spsa.core.parameter import Number, Parameter
from spsa.core.params import Space
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.text import plural

_OWN, _WEATHER_FACTORY, _TUNING_TOOLS = "json", "weather-factory", "chess-tuning-tools"
_COLUMNS: Mapping[str, Sequence[str]] = {
    "fishtest": ("name", "start", "min", "max", "c_end", "r_end"),
    "openbench": ("name", "int|float", "start", "min", "max", "c_end", "r_end"),
}
_DIGEST = ("name", "curr", "start", "min", "max", "c", "c_end", "r", "r_end")
EXPORTED = (*_COLUMNS, _WEATHER_FACTORY, _TUNING_TOOLS, _OWN)

_USUAL_R_END = 0.002
_MIN_C_END = 0.5  # of a whole number: below, plus and minus are often the same number
_KEYS = {"value": "value", "min": "min_value", "max": "max_value", "step": "step"}
"""The keys of weather-factory by those of params.toml."""
_RANGES = "parameter_ranges"
_RANGE = re.compile(r"\s*(Integer|Real)\(([^,()]+),([^,()]+)(?:,[^()]*)?\)\s*")
_RANGE_STEPS = 20
"""Steps in a range that comes without one."""

_PLACES = {"constant", "array"}
"""The keys that say where in a source a number is."""

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
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
        if self.format == _TUNING_TOOLS:
            yield "the file has ranges alone: write the engine's values where the middle is wrong"
        if self.r_ends:
            yield "step = c_end: the last planned perturbation is one step"
        if self.raised:
            yield f"c_end is below {_MIN_C_END}, so the step is that: {', '.join(self.raised)}"
        if others := [name for name, r_end in self.r_ends.items() if r_end != self.r_end]:
            said = f"a run has one r_end, and {self.r_end:g} is the median"
            yield f"{said}; another r_end had {', '.join(others)}"


def read_file(path: Path) -> Imported:
    """Read a file of a peer.

    Raises InvalidInput with all its faults, in the words of params.toml.
    """
    text = file_text(path)
    return _of_object(path, text) if text.lstrip().startswith("{") else _of_lines(path, text)


def _of_lines(path: Path, text: str) -> Imported:
    rows = [
        (number, [field.strip() for field in line.split(",")])
        for number, line in enumerate(text.splitlines(), start=1)
        if "," in line and not line.lstrip().startswith("#")
    ]
    if not rows:
        remedy = f"name a file of {', '.join(EXPORTED)}; a params.toml needs no import"
        raise InvalidInput.of(path, path.name, "is of no known format", remedy)
    kind, columns = _columns([row for _, row in rows])
    rows = [(n, row) for n, row in rows if [one.lower() for one in row] != list(columns)]
    wrong = {n: (row[0], found) for n, row in rows if (found := _wrong(row, columns))}
    read = [(n, dict(zip(columns, row, strict=True))) for n, row in rows if n not in wrong]
    tables = [(row["name"], _table(row), number) for number, row in read]
    space, faults = readable_space(_document(path, text, tables))
    remedy = f"write {','.join(columns)}"
    told = [
        Fault(file=str(path), line=number, name=name, found=found, remedy=remedy)
        for number, (name, found) in wrong.items()
    ]
    told += faults if tables else ()
    if told:
        raise InvalidInput(sorted(told, key=lambda fault: fault.line or 0)[:MAX_FAULTS])
    r_ends = {row["name"]: float(row["r_end"]) for _, row in read}
    rows_read = zip(tables, (row for _, row in read), strict=True)
    raised = [name for (name, table, _), row in rows_read if table["step"] != float(row["c_end"])]
    return Imported(format=kind, space=space, r_ends=r_ends, raised=raised)


def _columns(rows: Sequence[Sequence[str]]) -> tuple[str, Sequence[str]]:
    """The format of some lines, and its columns."""
    if len(rows[0]) == len(_DIGEST):
        return "openbench", _DIGEST
    typed = any(row[1].lower() in ("int", "float") for row in rows)
    kind = "openbench" if typed or len(rows[0]) == len(_COLUMNS["openbench"]) else "fishtest"
    return kind, _COLUMNS[kind]


def _wrong(row: Sequence[str], columns: Sequence[str]) -> str:
    """What is wrong in a line that params.toml does not have; "" for nothing."""
    if len(row) != len(columns):
        return f"{len(row)} fields instead of {len(columns)}"
    return f"r_end {shown(row[-1])} is not a number" if as_number(_number(row[-1])) is None else ""


def _table(row: Mapping[str, str]) -> Table:
    """What params.toml has of a line. The digest has no types; its whole numbers are written so."""
    start, step = _number(row["start"]), _number(row["c_end"])
    is_whole = "curr" not in row or isinstance(start, int)
    kind = row.get("int|float", "int" if is_whole else "float")
    is_small = kind == "int" and 0 < (as_number(step) or 0) < _MIN_C_END
    return {
        "value": _number(row["curr"]) if "curr" in row else start,
        "min": _number(row["min"]),
        "max": _number(row["max"]),
        "step": _MIN_C_END if is_small else step,
        "type": kind,
    }


def _number(text: str) -> Number | str:
    """A number, whole if it is written so; else the text, which a parameter refuses."""
    if "_" in text:  # Python alone reads 1_000
        return text
    try:
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except ValueError:
        return text


def _of_object(path: Path, text: str) -> Imported:
    try:
        data = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:  # a JSONDecodeError has a line
        found, line = f"is not JSON: {error}", getattr(error, "lineno", None)
        raise InvalidInput.of(path, path.name, found, "correct it", line) from None
    tables: dict[str, object]
    if isinstance(data.get(_RANGES), dict):
        ranges = data[_RANGES].items()
        kind, tables = _TUNING_TOOLS, {name: _of_range(path, name, one) for name, one in ranges}
    elif any(isinstance(one, dict) and "min_value" in one for one in data.values()):
        kind, tables = _WEATHER_FACTORY, {name: _of_keys(one) for name, one in data.items()}
    else:
        return Imported(format=_OWN, space=space_of(Document(path, text, data, {})))
    document = _document(path, text, [(name, table, None) for name, table in tables.items()])
    return Imported(format=kind, space=space_of(document))


def _of_keys(one: object) -> object:
    if not isinstance(one, dict):
        return one
    return {own: one[key] for own, key in _KEYS.items() if key in one} | {"type": "int"}


def _of_range(path: Path, name: str, written: object) -> Table:
    """A value is the middle of its range, and a step a twentieth of it."""
    found = _RANGE.fullmatch(str(written))
    low, high = (as_number(_number(found[n].strip())) if found else None for n in (2, 3))
    if found is None or low is None or high is None:
        remedy = "write Integer(low, high) or Real(low, high)"
        raise InvalidInput.of(path, name, f"{shown(written)} is no range of two numbers", remedy)
    middle, step = (low + high) / 2, (high - low) / _RANGE_STEPS
    if found[1] == "Real":
        return {"min": low, "max": high, "value": middle, "step": step, "type": "float"}
    whole = {"min": int(low), "max": int(high), "value": int(middle), "type": "int"}
    return {**whole, "step": max(1, round(step))}


def _document(path: Path, text: str, tables: Sequence[tuple[str, object, int | None]]) -> Document:
    """What params.toml would be: a table for each option, with its line."""
    taken: set[str] = set()
    named: dict[str, object] = {}
    lines: dict[Key, int] = {}
    for option, table, line in tables:
        name = _free_name(option, taken)
        named[name] = {**table, "option": option} if isinstance(table, Mapping) else table
        if line is not None:
            lines[(name,)] = line
    return Document(path, text, named, lines)


def _free_name(option: str, taken: set[str]) -> str:
    """A name for the table: the option's own where it can be one; case does not tell two apart."""
    plain = re.sub(r"\W", "_", option, flags=re.ASCII)[:90]
    if not plain.isidentifier() or plain == "constraints":
        plain = f"option_{plain}"
    numbered = (f"{plain}_{n}" for n in count(2))
    free = next(each for each in chain([plain], numbered) if each.upper() not in taken)
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
    if kind == _OWN:
        return f"{json.dumps(params_document(space), indent=2)}\n"
    real = [p for p in space.active if not p.unit]
    if real and kind in ("fishtest", _WEATHER_FACTORY):
        found = "is no whole number, and this format has no others"
        remedy = "give it a scale, or export it to openbench"
        raise InvalidInput(
            [Fault(file=file, line=p.line, name=p.name, found=found, remedy=remedy) for p in real]
        )
    rows = {p.option: _row(p, rule) for p in space.active}
    if kind in _COLUMNS:
        comma = ", " if kind == "openbench" else ","
        fields = ([str(row[column]) for column in _COLUMNS[kind]] for row in rows.values())
        return "".join(f"{comma.join(each)}\n" for each in fields)
    if kind == _WEATHER_FACTORY:
        data: Table = {
            name: {theirs: row[own] for own, theirs in _KEYS.items()} for name, row in rows.items()
        }
    else:
        kinds = {"int": "Integer", "float": "Real"}
        each = {n: f"{kinds[str(r['int|float'])]}({r['min']}, {r['max']})" for n, r in rows.items()}
        data = {_RANGES: each}
    return json.dumps(data, indent=2) + "\n"


def left_out(space: Space) -> list[str]:
    """What is in params.toml and in no format of a peer, as `2 constraints`."""
    tables = params_document(space)
    counts = {
        "frozen parameter": len(space.parameters) - len(space.active),
        "constraint": len(space.constraints),
        "constant name": sum(bool(tables[p.name].keys() & _PLACES) for p in space.active),
    }
    return [plural(number, what) for what, number in counts.items() if number]


def _row(p: Parameter, rule: Mapping[str, object]) -> dict[str, object]:
    """What any format has of a parameter."""
    value, low, high = (_times(p, number) for number in (p.value, p.minimum, p.maximum))
    step = _times(p, p.step * (as_number(rule.get("c_end")) or 1.0))
    return {
        "name": p.option,
        "int|float": "int" if p.unit else "float",
        **dict.fromkeys(("value", "start"), value),
        "min": round(low) if p.unit else low,
        "max": round(high) if p.unit else high,
        **dict.fromkeys(("step", "c_end"), step),
        "r_end": as_number(rule.get("r_end")) or _USUAL_R_END,
    }


def _times(p: Parameter, value: float) -> Number:
    """The number that the engine gets, as a person would write it: 0.29 * 100 is 29."""
    product = value if p.scale is None else round(value * p.scale, 9)
    return int(product) if product == int(product) else product
