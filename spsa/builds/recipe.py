"""How an engine is built: a command line and all that it depends on. The usual one is cargo's."""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spsa.builds.commands import (
    Commands,
    configurations_around,
    declared_binaries,
    level_flags,
    made,
    refuse_several,
)
from spsa.builds.requirements import LEVELS, own_level, processor_features
from spsa.builds.tree import Pinned, Tree, TreeEntry, WorkCopy, tree_at
from spsa.core.game_settings import TimeControl
from spsa.errors import BuildFailed, InvalidInput

_DECIDING = re.compile(
    r"RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|RUSTC(_.*)?|RUSTUP_TOOLCHAIN|CARGO_INCREMENTAL"
    r"|CARGO_(?!TARGET_DIR|BUILD_TARGET_DIR|BUILD_JOBS)(BUILD|PROFILE|TARGET|UNSTABLE)_.*"
    r"|(HOST_|TARGET_)?(CC|CXX|AR|CFLAGS|CXXFLAGS)(_.*)?|CPPFLAGS|LDFLAGS|LDLIBS|ARCH"
)
_PROCESSOR = re.compile(r"(?:-march|-mcpu|target-cpu|target-feature)=([-+\w.]+)", re.ASCII)
_HOST = re.compile(r"^host: (\S+)$", re.MULTILINE)
_METADATA = ("cargo", "metadata", "--no-deps", "--format-version", "1")
_CONFIGURATION = re.compile(r"\.cargo/config(\.toml)?$")
_BUILD_FILE = re.compile(r"(^|/)((GNUm|M|m)akefile|CMakeLists\.txt|meson\.build)$|\.(mk|cmake|sh)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to build an engine, by cargo or by another command, and how to test it.

    `flags` go to `cargo build` unchanged. `binary` may be None if the crate, or the `package` of
    its workspace, has just one. With a `command`, that is run instead of cargo, and `binary` is the
    path of what it makes. `timeout` is in seconds. The engine must have a `bench` command with a
    node count (True), may have one (None), or is not asked for one (False). `level` is the level of
    x86-64 to build for, or that the command builds for. In the smoke test the engine, started with
    `arguments`, has to obey the longest search of each of `time_controls` and to accept `options`.
    """

    command: tuple[str, ...] = ()
    package: str | None = None
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    level: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    time_controls: tuple[TimeControl, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """The values of one engine, and the files that hold them: path in the source -> text."""

    files: Mapping[str, str]
    values: Mapping[str, float]


class Compiler:
    """Carries out a recipe on one pinned source; cargo runs in folders below `work`."""

    def __init__(
        self, recipe: Recipe, pinned: Pinned, environment: Mapping[str, str], work: Path
    ) -> None:
        self.recipe = recipe
        self.pinned = pinned
        self.work = work
        self._flags = recipe.flags
        if recipe.level and not recipe.command:
            variables, words = level_flags(recipe.level, environment, self._configurations())
            environment, self._flags = {**environment, **variables}, (*recipe.flags, *words)
        self.commands = Commands(environment)

    def key(self, rendered: Rendered) -> str:
        """The build key: a hash of all that decides the binary, known before it is built.

        The processor is one of these facts: many engines are built for it.
        """
        recipe = self.recipe
        return digest_of(
            {
                "values": dict(rendered.values),
                "files": dict(rendered.files),
                "source": self.pinned.sha256,
                "command": recipe.command or ("cargo", *self._flags),
                "names": (recipe.package, recipe.binary, recipe.target, recipe.level),
                "environment": self._environment(),
                "processor": sorted(processor_features()),
                "tools": self._compilers(),
                "configuration": self._configurations(),
            }
        )

    def compile(self, work_copy: WorkCopy, rendered: Rendered) -> tuple[Path, str]:
        """Build the pinned source with these values: the binary, and the triple that it is for.

        BuildFailed has the compiler's own errors; InvalidInput for a file that the source lacks.
        """
        tree = self.pinned.tree()
        for name, text in rendered.files.items():
            if name not in tree:
                remedy = f"give its path from {self.pinned.checkout.source}"
                raise InvalidInput.of(name, "file", "the engine's source has no such file", remedy)
            tree[name] = TreeEntry(tree[name].path, text=text)
        return (self._by_command if self.recipe.command else self._by_cargo)(work_copy, tree)

    def _by_command(self, work_copy: WorkCopy, tree: Tree) -> tuple[Path, str]:
        """Run the command in what is laid out; the binary has to be there when it ends."""
        work_copy.lay_out(tree)
        for entry in tree_at(work_copy.tree).values():
            if entry.link is None:
                os.utime(entry.path)  # none from the future, which make and ninja complain of
        recipe = self.recipe
        executable = work_copy.tree / str(recipe.binary)  # a command has one
        executable.parent.mkdir(parents=True, exist_ok=True)  # an old binary may be all it holds
        self._run(recipe.command, work_copy)
        if not executable.is_file():
            raise BuildFailed(
                f"`{' '.join(recipe.command)}` ended without making {recipe.binary}; "
                "correct [build] binary, the path of what it makes from source_path"
            )
        file = executable.resolve()  # the store takes no links
        inside = file.is_relative_to(work_copy.tree.resolve())
        return file if inside else executable, f"{platform.machine()}-{sys.platform}"

    def _by_cargo(self, work_copy: WorkCopy, tree: Tree) -> tuple[Path, str]:
        recipe, manifest = self.recipe, self.pinned.checkout.source / "Cargo.toml"
        with work_copy.compiling() as folder:
            work_copy.lay_out(tree, keep_made=True)
            if not recipe.binary:
                told = self.commands.answer(_METADATA, work_copy.tree)
                several = declared_binaries(told, recipe.package)
                if len(several) > 1:  # before all of them are compiled
                    refuse_several(several, manifest)
            words = ["cargo", "build", *self._flags, "--target-dir", str(folder)]
            words += ["--bin", recipe.binary] if recipe.binary else []
            words += ["--package", recipe.package] if recipe.package else []
            words += ["--target", recipe.target] if recipe.target else []
            words += ["--message-format=json-render-diagnostics", "--color=never"]
            output = self._run(words, work_copy)
        executable, triple = made(output, folder, manifest)
        host = _HOST.search(self._compilers()[0])
        return executable, triple or (host[1] if host else "unknown")

    def _run(self, words: Sequence[str], work_copy: WorkCopy) -> str:
        """What a program writes that works in a laid out copy."""
        logs = work_copy.home / "log"
        note = f"\nall of it is in {logs}"
        return self.commands.run(words, work_copy.tree, logs, self.recipe.timeout, note)

    def level(self) -> str | None:
        """The level of x86-64 that a binary requires, None where the flags name no processor.

        One that is named otherwise than by its level is taken for that of this machine.
        """
        variables = self._environment().values()
        texts = [*self._configurations(), *variables, *(self.recipe.command or self._flags)]
        named = {each for text in texts for each in _PROCESSOR.findall(text)}
        usual = own_level() if named - {*LEVELS} else max(named, default=None)
        return self.recipe.level or usual

    def _configurations(self) -> list[str]:
        """The files that may hold flags of the compiler: of the source, and around for cargo."""
        by_command = bool(self.recipe.command)
        pattern = _BUILD_FILE if by_command else _CONFIGURATION
        paths = (entry.path for name, entry in self.pinned.tree().items() if pattern.search(name))
        around = [] if by_command else configurations_around(self.work)
        return [*around, *(path.read_text(encoding="utf-8", errors="replace") for path in paths)]

    def _environment(self) -> dict[str, str]:
        """The variables that change the compiled binary, such as RUSTFLAGS."""
        return {k: v for k, v in self.commands.environment.items() if _DECIDING.fullmatch(k)}

    def _compilers(self) -> list[str]:
        """What the compiler that the source selects, or the usual ones, say of themselves."""
        environment, here = self.commands.environment, self.pinned.path
        if not self.recipe.command:
            return [self.commands.answer([environment.get("RUSTC", "rustc"), "-vV"], here)]
        programs = {environment.get("CC") or "cc", environment.get("CXX") or "c++", "gcc", "clang"}
        return [
            self.commands.answer([*program.split(), "--version"], here)
            for program in sorted(programs)
            if shutil.which(program.split()[0])
        ]


def digest_of(parts: Mapping[str, object]) -> str:
    """The hash that names what is made of these inputs."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
