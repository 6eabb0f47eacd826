"""Tries a new engine before its first run: a build, the handshake and a few searches.

A failure whose remedy is one plain value of config.toml is mended, and the engine is tried again.
Otherwise the user reads the last words of the tool that failed, and what may help.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from spsa.builds.builder import BUILD_SECONDS, NODES_PER_SECOND, keep_measured
from spsa.builds.smoke import against_nodes, declared_options, engine_under_test, longest_search
from spsa.config.settings import Config
from spsa.config.starter import CLOCK, Setup, makefile
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed, InvalidInput
from spsa.master.delivery_setup import temporary_delivery, work_folder
from spsa.master.start import checked_space

_MOST_TRIES = 6
_LAST_LINES = 12
_OPTIONS = {"Threads": 1, "OwnBook": False, "Hash": 16}
"""What makes games of equal conditions, of an engine that declares it."""

_TARGETS = (
    *("build", "release", "all", "native", "basic", "openbench", "engine"),
    *("linux", "gcc", "unix-gcc"),
)
_CALLED = re.compile(r"\bmake(?:\.exe)? +(?:-\S+ +)*([\w-]+)")
_OTHER_TARGETS = re.compile("clean|help|test|bench|install|debug|tun(e|ing)|gen|profile|pgo")
_FAILED_TARGET = re.compile(r"\*\*\* \[(?:[^\]\s]+ )?([\w-]+)\] Error")
_OTHER_BINARIES = re.compile(
    r"data.?gen|data.?shuffle|^gen|train|tun(e|er|ing)|bench|test|tool|perft|convert|book|extract|\.so"
)
_ALL_OF_STD = "-include bits/stdc++.h"  # older libraries include more than they have to
_CHOSEN = re.compile(r"^CC=\S+ CXX='[^']*' ")
_COMPILERS = (
    (r"\bclang(\+\+)?(-\d+)?: (command |)(not found|No such file)", "gcc", "g++"),
    ("__builtin_ia32_|target specific option mismatch", "cc", "c++ -march=native"),
    (
        "was not declared in|is not a member of .std|incomplete type .std:",
        "cc",
        f"c++ {_ALL_OF_STD}",
    ),
    (r":\d+:\d+: error: |internal compiler error|unrecognized command-line", "clang", "clang++"),
)
"""Failures, and compilers of C and C++ that may be without them."""
_SUBCOMMAND = re.compile(r"(?m)^[ |]*std(?:err|out): +uci\b")
"""The usage of a program that is an engine only by a word behind its name."""
_CHOICES = re.compile(r"name one of: (.+)")
_ADVICE = (
    ("git-lfs", "a file is a pointer to what Git LFS keeps: `git lfs pull` in the source"),
    (r"toolchain .* not installed", "install it, or set RUSTUP_TOOLCHAIN to one that is here"),
    (
        r"E0554|channel of|requires rustc|newer version of Cargo",
        "it needs another Rust: `rustup toolchain install nightly`, then set RUSTUP_TOOLCHAIN",
    ),
    (
        r"resolve (host|address)|Name or service not known|Could not connect|download",
        "it downloads something, and that failed: put it into the source first",
    ),
    (
        r"(No such file|not find|couldn't read|not found|No rule).*(\.(nnue|bin|net)\b|weights)"
        r"|\.(nnue|bin|net)\b.*(No such file|not found|be opened|no known rule)"
        r"|s:\d+: Error: file not found:",
        "a network that it includes is missing: put that into the source",
    ),
    (
        r"cannot find -l|unsupported linker|unable to find library|invalid linker|fuse-ld|libclang",
        "a library or a linker is missing: install it, or correct [build] command",
    ),
    (
        r"unrecognized command-line option",
        "it is for another compiler: install that, or correct [build] command",
    ),
    (
        r"fatal error: '?[a-z_]+'?[: ]",
        "the compiler is too old for this header of C++: name a newer one in [build] command",
    ),
    (r"not found|No such file", "install what is missing, or correct [build] command"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An engine that plays: its setup, the seconds of the build, and its speed, 0 where not told.

    `against_nodes` says why `go nodes` is no limit for it.
    """

    setup: Setup
    build_seconds: float
    nodes_per_second: float
    against_nodes: str


