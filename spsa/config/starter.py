"""What `init` writes for an engine: its files, the first config.toml and the first params.toml."""

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path, PurePath, PurePosixPath
from statistics import mode
from textwrap import fill, wrap
from typing import Any, get_args

import tomli_w

from spsa.builds.commands import workspace_of
from spsa.config.settings import Sections
from spsa.config.space import ParameterSection
from spsa.config.suggestions import Suggested
from spsa.core.parameter import SOURCE_SUFFIXES, Number
from spsa.errors import InvalidInput
from spsa.files import MAX_TEXT, content, encoding_of
from spsa.planning.plan_inputs import Shape
from spsa.text import closest

_MAX_BYTES = 2**19  # of one file: a person does not write a longer one
_FOREIGN = re.compile(
    "(\\w+[-_])?tests?|unit|unittests|bench\\w*|examples|fuzz|target|build|(\\w+[-_])?tools|scripts|vendor"
    "|node_modules|third_?party|3rdparty|extern|external|dependencies|deps|submodules|fathom"
    "|noobprobe|pyrrhic|incbin|zstd|fmt|datagen|train|trainer|training|tuner"
)
"""Folders of tests, of other programs and of libraries."""
_LIBRARIES = re.compile("target|build|vendor|node_modules|third_?party|3rdparty|extern(al)?")

_FOLDERS = (".", "src", "Source", "source", "engine", "engine/src")
_NAMES = ("EXE", "TARGET", "BIN_NAME", "BINARY", "PROGRAM", "BIN", "NAME", "ENGINE", "OUT")
"""What Makefiles call their program; EXE, as test frameworks have it, first."""
_PROGRAM = re.compile(
    rf"^[ \t]*({'|'.join(_NAMES)})[ \t]*[:?]?=[ \t]*[\"']?(?!-)([^\s\"']+)", re.MULTILINE
)
_CMAKE_TESTS = re.compile(r'(?i)\boption\s*\(\s*(\w*tests?(?:ing)?)\s(?:"[^"]*"|[^()"])*\bon\s*\)')
"""Tests that are built unless they are switched off, often with a library that is downloaded."""
_CMAKE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build"
_CMAKE_PROGRAM = re.compile(r"(?:add_executable|project)\s*\(\s*([\w.+-]+)")
_UNITS = (".c", ".cc", ".cpp", ".cxx")
_UNIT = re.compile(r'(?m)^\s*#\s*include\s*"([^"\n]+\.(?:c|cc|cpp|cxx))"')
_FOR_TUNING = r"\w*(?i:tun(?:e|ing|able)|spsa)\w*"
_GUARDED = re.compile(
    rf"^\s*#\s*if(?:def)?\s+(?:defined\s*\(?\s*)?(?P<define>{_FOR_TUNING})"
    r".*?^\s*#\s*(?:else|elif|endif)(?:[^\n]*\n[^\n]*uciok)?"
    rf'|^(?P<indent>[ \t]*)#\[cfg\(feature = "(?P<feature>{_FOR_TUNING})"\)\]\n'
    r"(?:[^\n]*[;,}]$(?:(?:\n[^\n]*){0,2}uciok)?|.*?\n(?P=indent)\})",
    re.DOTALL | re.MULTILINE,
)
"""What is compiled only if a define of C or a feature of cargo asks for it."""
_OPTIONS = re.compile(r"(?m)^(?!\s*(?:#|use\b|mod\b)).*(?i:uci|spin\b|option(?![:<(]|al))")
_RANGE = re.compile(r"(?m)^\s*(\w+)\([\w:\[\]]+(?:, *-?[\d.]+){2}(?:\),|, *-?\d)")
"""A call that gives a name a range, with a value or as a row."""

Table = Mapping[str, Any]
"""Values by key; None is the default of the model."""


