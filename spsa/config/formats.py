"""The formats of other tuners, read into spaces and written from them.

    fishtest    name,start,min,max,c_end,r_end         also what TUNE() of Stockfish prints among
                other lines, and what /api/get_run/ID answers: {"args": {"spsa": {...}}}
    openbench   name, int|float, start, min, max, c_end, r_end          also the digest of a tune:
                Name,Curr,Start,Min,Max,C,C_end,R,R_end
    weather-factory     {"NAME": {"value", "min_value", "max_value", "step"}, ...}, its config.json,
                        or its state.json, {"t", "spsa_params", "uci_params"}
    chess-tuning-tools  {"parameter_ranges": {"NAME": "Integer(0, 100)", "OTHER": "Real(0.0, 1.0)"}}
    json        params.toml: the same tables and keys

Sources: spsa_workflow.py of Fishtest; spsa_utils.py of OpenBench; main.py and spsa.py of
github.com/jnlt3/weather-factory; the documentation of chess-tuning-tools.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spsa.config.document import Document, as_number, file_text, shown
from spsa.config.peer import File, PeerParameter, PeerTune, Plan, Schedule, scheduled
from spsa.config.space import space_of
from spsa.core.params import Number, Space
from spsa.errors import MAX_FAULTS, Fault, InvalidInput

_FISHTEST = ("name", "start", "min", "max", "c_end", "r_end")
_OPENBENCH = ("name", "int|float", "start", "min", "max", "c_end", "r_end")
_DIGEST = ("name", "curr", "start", "min", "max", "c", "c_end", "r", "r_end")
"""The columns of a list; those of the table in which OpenBench shows a running tune."""

_RUN = {"value": "theta", "min": "min", "max": "max", "step": "c_end"}
_WEATHER_FACTORY = {"value": "value", "min": "min_value", "max": "max_value", "step": "step"}
"""The keys of an object by those of params.toml."""

_NUMBER = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_RANGE = re.compile(r"\s*(Integer|Real)\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*(?:,[^()]*)?\)\s*")
_RANGE_STEPS = 20
"""Steps in a range that comes without one, as in the lines that TUNE() prints."""


def _of_lines(columns: Sequence[str], file: File, *, among_others: bool = False) -> PeerTune:
    """A parameter for each line with these columns; `among_others`: other lines are ignored."""
    tables: dict[str, Mapping[str, object]] = {}
    lines: dict[str, int] = {}
    r_ends: dict[str, float] = {}
    faults: list[Fault] = []
    for line, fields in _rows(file.text):
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


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that is neither empty nor a comment, and its number from 1."""
    for line, row in enumerate(text.splitlines(), start=1):
        if row.strip() and not row.lstrip().startswith("#"):
            yield line, [field.strip() for field in row.split(",")]


