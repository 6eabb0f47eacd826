"""Writes the tables of docs/configuration.md from the models: `make docs`."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spsa.config.settings import Sections
from spsa.config.space import ParameterSection

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
HEAD = "| key | type | default | range | meaning |\n|---|---|---|---|---|\n"
NAMES = {"integer": "whole number", "string": "text", "array": "list of texts", "path": "path"}
UNBOUNDED = (2**63 - 1, 1e15, -1e15)

Schema = Mapping[str, Any]


def rows() -> dict[str, dict[str, str]]:
    """The row of each key by the name of its table; tables of options and inner ones have none."""
    config, parameter = Sections.model_json_schema(), ParameterSection.model_json_schema()
    found = dict(_tables(config, config["$defs"]))
    found["parameter"] = _rows(parameter, parameter.get("$defs", {}))
    return found


def written(page: str) -> str:
    """The page with its tables as the models have them."""
    for name, table in rows().items():
        text = HEAD + "".join(f"{row}\n" for row in table.values())
        heading = rf"(^## \[{re.escape(name)}\]\n(?:(?!^## |^\| key).*\n)*)(?:^\|.*\n)+"
        page, count = re.subn(heading, lambda found, t=text: found[1] + t, page, flags=re.M)
        assert count == 1, f"the page has no section [{name}] with a table"
    return page


def _tables(schema: Schema, models: Mapping[str, Schema], at: str = "") -> Iterator[Any]:
    if at and (table := _rows(schema, models)):
        yield at.removeprefix("."), table
    for key, field in schema["properties"].items():
        for part in _parts(field, models):
            if "properties" in part and (at, key) != (".validation", "time_control"):
                yield from _tables(part, models, f"{at}.{key}")


def _parts(field: Schema, models: Mapping[str, Schema]) -> list[Schema]:
    """What a value may be, without null; of an array of tables one of them."""
    field = field["items"] if "$ref" in field.get("items", ()) else field
    each = field.get("anyOf", field.get("allOf", [field]))
    found = [models[p["$ref"].rpartition("/")[2]] if "$ref" in p else p for p in each]
    return [part for part in found if part.get("type") != "null"]


def _rows(schema: Schema, models: Mapping[str, Schema]) -> dict[str, str]:
    return {
        key: _row(key, field, _parts(field, models), required=key in schema.get("required", ()))
        for key, field in schema["properties"].items()
        if not any(part.get("type") == "object" for part in _parts(field, models))
    }


def _row(key: str, field: Schema, parts: list[Schema], *, required: bool) -> str:
    if {"integer", "number"} <= {part.get("type") for part in parts}:  # either is a number
        parts = [{**field, "type": "number"}]
    kinds = " or ".join(dict.fromkeys(_kind(part) for part in parts))
    ranges = " or ".join(filter(None, (_range({**field, **part}) for part in parts)))
    default = "required" if required else _default(field.get("default"))
    cells = (f"`{key}`", kinds, default, ranges, field["description"])
    return "| " + " | ".join(cells).replace("|  |", "| |") + " |"


def _kind(part: Schema) -> str:
    if "enum" in part or "const" in part:
        return "choice"
    kind = part.get("format", part["type"])
    return NAMES.get(kind, kind)


def _default(value: object) -> str:
    if value in (None, "") or value == []:
        return "-"
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _range(part: Schema) -> str:
    if "enum" in part or "const" in part:
        return ", ".join(json.dumps(one) for one in part.get("enum", [part.get("const")]))
    low = part.get("minimum", part.get("ge"))
    high = part.get("maximum", part.get("le"))
    above = part.get("exclusiveMinimum")
    first = f"above {_number(above)}" if above is not None else _number(low)
    return first if high in (None, *UNBOUNDED) else f"{first} to {_number(high)}"


def _number(value: object) -> str:
    if not isinstance(value, int | float) or value in UNBOUNDED:
        return ""
    return f"{value:,.12g}" if abs(value) >= 1 or not value else f"{value:g}"


if __name__ == "__main__":
    sys.stdout.write(f"{PAGE.name}: {sum(len(table) for table in rows().values())} keys\n")
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