@dataclass(frozen=True, slots=True)
class EngineFiles:
    """The files of an engine: of its crate or the workspace around that, or of C or C++.

    `root` is the folder to build from, with the keys `build` of [build]. `texts` are the files by
    path from `root`; `unread` tells of each other file why it was not read. `switches` turn on UCI
    options for tuning: features of cargo, defines of C.
    """

    root: Path
    build: Table
    texts: Mapping[str, str]
    unread: Mapping[str, str]
    switches: Sequence[str]


_SOURCE = "name the folder of Cargo.toml, or of the files of C or C++; or give --engine BINARY"
_OTHER_LANGUAGES = {"cs": "C#", "d": "D", "go": "Go", "java": "Java", "nim": "Nim", "zig": "Zig"}
BY_OPTIONS = "build it with its numbers as UCI options, then `spsa-master init --engine BINARY`"


def read_source(source: Path) -> EngineFiles:
    """Every file below `source` that is a part of the engine and no test.

    Raises InvalidInput where there is neither a Cargo.toml that can be read nor a file of C or C++,
    and where another language has more files than these.
    """
    if not source.is_dir():
        near = closest(source.name, (one.name for one in source.parent.glob("*") if one.is_dir()))
        remedy = f"did you mean {source.parent / near}?" if near else _SOURCE
        raise InvalidInput.of(source, "SOURCE", "is no folder", remedy)
    if not (source / "Cargo.toml").exists():
        suffixes = (f".{s}" for s in (*SOURCE_SUFFIXES, *_OTHER_LANGUAGES) if s != "rs")
        files = [*_files(source, tuple(suffixes), _FOREIGN)]
        others = [path for path in files if path.suffix[1:] not in SOURCE_SUFFIXES]
        if 2 * len(others) > len(files):
            language = _OTHER_LANGUAGES[mode(path.suffix[1:] for path in others)]
            found = f"is written in {language}, whose constants are not read"
            raise InvalidInput.of(source, "SOURCE", found, BY_OPTIONS)
        texts, unread = _read(source, (path for path in files if path not in others))
        if texts or unread:
            command, binary = _command(source, {**dict.fromkeys(unread, ""), **texts})
            build: Table = {"command": command, "binary": binary}
            return EngineFiles(source, build, texts, unread, _switches(source))
        inner = [*source.glob("*/Cargo.toml")]
        source = inner[0].parent if len(inner) == 1 else source
    package, workspace = _package(source), workspace_of(source.resolve())
    root, build = workspace or source, {"package": package} if workspace else {}
    texts, unread = _read(root, _files(root, (".rs",), _FOREIGN))
    return EngineFiles(root, build, texts, unread, _switches(root))


def _switches(root: Path) -> list[str]:
    """The features and defines beside what makes options, or macros for ranges, also of tools."""
    suffixes = (*(f".{suffix}" for suffix in SOURCE_SUFFIXES), "Cargo.toml")
    texts, _ = _read(root, _files(root, suffixes, _LIBRARIES))
    whole = "\n".join(texts.values())
    makers = set(_RANGE.findall(whole))
    found = {
        _switch(guarded["feature"], guarded["define"], texts)
        for guarded in _GUARDED.finditer(whole)
        if _OPTIONS.search(guarded[0]) or makers.intersection(re.findall(r"\w+(?=\()", guarded[0]))
    }
    return sorted(found - {""})


def _switch(feature: str | None, define: str, texts: Mapping[str, str]) -> str:
    """How it is turned on; "" for a feature that no manifest has."""
    own = rf"(?<!ifndef {define}\n)^\s*#\s*define\s+{define}\b"
    own = rf"^{feature}\s*=" if feature else own
    file = next((name for name, text in texts.items() if re.search(own, text, re.MULTILINE)), "")
    if feature:
        return f"--features {feature}" if file else ""
    return f"`#define {define}` in {file}" if file else f"-D{define}"