def _row(
    file: File, line: int, fields: Sequence[str], columns: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The name of a parameter, and its table with `r_end` in it."""
    name, remedy = fields[0] or "line", f"write {','.join(columns)}"
    if len(fields) != len(columns):
        raise file.refused(name, f"{len(fields)} fields instead of {len(columns)}", remedy, line)
    row = dict(zip(columns, map(_number, fields), strict=True))
    # the digest has no types, and writes whole numbers without decimals
    is_real = "curr" in row and isinstance(row["start"], float)
    kind = row.pop("int|float", "float" if is_real else "int")
    if kind not in ("int", "float"):
        raise file.refused(name, f"{shown(kind)} is no type", "write int or float", line)
    for column in columns:
        if column != "name" and isinstance(text := row.get(column), str):
            raise file.refused(name, f"{column} {shown(text)} is not a number", remedy, line)
    return fields[0], {
        "value": row.get("curr", row["start"]),
        "min": _whole(row["min"]) if kind == "int" else row["min"],
        "max": _whole(row["max"]) if kind == "int" else row["max"],
        "step": row["c_end"],
        "type": kind,
        "r_end": row["r_end"],
    }


def _number(text: str) -> Number | str:
    """A finite decimal number, whole if it is written so; any other text as it is."""
    if not _NUMBER.fullmatch(text):
        return text
    number = int(text) if text.lstrip("+-").isdigit() else as_number(float(text))
    return text if number is None else number


def _whole(value: Any) -> Any:
    """A bound of whole numbers without decimals, as 10.0 has them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _to_lines(columns: Sequence[str], parameters: Iterable[PeerParameter]) -> str:
    comma = ", " if "int|float" in columns else ","
    return "".join(f"{comma.join(_to_row(p, columns))}\n" for p in parameters)


def _to_row(p: PeerParameter, columns: Sequence[str]) -> Iterator[str]:
    kind = "int" if p.integral else "float"
    values = {"name": p.name, "int|float": kind, "start": p.value, "min": p.minimum}
    values |= {"max": p.maximum, "c_end": p.c_end, "r_end": p.r_end}
    return (str(values[column]) for column in columns)


def _table(one: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, object]:
    table = {own: _whole(one[key]) for own, key in keys.items() if key in one}
    return table | {"type": "int"}


def _of_run(file: File) -> PeerTune:
    """A tune of Fishtest as it stands; an iteration is a pair of games there."""
    spsa = file.table(file.table(file.json().get("args"), "args").get("spsa"), "args.spsa")
    each = file.tables(spsa.get("params"))
    iterations, done, delay, alpha, gamma = (
        file.number(spsa, key, "args.spsa") for key in ("num_iter", "iter", "A", "alpha", "gamma")
    )
    return PeerTune(
        tables={name: _table(one, _RUN) for name, one in each.items()},
        r_ends={name: file.number(one, "r_end", name) for name, one in each.items()},
        schedule=Schedule(
            games=2 * iterations, played=2 * done, delay=2 * delay, alpha=alpha, gamma=gamma
        ),
    )


def _of_weather_factory(file: File) -> PeerTune:
    """config.json with the gains of spsa.json, or state.json, which has its own."""
    data, plan = file.json(), file.plan
    if "uci_params" in data:
        each = file.tables(data["uci_params"])
        gains = file.table(data.get("spsa_params"), "spsa_params")
        played = file.number(data, "t", "t")
    else:
        each = {name: file.table(one, name) for name, one in data.items()}
        gains, played = plan.gains, 0.0
    tables = {name: _table(one, _WEATHER_FACTORY) for name, one in each.items()}
    if plan.games is None or not gains:
        return PeerTune(tables=tables)
    return scheduled(file, tables, gains, played if plan.played is None else plan.played)


def _to_weather_factory(parameters: Iterable[PeerParameter]) -> str:
    tables = {
        p.name: {"value": p.value, "min_value": p.minimum, "max_value": p.maximum, "step": p.c_end}
        for p in parameters
    }
    return json.dumps(tables, indent=2) + "\n"


def _of_ranges(file: File) -> PeerTune:
    """A tuning configuration of chess-tuning-tools, which has ranges alone.

    A value is the middle of its range, a step a twentieth of it.
    """
    ranges = file.table(file.json().get("parameter_ranges"), "parameter_ranges")
    note = "the file has ranges alone: write the engine's own values where the middle is not right"
    tables = {name: _range(file, name, text) for name, text in ranges.items()}
    return PeerTune(tables=tables, notes=(note,))


def _range(file: File, name: str, text: object) -> dict[str, object]:
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    low, high = (_number(found[2]), _number(found[3])) if found else ("", "")
    if found is None or isinstance(low, str) or isinstance(high, str):
        remedy = "write Integer(low, high) or Real(low, high)"
        raise file.refused(name, f"{shown(text)} is no range of two numbers", remedy)
    middle, step = (low + high) / 2, (high - low) / _RANGE_STEPS
    if found[1] == "Integer":
        whole = {"value": int(middle), "step": max(1, round(step)), "type": "int"}
        return {"min": low, "max": high, **whole}
    return {"min": low, "max": high, "value": middle, "step": step, "type": "float"}


def _to_ranges(parameters: Iterable[PeerParameter]) -> str:
    ranges = {
        p.name: f"{'Integer' if p.integral else 'Real'}({p.minimum}, {p.maximum})"
        for p in parameters
    }
    return json.dumps({"parameter_ranges": ranges}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a peer: how each of its variants is read, the usual one first, and written."""

    read: Mapping[str, Callable[[File], PeerTune]]
    write: Callable[[Iterable[PeerParameter]], str]
    has_fractions: bool = False


PEERS: Mapping[str, Format] = {
    "fishtest": Format(
        {
            "list": partial(_of_lines, _FISHTEST),
            "tune": partial(_of_lines, _FISHTEST, among_others=True),
            "run": _of_run,
        },
        partial(_to_lines, _FISHTEST),
    ),
    "openbench": Format(
        {"typed list": partial(_of_lines, _OPENBENCH), "digest": partial(_of_lines, _DIGEST)},
        partial(_to_lines, _OPENBENCH),
        has_fractions=True,
    ),
    "weather-factory": Format({"tables": _of_weather_factory}, _to_weather_factory),
    "chess-tuning-tools": Format({"ranges": _of_ranges}, _to_ranges, has_fractions=True),
}
FORMATS = (*PEERS, "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A space, and the tune of a peer that it was read from; None for our own format."""

    format: str
    space: Space
    tune: PeerTune | None


def read_file(path: Path, kind: str | None, plan: Plan) -> Imported:
    """Read a file of the format `kind`, or of the one that it looks like.

    Raises InvalidInput with all its faults, in the words of params.toml.
    """
    file = File(path, file_text(path), plan)
    variant = _guessed(file.text)
    if kind is None:
        known = (name for name, one in PEERS.items() if variant in one.read)
        kind = "json" if variant == "json" else next(known, None)
    if kind is None:
        remedy = f"name its format: {', '.join(FORMATS)}"
        raise file.refused(path.name, "is of no known format", remedy)
    if kind == "json":
        own = Document(path, file.text, file.json(), {})
        return Imported(format=kind, space=space_of(own), tune=None)
    variants = PEERS[kind].read
    tune = variants.get(variant, next(iter(variants.values())))(file)
    space = space_of(Document(path, file.text, *tune.params()))
    return Imported(format=kind, space=space, tune=tune)


def gains_file(path: Path) -> Mapping[str, Any]:
    """weather-factory's spsa.json."""
    return File(path, file_text(path), Plan()).json()


def _guessed(text: str) -> str:
    """The variant of a text: by any line of OpenBench, else by the first that is no greeting."""
    if text.lstrip().startswith("{"):
        return _guessed_object(text)
    table = [fields for _, fields in _rows(text)]
    listed = [row for row in table if len(row) > 1]
    if not listed:
        return ""
    if any(row[1].lower() in ("int", "float") for row in listed):
        return "typed list"
    by_length = {len(_OPENBENCH): "typed list", len(_DIGEST): "digest"}
    return by_length.get(len(listed[0]), "list" if listed == table else "tune")


def _guessed_object(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return "json"  # reading it tells where it is wrong
    for key, variant in {
        "args": "run",
        "parameter_ranges": "ranges",
        "uci_params": "tables",
    }.items():
        if key in data:
            return variant
    tables = [table for table in data.values() if isinstance(table, dict)]
    return "tables" if any("min_value" in table for table in tables) else "json"
