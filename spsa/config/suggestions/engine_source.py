"""The files of an engine: of its crate or the workspace around that, or of a folder of C or C++."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from spsa.builds.commands import workspace_of
from spsa.core.params import SOURCE_SUFFIXES
from spsa.errors import InvalidInput
from spsa.files import MAX_TEXT, content

_MAX_BYTES = 2**19
"""Of one file: a person does not write a longer one, and its tree takes seconds."""

_MAX_FILES = 2000
_FOREIGN = re.compile(
    "tests?|unit|unittests|bench|benches|benchmarks|examples|fuzz|target|build|tools|scripts|vendor"
    "|node_modules|third_?party|3rdparty|extern|external|dependencies|deps|submodules|fathom"
    "|noobprobe|pyrrhic|incbin|zstd|fmt|datagen|train|trainer|training|tuner"
)
"""Folders of tests, of other programs and of libraries."""

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_FOLDERS = (".", "src", "Source", "source", "engine", "engine/src")
_NAMES = ("EXE", "TARGET", "BIN_NAME", "BINARY", "PROGRAM", "BIN", "NAME", "ENGINE", "OUT")
"""What Makefiles call their program; EXE, as test frameworks have it, first."""
_PROGRAM = re.compile(rf"^[ \t]*({'|'.join(_NAMES)})[ \t]*[:?]?=[ \t]*(\S+)", re.MULTILINE)
_CMAKE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build"
_CMAKE_PROGRAM = re.compile(r"(?:add_executable|project)\s*\(\s*([\w.+-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSource:
    """The folder to build from.

    `root` is that of the workspace where the crate is its member `package`. Without cargo,
    `command` makes `binary`. `texts` are the files of the engine by path from `root`; `unread`
    tells of each other file why it was not read.
    """

    root: Path
    package: str | None = None
    binary: str | None = None
    command: tuple[str, ...] = ()
    texts: Mapping[str, str]
    unread: Mapping[str, str]


def read_source(source: Path) -> EngineSource:
    """Every file below `source` that is a part of the engine and no test.

    Raises InvalidInput where there is neither a Cargo.toml that can be read nor a file of C or C++.
    """
    if not (source / "Cargo.toml").exists():
        texts, unread = _read(source, tuple(f".{s}" for s in SOURCE_SUFFIXES if s != "rs"))
        if texts or unread:
            command, binary = _command(source, [*texts, *unread])
            return EngineSource(
                root=source, command=command, binary=binary, texts=texts, unread=unread
            )
    package = _package(source)
    root = workspace_of(source.resolve())
    texts, unread = _read(root or source, (".rs",))
    return EngineSource(
        root=root or source, package=package if root else None, texts=texts, unread=unread
    )


def _package(folder: Path) -> str | None:
    remedy = "name the folder that holds the engine's Cargo.toml, or its files of C or C++"
    try:
        manifest = tomllib.loads(content(folder / "Cargo.toml", MAX_TEXT).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput.of(folder, "SOURCE", "has no Cargo.toml", remedy) from None
    except (OSError, ValueError) as error:
        found = f"has a Cargo.toml that cannot be read: {error}"
        raise InvalidInput.of(folder, "SOURCE", found, remedy) from None
    name = manifest.get("package", {}).get("name")
    return None if name is None else str(name)


def _read(root: Path, suffixes: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the files, and why others cannot be read."""
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    for path in _files(root, suffixes):
        name = path.relative_to(root).as_posix()
        try:
            if len(texts) == _MAX_FILES:
                raise OSError(0, f"there are more than {_MAX_FILES:,} files")
            texts[name] = content(path, _MAX_BYTES).decode("utf-8")
        except OSError as error:
            unread[name] = error.strerror or str(error)
        except UnicodeDecodeError:
            unread[name] = "it is not UTF-8"
    return texts, unread


def _files(root: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if not _FOREIGN.fullmatch(name) and name[0] != ".")
        for name in sorted(names):
            if name.endswith(suffixes) and not name.startswith(("build.rs", "tests.")):
                yield Path(folder, name)


def _command(root: Path, sources: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """What to run in the folder of the source, and the path of the binary that it makes.

    From a Makefile or a CMakeLists.txt, else one call of the compiler for all `sources`.
    """
    for folder in _FOLDERS:
        for name in _MAKEFILES:
            if (text := _text(root / folder / name)) is not None:
                inside = () if folder == "." else ("-C", folder)
                return ("make", *inside), str(PurePosixPath(folder) / _made_by(text))
    if (text := _text(root / "CMakeLists.txt")) is not None:
        made = sorted(_CMAKE_PROGRAM.finditer(text), key=lambda found: found[0][0])
        return ("sh", "-c", _CMAKE), f"build/{made[0][1] if made else 'engine'}"
    units = [name for name in sources if name.endswith((".c", ".cc", ".cpp", ".cxx"))]
    plain = all(name.endswith(".c") for name in units)
    compiler = ("cc", "-O3") if plain else ("c++", "-O3", "-std=c++20")
    program = "engine-to-tune" if (root / "engine").exists() else "engine"
    return (*compiler, "-o", program, *units, "-pthread", "-lm"), program


def _made_by(makefile: str) -> str:
    named = [one for one in _PROGRAM.findall(makefile) if not one[1].endswith((")", ".exe"))]
    found = dict(reversed(named))
    return next((found[name] for name in _NAMES if name in found), "engine")


def _text(path: Path) -> str | None:
    try:
        return content(path, MAX_TEXT).decode("utf-8", errors="replace")
    except OSError:
        return None
