"""docs/configuration.md has every key that the readers ask for: its type, default and range."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spsa.algorithms import algorithms, rule_entry
from spsa.config import load_config, load_space
from spsa.config.section import MAX_NUMBER, Section

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = (DOCS / "configuration.md").read_text(encoding="utf-8")
Asked = tuple[str, ...]
"""Type, default and range of a key, as the page writes them."""
MAX_WHOLE = 2**63 - 1

CLOCK = '[time_control]\nkind = "clock"\n'
CONFIGS = (
    "[build]\nsource_path = 'engine'\nbench = true\n[games]\nplies = 8\n[run]\nseed = 1\n"
    f"[adjudication]\nmax_moves = 200\n[validation]\n{CLOCK.replace('[', '[validation.')}",
    f"{CLOCK}[delivery]\nkind = 'uci'\nengine = 'x'\n[build]\nat_once = 1\n"
    "[games]\niterations_in_flight = 2\n",
    "[build]\nsource_path = 'engine'\n[time_control]\nkind = 'nodes'\nlow = 1\n"
    "[spsa]\nstop_when = 0.5\n",
    "[build]\nrusty_rival_path = 'engine'\n"
    "[games]\nscale = 'nps'\ntarget_nps = 1\n[adjudication.syzygy]\npieces = 5\nfolder = 'x'\n",
)
PARAMS = """
[plain]
value = 1
min = 0
max = 9
step = 1
[base]
value = 1
min = 0
max = 9
step = 1
scale = 10
array = "ARRAY"
knob = "base"
first = 0
last = 3
[slope]
value = 1
min = 0
max = 9
step = 1
array = "ARRAY"
knob = "per_index"
first = 0
last = 3
[spread]
value = 1
min = 0
max = 9
step = 1
table = "TABLE"
knob = "bias"
"""


def number(value: float) -> str:
    return f"{value:,.12g}" if abs(value) >= 1 or not value else f"{value:g}"


def limits(default_low: float, default_high: float, **given: Any) -> str:
    low, high = given.get("least", default_low), given.get("most", default_high)
    above = given.get("above")
    from_ = f"above {number(above)}" if above is not None and low <= above else number(low)
    return (
        "any"
        if (low, high) == (-MAX_NUMBER, MAX_NUMBER) and above is None
        else _between(from_, high)
    )


def _between(low: str, high: float) -> str:
    return low if high in (MAX_NUMBER, MAX_WHOLE) else f"{low} to {number(high)}"


def of_number(_key: str, default: float | None = None, **given: Any) -> Asked:
    return (
        "number",
        "required" if default is None else number(default),
        limits(-MAX_NUMBER, MAX_NUMBER, **given),
    )


def of_whole(_key: str, default: int | None = None, **given: Any) -> Asked:
    least = given.get("least", 0)
    shown = "required" if default is None else "-" if default < least else number(default)
    return "whole number", shown, limits(0, MAX_WHOLE, **given)


def of_choice(_key: str, choices: tuple[str, ...], default: str) -> Asked:
    return "choice", f'"{default}"', ", ".join(f'"{choice}"' for choice in choices)


READERS: dict[str, Callable[..., Asked]] = {
    "number": of_number,
    "whole": of_whole,
    "choice": of_choice,
    "flag": lambda _key, default: ("boolean", str(default).lower(), ""),
    "text": lambda _key, default="", **_: ("text", f'"{default}"' if default else "-", ""),
    "texts": lambda _key, default=(): ("list of texts", str(list(default)).replace("'", '"'), ""),
    "path": lambda _key, _folder, default="": ("path", f'"{default}"' if default else "-", ""),
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, set[Asked]]:
    """What the readers ask of a Section: table.key -> what it may be; empty where only `get` is."""
    found: dict[str, set[Asked]] = {}
    inside = False

    def record(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def recording(self: Section, key: str, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            entry = found.setdefault(".".join((*self._path, key)), set())
            if inside:
                return original(self, key, *args, **kwargs)
            if name != "get":
                entry.add(READERS[name](key, *args, **kwargs))
            inside = True
            try:
                return original(self, key, *args, **kwargs)
            finally:
                inside = False

        return recording

    for name in (*READERS, "get"):
        monkeypatch.setattr(Section, name, record(name, getattr(Section, name)))
    for index, text in enumerate(CONFIGS):
        path = tmp_path / f"config{index}.toml"
        path.write_text(text)
        load_config(path, {})
    params = tmp_path / "params.toml"
    params.write_text(PARAMS)
    load_space(params)
    return found


def documented() -> dict[str, Asked]:
    """The rows of the reference's tables: table.key -> type, default, range."""
    return {
        f"{table}.{key}": tuple(cell.strip() for cell in cells.split("|")[:3])
        for table, body in re.findall(
            r"^## \[([\w.]+)\](.*?)(?=^## )", REFERENCE + "\n## ", re.M | re.S
        )
        for key, cells in re.findall(r"^\| `(\w+)` \|(.*)$", body, re.M)
    }


SECTIONS = {"time_control", "draw", "resign", "syzygy", "options", "files", "constraints"}
IN_WORDS = {  # what a table of the page says of a default that follows something else
    "run.name": "the folder's name",
    "run.seed": "random",
    "time_control.high": "the value of `low`",
    "build.bench": "-",
    "parameter.constant": "the parameter's name in capitals",
    "parameter.option": "the parameter's name",
    "parameter.last": "the array's last",
    "parameter.array": "-",
    "parameter.table": "-",
    "parameter.knob": "required",
}


def merged(asked: dict[str, set[Asked]]) -> dict[str, set[Asked]]:
    """The keys of all parameters as those of one, without the names of tables."""
    found: dict[str, set[Asked]] = {}
    for name, entries in asked.items():
        table, _, key = name.rpartition(".")
        if table.startswith("validation.") or key in SECTIONS or not table:
            continue
        place = "parameter" if table in ("plain", "base", "slope", "spread") else table
        found.setdefault(f"{place}.{key}", set()).update(entries)
    return found


def test_the_page_has_every_key_and_no_other(asked: dict[str, set[Asked]]) -> None:
    assert set(documented()) == set(merged(asked))


def test_types_defaults_and_ranges_are_those_of_the_readers(asked: dict[str, set[Asked]]) -> None:
    rows = documented()
    for name, entries in merged(asked).items():
        kinds, defaults, ranges = (set(cell.split(" or ")) for cell in rows[name])
        for kind, default, range_ in entries - {("text", "-", "")} or entries:
            assert kind in kinds, name
            assert range_ in ranges, name
            if name in IN_WORDS:
                assert defaults == {IN_WORDS[name]}, name
            elif name != "parameter.type" and default != "required":
                assert default in defaults, name


def test_the_settings_of_every_method_are_in_the_guide() -> None:
    guide = (DOCS / "methods.md").read_text(encoding="utf-8")
    for name in algorithms():
        section = re.split(
            r"^##", re.split(rf"^###.* ?`{name}`.*$", guide, flags=re.M)[1], flags=re.M
        )[0]
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", section, re.M))
        assert set(rows) == {setting.name for setting in rule_entry(name).settings}, name
        for setting in rule_entry(name).settings:
            if isinstance(setting.default, float | int):
                assert rows[setting.name] == f"{setting.default:g}", setting.name