def _package(folder: Path) -> str | None:
    try:
        manifest = tomllib.loads(content(folder / "Cargo.toml", MAX_TEXT).decode("utf-8"))
    except (OSError, ValueError) as error:
        found = f"has no Cargo.toml that can be read: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput.of(folder, "SOURCE", found, _SOURCE) from None
    name: str | None = manifest.get("package", {}).get("name")
    return name


def _read(root: Path, files: Iterable[Path]) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the files by their paths from `root`, and why others cannot be read."""
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    for path in files:
        name = path.relative_to(root).as_posix()
        try:
            source = content(path, _MAX_BYTES)
            texts[name] = source.decode(encoding_of(source))
        except (OSError, UnicodeDecodeError) as error:
            unread[name] = getattr(error, "strerror", None) or "it is not UTF-8"
    return texts, unread


def _files(root: Path, suffixes: tuple[str, ...], foreign: re.Pattern[str]) -> Iterator[Path]:
    """Those that end so, and are in no `foreign` folder."""
    for folder, inner, names in os.walk(root):
        own = (name for name in inner if not foreign.fullmatch(name.lower()) and name[0] != ".")
        inner[:] = sorted(own)
        for name in sorted(names):
            if name.endswith(suffixes) and not name.startswith(("build.rs", "tests.")):
                yield Path(folder, name)


def _command(root: Path, sources: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """What to run in the folder of the source, and the path of the binary that it makes.

    From a Makefile or a CMakeLists.txt, else one call of the compiler for all `sources`, without
    those that another one includes.
    """
    below = sorted({name.split("/")[0] for name in sources if "/" in name})
    cmake = _text(root / "CMakeLists.txt")
    for folder in (*_FOLDERS, *(below if cmake is None else ())):
        if (text := makefile(root / folder)) is not None:
            inside = () if folder == "." else ("-C", folder)
            return ("make", *inside), str(PurePosixPath(folder) / _made_by(text))
    if cmake is not None:
        made = sorted(_CMAKE_PROGRAM.finditer(cmake), key=lambda found: found[0][0])
        own = [found for found in made if not re.search("(?i)test|tune|bench", found[1])]
        name = own[0][1] if own else "engine"
        off = "".join(f" -D{one}=OFF" for one in _CMAKE_TESTS.findall(cmake))
        target = f" --target {name}" if own and own[0][0][0] == "a" and len(made) > 2 else ""
        return ("sh", "-c", _CMAKE.replace(" &&", f"{off} &&") + target), f"build/{name}"
    included = {PurePosixPath(n).name for text in sources.values() for n in _UNIT.findall(text)}
    compiled = (name for name in sources if name.endswith(_UNITS))
    units = [name for name in compiled if PurePosixPath(name).name not in included]
    plain = all(name.endswith(".c") for name in units)
    compiler = ("cc", "-O3") if plain else ("c++", "-O3", "-std=c++20")
    return (*compiler, "-o", "engine-to-tune", *units, "-pthread", "-lm"), "engine-to-tune"


def makefile(folder: Path) -> str | None:
    """The text of the Makefile that make takes in a folder, if CMake has not left it there."""
    texts = (_text(folder / name) for name in ("GNUmakefile", "makefile", "Makefile"))
    own = (text for text in texts if text is not None and "CMAKE generated file" not in text)
    return next(own, None)


def _made_by(makefile: str) -> str:
    named = [one for one in _PROGRAM.findall(makefile) if not re.search(r"\$|\.exe$", one[1])]
    return next((program for known in _NAMES for name, program in named if name == known), "engine")


def _text(path: Path) -> str | None:
    try:
        return content(path, MAX_TEXT).decode("utf-8", errors="replace")
    except OSError:
        return None


_HEAD = """\
# What is played, by which rule, and how engines are built. Relative paths start at this file.
# `spsa-master plan` says what it costs and recovers. docs/configuration.md has all keys.
"""
_WIDTH = 100
_MOVETIME: Table = {"kind": None, "timelow": None, "timehigh": None}
CLOCK: Table = {"kind": "clock", "timelow": 8.0, "timehigh": 8.0, "increment": 0.08}
"""For an engine that knows no limit but its clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a config.toml says of one engine: how it is built or started, its options and its limit.

    `options` are for [engine.options].
    """

    build: Table
    delivery: Table = field(default_factory=dict)
    engine: Table = field(default_factory=dict)
    options: Table = field(default_factory=dict)
    time_control: Table = field(default_factory=lambda: _MOVETIME)

    @property
    def command(self) -> tuple[str, ...]:
        """What builds it; empty for cargo and for a finished engine."""
        return tuple(self.build.get("command", ()))

    def with_build(self, **keys: object) -> "Setup":
        """With these keys in [build]."""
        return replace(self, build={**self.build, **keys})


def setup_of_source(source: PurePath | str, constants_file: str, build: Table) -> Setup:
    """For an engine's source, with further keys of [build]; paths are written with slashes."""
    place = {"source_path": PurePath(source).as_posix(), "constants_file": constants_file}
    return Setup(build={**place, "engines_path": None, **build})