class TrialFailed(BuildFailed):
    """The engine cannot play yet; has the last words of what failed, and what may help."""


Write = Callable[[Setup], Config]  # writes config.toml with a setup, and reads it


def try_engine(write: Write, setup: Setup, tell: Callable[[str], None]) -> Trial:
    """Build the engine and search with it; `tell` hears what is changed in its setup.

    Raises TrialFailed, and InvalidInput for what is wrong in params.toml.
    """
    seen = [setup]
    while True:
        config = write(setup)
        try:
            return _tried(config, setup, write)
        except (BuildFailed, InvalidInput) as error:
            tree = work_folder(config) / "plus" / "tree"
            made = [] if config.delivery.engine else list(_executables(tree))
            mended = _mended(str(error), setup, made, tree)
            following = next((one for one in mended if one not in seen), None)
            if following is None or len(seen) == _MOST_TRIES:
                said = str(error) if config.delivery.engine else _last_words(str(error))
                raise TrialFailed(said) from error
            seen.append(following)
            tell(f"{_reason(error)}: trying {_difference(setup, following)}")
            setup = following


def _tried(config: Config, setup: Setup, write: Write) -> Trial:
    space = checked_space(config)
    values = space.rounded(space.start())
    with temporary_delivery(config, space) as delivery:
        began = time.monotonic()
        sides = delivery.prepare(values, values)
        built = time.monotonic() - began
        command = [sides.plus.engine.path, *config.game_settings.engine_arguments]
        own = _options(declared_options(Path(command[0]), command[1:]), setup)
        setup = replace(setup, options={**own, **setup.options})
        settings = write(setup).game_settings
        limit = longest_search(settings.time_control)
        options = {**settings.common_options, **sides.plus.options_here}
        with engine_under_test(command, options) as engine:
            reply = engine.search(b"position startpos", limit)
        tried = Trial(
            setup=setup,
            build_seconds=built,
            nodes_per_second=reply.nodes / reply.seconds,
            against_nodes=against_nodes(command, options, reply),
        )
    work = work_folder(config)
    keep_measured(work, BUILD_SECONDS, 2 * built)  # a run builds two beside each other
    if tried.nodes_per_second:
        keep_measured(work, NODES_PER_SECOND, tried.nodes_per_second)
    return tried


def _options(declarations: Declarations, setup: Setup) -> dict[str, object]:
    """What the engine declares of the options that are the same for every engine."""
    return {
        name: value
        for name, value in _OPTIONS.items()
        if name not in setup.options and not declarations.objection(name, str(value).lower())
    }


def _mended(said: str, setup: Setup, made: list[str], tree: Path) -> Iterator[Setup]:
    """Setups that may be without this failure of what was `made` in `tree`, the likeliest first."""
    command = setup.command
    if "set another `kind`" in said or "asked `go movetime" in said:
        yield replace(setup, time_control=CLOCK)
    if choices := _CHOICES.search(said):
        folder = PurePath(str(setup.build["source_path"])).name
        names = sorted(choices[1].split(", "), key=lambda name: name != folder)
        yield from (setup.with_build(binary=name) for name in _likeliest(names))
    if _SUBCOMMAND.search(said):
        yield replace(setup, engine={**setup.engine, "arguments": ["uci"]})
    if command and ("ended without making" in said or "SIGILL" in said):
        yield from (setup.with_build(binary=path) for path in _likeliest(made))
    may_compile = bool(command) and "git-lfs" not in said
    for failure, *compilers in _COMPILERS:
        if may_compile and re.search(failure, said) and shutil.which(compilers[1].split()[0]):
            yield setup.with_build(command=_compiled_by(command, *compilers))
    if command[:1] == ("make",):
        if "config-sanity" in said:
            yield setup.with_build(command=(*command, "ARCH=x86-64-modern"))
        nothing = "ended without making" in said and not made
        failed = _FAILED_TARGET.search(said)
        if nothing or "Error 127" in said or (failed and _OTHER_TARGETS.search(failed[1])):
            plain = command[:3] if command[1:2] == ("-C",) else command[:1]
            targets = _targets(tree, tree.joinpath(*plain[2:]))
            yield from (setup.with_build(command=(*plain, target)) for target in targets)


