"""How an engine of C or C++ is built, as far as its files tell; its author corrects the guess."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from spsa.security.files import content

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_FOLDERS = (".", "src", "Source", "source")
_MOST_BYTES = 2**20
_PROGRAM = ("EXE", "TARGET", "BIN_NAME", "BINARY", "PROGRAM", "BIN", "NAME", "ENGINE", "OUT")
_NAME = re.compile(rf"^[ \t]*({'|'.join(_PROGRAM)})[ \t]*[:?]?=[ \t]*(\S+)", re.MULTILINE)
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
    return _make(root) or _cmake(root) or _compiler(sources)


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
    named = [one for one in _NAME.findall(makefile) if not one[1].endswith((")", ".exe"))]
    found = dict(reversed(named))
    return next((found[name] for name in _PROGRAM if name in found), "engine")


def _cmake(root: Path) -> BuildCommand | None:
    text = _text(root / "CMakeLists.txt")
    if text is None:
        return None
    project = _PROJECT.search(text)
    found = _EXECUTABLE.search(text) or project
    return BuildCommand(("sh", "-c", _CMAKE), f"build/{found[1] if found else 'engine'}")


def _compiler(sources: Sequence[str]) -> BuildCommand:
    units = [name for name in sources if name.endswith((".c", ".cc", ".cpp", ".cxx"))]
    plain = all(name.endswith(".c") for name in units)
    compiler = ("cc", "-O3") if plain else ("c++", "-O3", "-std=c++20")
    return BuildCommand((*compiler, "-o", "engine", *units, "-pthread", "-lm"), "engine")


def _text(path: Path) -> str | None:
    try:
        return content(path, _MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return None