def setup_of_binary(engine: PurePath | str, arguments: Sequence[str] = ()) -> Setup:
    """For a binary that takes its values by `setoption`."""
    return Setup(
        build={"engines_path": None},
        delivery={"engine": PurePath(engine).as_posix()},
        engine={"arguments": arguments} if arguments else {},
    )


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
        "delivery": setup.delivery,
        "build": setup.build,
        "engine": setup.engine,
        "engine.options": setup.options,
        "validation": {"games": None},
    }
    texts = (_section(name, table) for name, table in tables.items() if table)
    return "\n".join((_HEAD, *texts))


def _section(name: str, table: Table) -> str:
    """A table with its keys, each with its documentation; a table of options has none."""
    model: Any = getattr(Sections.model_fields.get(name), "annotation", None)
    model, *_ = *get_args(model), model  # of the tables of an array
    lines = [f"[{name}]"]
    for key, value in table.items():
        if model is not None:
            about = model.model_fields[key].description or ""
            lines += [f"# {line}" for line in wrap(about, _WIDTH - 2)]
            value = getattr(model.model_construct(), key) if value is None else value
        lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")  # TOML reads it, too
    return "\n".join(lines) + "\n"


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
    keys = (*_USUAL_KEYS, *(("option",) if of_options else ("constant", "array", "knob")))
    known = ParameterSection.model_fields
    texts = (f"{key:<10}{known[key].description}" for key in keys)
    about = (fill(t, _WIDTH, initial_indent="#   ", subsequent_indent=f"#{'':13}") for t in texts)
    parts = ["\n".join((_PARAMS_HEAD, *about, _PARAMS_FOOT))]
    for file, each in suggestions.items():
        if tables := list(_tables(each)):
            parts += [f"\n# ---- {file} ----\n", *tables]
    for file, lines in (functions or {}).items():
        parts += [f"\n# ---- {file}: {_INSIDE} ----\n", *(f"# {line}\n" for line in lines)]
    return "".join(parts)


def _tables(suggestions: Iterable[Suggested]) -> Iterator[str]:
    kept = (one for one in suggestions if not one.left_out)
    for group, each in groupby(kept, key=lambda one: one.group):
        yield f"\n# {group}\n" if group else ""
        yield from ("\n" + _table(one) for one in each)


def _table(p: Suggested) -> str:
    numbers = {"value": p.value, "min": p.minimum, "max": p.maximum, "step": p.step}
    table = {key: _number(number, p.value) for key, number in numbers.items()}
    group = {"group": p.group} if p.group else {}
    text = tomli_w.dumps({p.name: {**table, **p.keys, **group}})
    if not p.reason:
        return text
    return "".join(f"# {line}\n" for line in (f"({p.reason})", *text.splitlines()))


def _number(number: Number, exact: Number) -> Number:
    """Six digits, but for what is the source's number: that has its own."""
    return number if isinstance(number, int) or number == exact else float(f"{number:.6g}")