def _compiled_by(command: Sequence[str], c: str, cxx: str) -> tuple[str, ...]:
    """The command with other compilers, if it is one that `init` writes."""
    if command[0] == "make":
        kept = (word for word in command if not word.startswith(("CC=", "CXX=")))
        return (*kept, f"CC={c}", f"CXX={cxx}")
    if command[:2] == ("sh", "-c") and "cmake" in command[2]:
        return ("sh", "-c", f"CC={c} CXX='{cxx}' {_CHOSEN.sub('', command[2])}")
    compiler = {"cc": c, "c++": cxx}.get(command[0], command[0]).split()
    return (*compiler, *(word for word in command[1:] if word not in _ALL_OF_STD.split()))


def _targets(tree: Path, folder: Path) -> Iterator[str]:
    """The targets that a folder's Makefile has: what its author says to call, then usual ones."""
    text = makefile(folder) or ""
    named = re.findall(r"^([\w-]+)[ \t]*:(?!=)", text, re.MULTILINE)
    notes = (path.read_text(errors="replace") for path in sorted(tree.glob("README*")))
    told = _CALLED.findall("\n".join((*notes, text)))
    own = (target for target in told if not _OTHER_TARGETS.search(target))
    yield from (target for target in dict.fromkeys((*own, *_TARGETS)) if target in named)


def _likeliest(names: list[str]) -> list[str]:
    """Without the tools around an engine, where something else is left."""
    return [name for name in names if not _OTHER_BINARIES.search(Path(name).name)] or names


def _executables(tree: Path) -> Iterator[str]:
    """The programs that the last build left in its copy, as `binary` names them, newest first."""
    found = (Path(folder, name) for folder, _, names in os.walk(tree) for name in names)
    for path in sorted(filter(_is_program, found), key=lambda path: -path.stat().st_mtime):
        yield path.relative_to(tree).as_posix()


def _is_program(path: Path) -> bool:
    """Whether a file is a program, and no part of cmake; one of the source may not be executed."""
    if path.is_symlink() or "CMakeFiles" in path.parts:
        return False
    with path.open("rb") as file:
        head = file.read(17)
    is_linked = os.access(path, os.X_OK) or head[16:] in (b"\x02", b"\x03")
    return is_linked and head[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def _difference(before: Setup, after: Setup) -> str:
    """The key that has changed, as it stands in config.toml."""
    if before.time_control != after.time_control:
        return 'kind = "clock" in [time_control]'
    if before.engine != after.engine:
        return f"[engine] arguments = {json.dumps(after.engine['arguments'])}"
    key = next(key for key, value in after.build.items() if before.build.get(key) != value)
    return f"[build] {key} = {json.dumps(after.build[key], ensure_ascii=False)}"


def _reason(error: BuildFailed | InvalidInput) -> str:
    found = [fault.found for fault in error.faults] if isinstance(error, InvalidInput) else []
    return (found or [str(error).split("\n")[0]])[0].rstrip(":;,. ")


def _last_words(said: str) -> str:
    """The end of what the tool said, and what may help."""
    lines = [line for line in said.splitlines() if not line.startswith("Its values: ")]
    shown = lines
    if len(lines) > _LAST_LINES:  # compilers go on with notes behind what is wrong
        wrong = [line for line in lines[1:-_LAST_LINES] if ": error: " in line]
        shown = [lines[0], *wrong[:2], "...", *lines[-_LAST_LINES:]]
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, said)), "")
    return "\n".join([*shown, *([advice] if advice else [])])
