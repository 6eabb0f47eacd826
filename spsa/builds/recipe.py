"""How an engine is built: a command line and all that it depends on. The usual one is cargo's."""

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from spsa.builds.cargo import (
    SHOWN_LINES,
    SharedDependencies,
    binary_of,
    complaint,
    configurations_around,
    level_flags,
    made,
)
from spsa.builds.requirements import LEVELS, own_level, processor_features
from spsa.builds.source import Pinned
from spsa.builds.subprocesses import Commands
from spsa.builds.tree import Entry, Tree, WorkCopy, tree_at
from spsa.core.game_settings import TimeControl
from spsa.errors import BuildFailed, InvalidInput

_METADATA = ("metadata", "--no-deps", "--offline", "--format-version", "1")
_DECIDING = re.compile(
    r"RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|RUSTC(_.*)?|RUSTUP_TOOLCHAIN|CARGO_INCREMENTAL"
    r"|CARGO_(?!TARGET_DIR|BUILD_TARGET_DIR|BUILD_JOBS)(BUILD|PROFILE|TARGET|UNSTABLE)_.*"
    r"|(HOST_|TARGET_)?(CC|CXX|AR|CFLAGS|CXXFLAGS)(_.*)?|CPPFLAGS|LDFLAGS|LDLIBS|ARCH"
)
_PROCESSOR = re.compile(r"(?:-march|-mcpu|target-cpu|target-feature)=([-+\w.]+)", re.ASCII)
_HOST = re.compile(r"^host: (\S+)$", re.MULTILINE)
_CONFIGURATION = re.compile(r"\.cargo/config(\.toml)?$")
_BUILD_FILE = re.compile(r"(^|/)((GNUm|M|m)akefile|CMakeLists\.txt|meson\.build)$|\.(mk|cmake|sh)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How to build an engine, by cargo or by another command, and how to test it.

    `flags` go to `cargo build` unchanged; they may include `--locked` and `--offline`. `binary` may
    be None if the crate, or the `package` of its workspace, has just one. With a `command`, that is
    run instead of cargo, and `binary` is the path of what it makes. `timeout` is in seconds for
    each engine. `bench` says whether the engine must have a `bench` command with a node count
    (True), may have one (None), or is not asked for one (False). `level` is the level of x86-64 to
    build for; with a command, the one that the command builds for. In the smoke test the engine has
    to obey the longest search of `time_control` and to accept `options`.
    """

    command: tuple[str, ...] = ()
    package: str | None = None
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    level: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    time_control: TimeControl | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The values of one engine, and the files that hold them: path in the source -> text."""

    files: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A binary, the triple it was built for, and its level of x86-64 where that is known."""

    executable: Path
    target: str
    level: str | None


@dataclass(frozen=True, slots=True)
class Compiler:
    """Carries out a recipe on one pinned source; cargo runs in folders below `work`."""

    recipe: Recipe
    pinned: Pinned
    commands: Commands
    work: Path
    _dependencies: SharedDependencies = field(default_factory=SharedDependencies)

    @classmethod
    def of(
        cls, recipe: Recipe, pinned: Pinned, environment: Mapping[str, str], work: Path
    ) -> "Compiler":
        """A compiler that builds for the level of the recipe."""
        plain = cls(recipe, pinned, Commands(environment), work)
        if recipe.command or not recipe.level:
            return plain
        texts = [*configurations_around(work), *plain._pinned_texts(_CONFIGURATION)]
        variables, words = level_flags(recipe.level, environment, texts)
        flags = (*recipe.flags, *words)
        return cls(
            replace(recipe, flags=flags), pinned, Commands({**environment, **variables}), work
        )

    def key(self, rendered: Rendered) -> str:
        """The build key: a hash of all that decides the binary, known before it is built.

        Those are values, source, command line, environment, the compilers' own words, cargo's
        configuration outside of the source, and the processor, for which many engines are built.
        """
        recipe = self.recipe
        facts = {
            "values": dict(rendered.values),
            "files": {name: _hash(text) for name, text in rendered.files.items()},
            "source": self.pinned.sha256,
            "command": recipe.command or ("cargo", *recipe.flags),
            "names": (recipe.package, recipe.binary, recipe.target),
            "environment": self._environment(),
            "processor": sorted(processor_features()),
        }
        if recipe.command:
            facts["tools"] = self._compilers()
        else:
            facts |= {
                "tools": self._rustc("-vV"),
                "configuration": configurations_around(self.work),
            }
        return digest_of(facts)

    def tree(self, rendered: Rendered) -> dict[str, Entry]:
        """The pinned source with these values.

        If a crate has no Cargo.lock, the whole run shares a generated one. Raises InvalidInput for
        values in a file that the source does not have.
        """
        tree = self.pinned.tree()
        for name, text in rendered.files.items():
            if name not in tree:
                remedy = f"give its path from {self.pinned.checkout.source}"
                raise InvalidInput.of(name, "file", "the engine's source has no such file", remedy)
            tree[name] = Entry(tree[name].path, text=text)
        if not self.recipe.command and "Cargo.lock" not in tree:
            tree["Cargo.lock"] = Entry(self._locked(tree))
        return tree

    def compile(self, work_copy: WorkCopy, tree: Tree) -> Compiled:
        """Build this tree in a work copy; BuildFailed has the compiler's own errors."""
        by = self._by_command if self.recipe.command else self._by_cargo
        return by(work_copy, tree, work_copy.home / "log")

    def _by_command(self, work_copy: WorkCopy, tree: Tree, logs: Path) -> Compiled:
        """Run the command in what is laid out; the binary has to be there when it ends."""
        work_copy.lay_out(tree)
        for entry in tree_at(work_copy.tree).values():
            if entry.link is None:
                os.utime(entry.path)  # none from the future, which make and ninja complain of
        recipe, words = self.recipe, " ".join(self.recipe.command)
        output = self.commands.run(recipe.command, work_copy.tree, logs, recipe.timeout)
        if output.returncode != 0:
            # compilers write their errors to stderr
            lines = (output.stderr.strip() or output.stdout.strip()).splitlines()
            last = "\n".join(lines[-SHOWN_LINES:])
            raise BuildFailed(
                f"`{words}` ended with {output.returncode}\n{last}\nall of it is in {logs}"
            )
        executable = work_copy.tree / (recipe.binary or "")
        if not executable.is_file():
            raise BuildFailed(
                f"`{words}` ended without making {recipe.binary}; "
                "correct [build] binary, the path of what it makes from source_path"
            )
        return Compiled(executable, f"{platform.machine()}-{sys.platform}", self._level())

    def _by_cargo(self, work_copy: WorkCopy, tree: Tree, logs: Path) -> Compiled:
        """Compile the dependencies once for a run, each side in its own work copy."""
        recipe, crate = self.recipe, work_copy.tree
        with (
            work_copy.compiling() as folder,
            self._dependencies.for_build(work_copy, folder, self.commands.wait),
        ):
            work_copy.lay_out(tree)
            metadata = self._cargo(_METADATA, crate, logs)
            source = self.pinned.checkout.source
            binary = binary_of(metadata, source, recipe.package, recipe.binary)
            words = ["build", *recipe.flags, "--bin", binary, "--target-dir", str(folder)]
            words += ["--package", recipe.package] if recipe.package else []
            words += ["--target", recipe.target] if recipe.target else []
            words += ["--message-format=json-render-diagnostics", "--color=never"]
            executable, triple = made(self._cargo(words, crate, logs), binary, folder)
        return Compiled(executable, triple or self._host(), self._level())

    def _cargo(self, words: Sequence[str], crate: Path, logs: Path) -> str:
        """What cargo writes."""
        output = self.commands.run(["cargo", *words], crate, logs, self.recipe.timeout)
        if output.returncode != 0:
            found = complaint(output.stderr)
            raise BuildFailed(
                f"cargo ended with {output.returncode}\n{found}\nall of it is in {logs}"
            )
        return output.stdout

    def _locked(self, tree: Tree) -> Path:
        """The Cargo.lock that cargo generates for this run."""
        lock = self.pinned.path.with_name(f"{self.pinned.sha256}.lock")
        work_copy = WorkCopy(self.work / "resolve")
        with work_copy.locked(self.commands.wait, self.recipe.timeout):
            if not lock.exists():
                work_copy.lay_out(tree)
                offline = [flag for flag in self.recipe.flags if flag == "--offline"]
                self._cargo(["generate-lockfile", *offline], work_copy.tree, work_copy.home / "log")
                (work_copy.tree / "Cargo.lock").replace(lock)
        return lock

    def _level(self) -> str | None:
        """The level of x86-64 that a binary requires, None where the flags name no processor.

        One that is named otherwise than by its level is taken for that of this machine.
        """
        named = {each for text in self._texts() for each in _PROCESSOR.findall(text)}
        usual = own_level() if named - {*LEVELS} else max(named, default=None)
        return self.recipe.level or usual

    def _texts(self) -> list[str]:
        """All that may hold flags of a compiler."""
        variables, recipe = self._environment().values(), self.recipe
        if recipe.command:
            return [*self._pinned_texts(_BUILD_FILE), *variables, *recipe.command]
        around = configurations_around(self.work)
        return [*around, *self._pinned_texts(_CONFIGURATION), *variables, *recipe.flags]

    def _pinned_texts(self, pattern: re.Pattern[str]) -> list[str]:
        """The files of the source whose names have this pattern."""
        paths = (entry.path for name, entry in self.pinned.tree().items() if pattern.search(name))
        return [path.read_text(encoding="utf-8", errors="replace") for path in paths]

    def _environment(self) -> dict[str, str]:
        """The variables that change the compiled binary, such as RUSTFLAGS."""
        return {k: v for k, v in self.commands.environment.items() if _DECIDING.fullmatch(k)}

    def _compilers(self) -> list[str]:
        """What the usual compilers of a command say of themselves."""
        environment = self.commands.environment
        programs = {environment.get("CC") or "cc", environment.get("CXX") or "c++", "gcc", "clang"}
        return [
            self.commands.answer([*program.split(), "--version"], self.pinned.path)
            for program in sorted(programs)
            if shutil.which(program.split()[0], path=environment.get("PATH"))
        ]

    def _rustc(self, *arguments: str) -> str:
        """What the compiler says that the pinned source selects."""
        argv = [self.commands.environment.get("RUSTC", "rustc"), *arguments]
        return self.commands.answer(argv, self.pinned.path)

    def _host(self) -> str:
        found = _HOST.search(self._rustc("-vV"))
        return found[1] if found else "unknown"


def digest_of(parts: Mapping[str, object]) -> str:
    """The hash that names what is made of these inputs."""
    return _hash(json.dumps(parts, sort_keys=True, allow_nan=False, separators=(",", ":")))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
