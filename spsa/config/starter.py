"""The first config.toml and params.toml, which `init` writes for an engine, from the models."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from textwrap import fill, wrap
from typing import Any

from spsa.config.section import Section
from spsa.config.settings import Sections
from spsa.config.space import ParameterSection
from spsa.config.suggestions import EngineSource, Suggested
from spsa.planning.plan_inputs import Shape

_HEAD = """\
# What is played, by which rule, and how engines are built. Relative paths start at this file.
# These are defaults, but for the size of the run: `spsa-master plan` says what that costs and
# recovers on your machines. docs/configuration.md has all keys.
"""
_WIDTH = 100

Table = Mapping[str, object]
"""Values by key; None is the default of the model."""

_MOVETIME: Table = {"kind": None, "timelow": None, "timehigh": None}
CLOCK: Table = {"kind": "clock", "timelow": 8.0, "timehigh": 8.0, "increment": 0.08}
"""For an engine that knows no limit but its clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a config.toml says of one engine: how it is built or started, its options and its limit.

    `tables` go between the usual ones. `options` are for [engine.options].
    """

    tables: Mapping[str, Table]
    options: Table = field(default_factory=dict)
    time_control: Table = field(default_factory=lambda: _MOVETIME)

    @property
    def build(self) -> Table:
        return self.tables["build"]

    @property
    def command(self) -> tuple[str, ...]:
        """What builds it; empty for cargo and for a finished engine."""
        command = self.build.get("command")
        return command if isinstance(command, tuple) else ()

    def with_build(self, **keys: object) -> "Setup":
        """With these keys in [build]."""
        return replace(self, tables={**self.tables, "build": {**self.build, **keys}})


def setup_of_source(
    source: PurePath | str, constants_file: str, engine: EngineSource | None = None
) -> Setup:
    """For an engine's source; paths are written with slashes."""
    build: dict[str, object] = {
        "source_path": PurePath(source).as_posix(),
        "constants_file": constants_file,
        "engines_path": None,
    }
    for key in ("command", "binary", "package"):
        if value := getattr(engine, key, None):
            build[key] = value
    return Setup(tables={"build": build})


def setup_of_binary(engine: PurePath | str, arguments: Sequence[str] = ()) -> Setup:
    """For a binary that takes its values by `setoption`."""
    tables: dict[str, Table] = {
        "delivery": {"kind": "uci", "engine": PurePath(engine).as_posix()},
        "build": {"engines_path": None},
        "engine": {"arguments": arguments} if arguments else {},
    }
    return Setup(tables=tables)


def starter_config(setup: Setup, shape: Shape) -> str:
    """The text of a config.toml for an engine."""
    games = {
        "games_per_iteration": shape.games,
        "batch_size": min(shape.games, 10),
        "iterations_in_flight": None,
        "book": None,
    }
    tables: dict[str, Table] = {
        "run": {"params": "params.toml"},
        "database": {"url": None},
        "time_control": setup.time_control,
        "games": games,
        "spsa": {"algorithm": None, "max_iterations": shape.iterations},
        **setup.tables,
        "engine.options": setup.options,
        "validation": {"games": None},
    }
    texts = (_section(name, table) for name, table in tables.items() if table)
    return "\n".join((_HEAD, *texts))


def _section(name: str, table: Table) -> str:
    """A table with its keys, each with its documentation."""
    model = _model(name)
    lines = [f"[{name}]"]
    for key, value in table.items():
        about = _about(model, key)
        lines += [f"# {line}" for line in wrap(about, _WIDTH - 2)]
        lines.append(f"{key} = {_value(model, key, value)}")
    return "\n".join(lines) + "\n"


def _model(name: str) -> type[Section] | None:
    """The model of a table of config.toml; None for a table of options."""
    kind = Sections.model_fields[name].annotation if name in Sections.model_fields else None
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _value(model: type[Section] | None, key: str, value: object) -> str:
    if value is None and model is not None:
        value = getattr(model.model_construct(), key)
    return json.dumps(value, ensure_ascii=False)  # which TOML reads, too


def _about(model: type[Section] | None, key: str) -> str:
    return "" if model is None else model.model_fields[key].description or ""


_INDENT: Mapping[str, Any] = {"subsequent_indent": f"#{'':<13}"}
_PARAMS_HEAD = """\
# What is tuned. The master rewrites only `value`; comments and layout are yours.
#"""
_PARAMS_FOOT = """\
#
# Few parameters that matter beat many: keep ten or twenty, delete the rest.
# constraints = ["probcut_depth_reduction < probcut_min_depth"]
"""
_INSIDE = "numbers inside functions; a table with this `constant` tunes one"
_USUAL_KEYS = ("value", "min", "max", "step", "type", "scale", "active")


def starter_params(
    suggestions: Mapping[str, Iterable[Suggested]],
    functions: Mapping[str, Iterable[str]] | None = None,
    *,
    of_options: bool = False,
) -> str:
    """The text of a params.toml with the suggestions of each file, or of an engine's options.

    What has a reason against it is commented out, and what is not tunable is left out. The lines
    about numbers in `functions` are comments at the end.
    """
    keys = (*_USUAL_KEYS, *(("option",) if of_options else ("constant", "array", "table", "knob")))
    about = (
        fill(_about(ParameterSection, key), _WIDTH, initial_indent=f"#   {key:<10}", **_INDENT)
        for key in keys
    )
    parts = ["\n".join((_PARAMS_HEAD, *about, _PARAMS_FOOT))]
    for file, each in suggestions.items():
        if tables := list(_tables(each)):
            parts += [f"\n# ---- {file} ----\n", *tables]
    for file, lines in (functions or {}).items():
        parts += [f"\n# ---- {file}: {_INSIDE} ----\n", *(f"# {line}\n" for line in lines)]
    return "".join(parts)


def _tables(suggestions: Iterable[Suggested]) -> Iterator[str]:
    group = ""
    for suggested in suggestions:
        if suggested.left_out:
            continue
        if suggested.group and suggested.group != group:
            yield f"\n# {suggested.group}\n"
        group = suggested.group
        yield "\n" + _table(suggested)


def _table(p: Suggested) -> str:
    keys = {"value": p.value, "min": p.minimum, "max": p.maximum, "step": p.step}
    lines = [f"[{p.name}]", *(f"{key} = {_number(number)}" for key, number in keys.items())]
    lines += [f"{key} = {_quoted(text)}" for key, text in p.keys.items()]
    lines += [f"group = {_quoted(p.group)}"] if p.group else []
    if p.reason:
        lines = [f"# {line}" for line in (f"({p.reason})", *lines)]
    return "\n".join(lines) + "\n"


def _number(number: float) -> str:
    return str(number) if isinstance(number, int) else repr(float(f"{number:.6g}"))


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are a part of TOML's."""
    return json.dumps(text, ensure_ascii=False)
