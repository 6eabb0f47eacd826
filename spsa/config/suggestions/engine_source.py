"""The files of an engine: of its crate or the workspace around that, or of a folder of C or C++."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from spsa.builds.cargo import workspace_of
from spsa.core.params import SOURCE_SUFFIXES
from spsa.errors import Fault, InvalidInput
from spsa.files import content

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_FOLDERS = (".", "src", "Source", "source", "engine", "engine/src")
_MAX_BYTES_OF_MAKEFILE = 2**20
_NAMES = ("EXE", "TARGET", "BIN_NAME", "BINARY", "PROGRAM", "BIN", "NAME", "ENGINE", "OUT")
_PROGRAM = re.compile(rf"^[ \t]*({'|'.join(_NAMES)})[ \t]*[:?]?=[ \t]*(\S+)", re.MULTILINE)
_EXECUTABLE = re.compile(r"add_executable\s*\(\s*([\w.+-]+)")
_PROJECT = re.compile(r"project\s*\(\s*([\w.+-]+)")
_CMAKE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build"


@dataclass(frozen=True, slots=True)
class BuildCommand:
    """What to run in the folder of the source, and the path of the binary that it makes."""

    command: tuple[str, ...]
    binary: str


def find_command(root: Path, sources: Sequence[str]) -> BuildCommand:
    """From a Makefile or a CMakeLists.txt, else one call of the compiler for all `sources`."""
    return _make(root) or _cmake(root) or _compiler(root, sources)


def _make(root: Path) -> BuildCommand | None:
    for folder in _FOLDERS:
        for name in _MAKEFILES:
            if (text := _text(root / folder / name)) is not None:
                inside = PurePosixPath(folder)
                where = () if folder == "." else ("-C", folder)
                return BuildCommand(("make", *where), str(inside / _made_by(text)))
    return None


def _made_by(makefile: str) -> str:
    """What a Makefile calls its program; with EXE, as test frameworks have it, first."""
    named = [one for one in _PROGRAM.findall(makefile) if not one[1].endswith((")", ".exe"))]
    found = dict(reversed(named))
    return next((found[name] for name in _NAMES if name in found), "engine")


def _cmake(root: Path) -> BuildCommand | None:
    text = _text(root / "CMakeLists.txt")
    if text is None:
        return None
    project = _PROJECT.search(text)
    found = _EXECUTABLE.search(text) or project
    return BuildCommand(("sh", "-c", _CMAKE), f"build/{found[1] if found else 'engine'}")


def _compiler(root: Path, sources: Sequence[str]) -> BuildCommand:
    units = [name for name in sources if name.endswith((".c", ".cc", ".cpp", ".cxx"))]
    plain = all(name.endswith(".c") for name in units)
    compiler = ("cc", "-O3") if plain else ("c++", "-O3", "-std=c++20")
    program = "engine-to-tune" if (root / "engine").exists() else "engine"
    return BuildCommand((*compiler, "-o", program, *units, "-pthread", "-lm"), program)


def _text(path: Path) -> str | None:
    try:
        return content(path, _MAX_BYTES_OF_MAKEFILE).decode("utf-8", errors="replace")
    except OSError:
        return None


_MAX_BYTES_OF_SOURCE = 2**19
"""Bytes of one file: a person does not write a longer one, and its tree takes seconds."""

_MAX_FILES = 2000
_FOREIGN = (
    *("tests", "test", "unit", "unittests", "benches", "bench", "benchmarks", "examples", "fuzz"),
    *("target", "build", "tools", "scripts", "vendor", "node_modules", "third_party", "thirdparty"),
    *(
        "3rdparty",
        "external",
        "extern",
        "dependencies",
        "deps",
        "submodules",
        "fathom",
        "noobprobe",
    ),
    *("pyrrhic", "incbin", "zstd", "fmt", "datagen", "train", "trainer", "training", "tuner"),
)
_OF_C = tuple(f".{suffix}" for suffix in SOURCE_SUFFIXES if suffix != "rs")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSource:
    """The folder to build from, and the binary that is the engine, if it has to be named.

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
        texts, unread = _read(source, _OF_C)
        if texts or unread:
            made = find_command(source, [*texts, *unread])
            return EngineSource(
                root=source, binary=made.binary, command=made.command, texts=texts, unread=unread
            )
    manifest = _manifest(source)
    root = workspace_of(source.resolve())
    texts, unread = _read(root or source, (".rs",))
    return EngineSource(
        root=root or source,
        package=None if root is None else _package(manifest),
        binary=None if root is None else _binary(source, manifest),
        texts=texts,
        unread=unread,
    )


def _package(manifest: Mapping[str, object]) -> str | None:
    package = manifest.get("package")
    return str(package["name"]) if isinstance(package, dict) and "name" in package else None


def _read(root: Path, suffixes: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the files, and why others cannot be read."""
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    for path in _files(root, suffixes):
        name = path.relative_to(root).as_posix()
        try:
            if len(texts) == _MAX_FILES:
                raise OSError(0, f"there are more than {_MAX_FILES:,} files")
            texts[name] = content(path, _MAX_BYTES_OF_SOURCE).decode("utf-8")
        except OSError as error:
            unread[name] = error.strerror or str(error)
        except UnicodeDecodeError:
            unread[name] = "it is not UTF-8"
    return texts, unread


def _files(root: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(name for name in inner if name not in _FOREIGN and name[0] != ".")
        for name in sorted(names):
            if name.endswith(suffixes) and not name.startswith(("build.rs", "tests.")):
                yield Path(folder, name)


def _manifest(folder: Path) -> Mapping[str, object]:
    path = folder / "Cargo.toml"
    try:
        return tomllib.loads(content(path, 2**20).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise _refused(folder, "has no Cargo.toml") from None
    except (OSError, ValueError) as error:
        raise _refused(folder, f"has a Cargo.toml that cannot be read: {error}") from None


def _binary(source: Path, manifest: Mapping[str, object]) -> str | None:
    """The name of the member's own binary; None where cargo has to tell."""
    bins = manifest.get("bin")
    if isinstance(bins, list) and len(bins) == 1 and isinstance(bins[0], dict):
        return str(bins[0].get("name"))
    main = (source / "src" / "main.rs").is_file() and not bins
    return _package(manifest) if main else None


def _refused(source: Path, found: str) -> InvalidInput:
    remedy = "name the folder that holds the engine's Cargo.toml, or its files of C or C++"
    return InvalidInput(
        [Fault(file=str(source), line=None, name="SOURCE", found=found, remedy=remedy)]
    )
