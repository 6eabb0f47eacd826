"""The texts of the first config.toml and params.toml, which `init` writes for an engine."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath

from spsa.algorithms import algorithms
from spsa.config.settings import GamesConfig
from spsa.config.suggestions import EngineSource, Suggested
from spsa.config.tuning import DEFAULT_ALGORITHM
from spsa.planning.plan_inputs import Shape

_CONFIG = """\
# What is played, by which rule, and how engines are built. Relative paths start at this file.
# Every key is optional, except where it says so; what stands here are the defaults, except for the
# size of the run: `spsa-master plan` says what that costs and recovers on your machines.

[run]
# name = "margins"              # default: this folder's name
# seed = 1                      # default: drawn when the run begins
# priority = 0                  # of several runs of a database the highest is served first,
# share = 1.0                   # and those of one priority by their shares of the slots

[database]
url = "sqlite:///spsa.db"       # one machine; a fleet: postgresql://user@host:5432/database
                                # DATABASE_URL goes before it: keep passwords there

[time_control]
kind = "movetime"               # or "clock" (with increment), "nodes", "depth" (with low and high)
timelow = 0.25                  # seconds; drawn for each pair of games
timehigh = 1.0

[games]
{per_iteration:<32}# even: games come in pairs with colours swapped
{batch:<32}# games a slot claims at a time, at most
iterations_in_flight = "auto"   # as many as keep all workers busy, or a number
book = "builtin"                # or "builtin:unbalanced", or the path of an EPD or PGN file

[spsa]
algorithm = {algorithm}           # finds its own gains; others: {others}
{iterations:<32}# {games:,} games in all

{engines}
[engine.options]                # sent to both engines by setoption
# Hash = 16

[adjudication]
# draw = false
# resign = false
# max_moves = 200

[validation]
games = 0                       # played at the end: the tuned values against the first ones
"""

_BUILD = """\
[build]
source_path = {source}          # required: {folder}
constants_file = {constants}
engines_path = "engines"        # where binaries are kept; workers must see it
{how}
# at_once = 2                   # iterations whose engines are built at a time
# distribute = "database"       # for workers that do not see engines_path
# where = "worker"              # or let a worker of each kind of machine build
"""

_BY_CARGO = """\
{binary:<32}# when cargo makes more than one
{package:<32}# the member of a workspace that is the engine
# flags = ["--release"]"""

_BY_COMMAND = """\
command = {command}
                                # it builds the engine: correct it if it is another
{binary:<32}# what it makes, from source_path"""

_UCI = """\
[delivery]
kind = "uci"                    # values are sent by setoption, and nothing is built
{engine:<32}# required: the one binary that plays both sides

[build]
engines_path = "engines"        # where a copy of it is kept; workers must see it
# distribute = "database"       # for workers that do not see engines_path
"""

_PARAMS_OF_OPTIONS = """\
# What is tuned. The master rewrites only `value`; comments and layout are yours.
#
#   [name]            the engine's option of this name, unless told otherwise:
#   option = "Name"   as the engine declares it
#   value, min, max   where it starts and may go, inside the range that the engine declares
#   step              how far plus and minus lie from it; should be worth one to three Elo
#   scale = 1000      sends 0.75 as 750
#   active = false    sends it without tuning it
#
# Few parameters that matter beat many: keep ten or twenty, delete the rest.
# constraints = ["probcut_depth_reduction < probcut_min_depth"]
"""

_PARAMS = """\
# What is tuned. The master rewrites only `value`; comments and layout are yours.
#
#   [name]            the constant NAME, unless told otherwise:
#   constant = "NAME[2]", "NAME.1", "NAME.field", "scope::NAME" or "src/search.rs::NAME"
#              "function::variable.0" is the first number that a variable is made of
#   value, min, max   where it starts and may go
#   step              how far plus and minus lie from it; should be worth one to three Elo
#   type = "float"    for what is no whole number; scale = 1000 writes 0.75 as 750
#   array, knob       NAME[i] = base + i * per_index:  knob = "base" or "per_index"
#   table, knob       amplitude spreads a table about its mean, bias moves all of it
#   active = false    builds it in without tuning it
#
# Few parameters that matter beat many: keep ten or twenty, delete the rest.
# constraints = ["probcut_depth_reduction < probcut_min_depth"]
"""


def starter_config(
    source: PurePath | str, constants_file: str, shape: Shape, engine: EngineSource | None = None
) -> str:
    """The text of a config.toml for an engine's source; paths are written with slashes."""
    command = () if engine is None else engine.command
    how = _BY_COMMAND if command else _BY_CARGO
    build = _BUILD.format(
        source=_quoted(PurePath(source).as_posix()),
        folder="where the command runs" if command else "the folder of the engine's Cargo.toml",
        constants=_quoted(constants_file),
        how=how.format(
            command=json.dumps(command, ensure_ascii=False),
            binary=_set("binary", None if engine is None else engine.binary),
            package=_set("package", None if engine is None else engine.package),
        ),
    )
    return _config(build, shape)


def starter_uci_config(engine: PurePath | str, shape: Shape, arguments: Sequence[str] = ()) -> str:
    """The text of a config.toml for a binary that takes its values by `setoption`."""
    text = _UCI.format(engine=f"engine = {_quoted(PurePath(engine).as_posix())} ")
    if arguments:
        text += f"\n[engine]\narguments = {json.dumps(arguments, ensure_ascii=False)}\n"
    return _config(text, shape)


def _set(key: str, value: str | None) -> str:
    return f"{key} = {_quoted(value)} " if value else f'# {key} = "engine"'


def _config(engines: str, shape: Shape) -> str:
    return _CONFIG.format(
        algorithm=_quoted(DEFAULT_ALGORITHM),
        others=", ".join(name for name in algorithms() if name != DEFAULT_ALGORITHM),
        per_iteration=f"games_per_iteration = {shape.games}",
        batch=f"batch_size = {min(shape.games, GamesConfig().batch_size)}",
        iterations=f"max_iterations = {shape.iterations}",
        games=shape.games * shape.iterations,
        engines=engines,
    )


def starter_params(
    suggestions: Mapping[str, Iterable[Suggested]], *, of_options: bool = False
) -> str:
    """The text of a params.toml with the suggestions of each file, or of an engine's options.

    What has a reason against it is commented out, and what is not tunable is left out.
    """
    parts = [_PARAMS_OF_OPTIONS if of_options else _PARAMS]
    for file, each in suggestions.items():
        if tables := list(_tables(each)):
            parts += [f"\n# ---- {file} ----\n", *tables]
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
