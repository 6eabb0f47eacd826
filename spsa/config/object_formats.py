"""The formats of other tuners that are JSON objects, and params.toml as JSON.

    weather-factory     its config.json: {"NAME": {"value", "min_value", "max_value", "step"}, ...}
    chess-tuning-tools  {"parameter_ranges": {"NAME": "Integer(0, 100)", "OTHER": "Real(0.0, 1.0)"}}
    json                the tables and keys of params.toml

Sources: github.com/jnlt3/weather-factory; the documentation of chess-tuning-tools.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from spsa.config.document import as_number, shown
from spsa.errors import Fault, InvalidInput

Table = Mapping[str, object]

OWN = "json"
WEATHER_FACTORY = "weather-factory"
TUNING_TOOLS = "chess-tuning-tools"

_KEYS = {"value": "value", "min": "min_value", "max": "max_value", "step": "step"}
"""The keys of weather-factory by those of params.toml."""
_RANGES = "parameter_ranges"
_RANGE = re.compile(r"\s*(Integer|Real)\(\s*([-+.\w]+)\s*,\s*([-+.\w]+)\s*(?:,[^()]*)?\)\s*")
_RANGE_STEPS = 20
"""Steps in a range that comes without one."""


def read_objects(path: Path, text: str) -> tuple[str, dict[str, Table]]:
    """The format of a JSON object, and its tables as params.toml has them, by their names.

    Raises InvalidInput with what is wrong in it.
    """
    data = _object(path, text)
    if _RANGES in data:
        ranges = _table(path, _RANGES, data[_RANGES])
        return TUNING_TOOLS, {name: _of_range(path, name, one) for name, one in ranges.items()}
    if any(isinstance(one, dict) and "min_value" in one for one in data.values()):
        tables = {name: _table(path, name, one) for name, one in data.items()}
        return WEATHER_FACTORY, {name: _of_keys(one) for name, one in tables.items()}
    return OWN, data


def written_objects(kind: str, rows: Mapping[str, Table]) -> str:
    """The JSON of a peer; a row has `value`, `min`, `max`, `step` and whether it `is_whole`."""
    if kind == WEATHER_FACTORY:
        written: Table = {
            name: {theirs: row[own] for own, theirs in _KEYS.items()} for name, row in rows.items()
        }
    else:
        ranges = {name: f"{_kind(row)}({row['min']}, {row['max']})" for name, row in rows.items()}
        written = {_RANGES: ranges}
    return json.dumps(written, indent=2) + "\n"


def _kind(row: Table) -> str:
    return "Integer" if row["is_whole"] else "Real"


def _object(path: Path, text: str) -> dict[str, Table]:
    try:
        data: dict[str, Table] = json.loads(text)
        json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:  # a JSONDecodeError has a line
        found, line = f"is not JSON: {error}", getattr(error, "lineno", None)
        raise InvalidInput(
            [Fault(file=str(path), line=line, name=path.name, found=found, remedy="correct it")]
        ) from None
    return data


def _table(path: Path, name: str, one: object) -> Table:
    if not isinstance(one, dict):
        raise InvalidInput.of(path, name, f"{shown(one)} is no object", "write {...}")
    return one


def _of_keys(one: Table) -> Table:
    return {own: one[key] for own, key in _KEYS.items() if key in one} | {"type": "int"}


def _of_range(path: Path, name: str, text: object) -> Table:
    """A value is the middle of its range, and a step a twentieth of it."""
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    bounds = [_number(each) for each in found.groups()[1:]] if found else []
    if found is None or None in bounds:
        remedy = "write Integer(low, high) or Real(low, high)"
        raise InvalidInput.of(path, name, f"{shown(text)} is no range of two numbers", remedy)
    low, high = (float(bound or 0) for bound in bounds)
    middle, step = (low + high) / 2, (high - low) / _RANGE_STEPS
    if found[1] == "Integer":
        whole = {"min": int(low), "max": int(high), "value": int(middle), "type": "int"}
        return whole | {"step": max(1, round(step))}
    return {"min": low, "max": high, "value": middle, "step": step, "type": "float"}


def _number(text: str) -> float | None:
    try:
        number = as_number(float(text))
    except ValueError:
        return None
    return None if number is None else float(number)
