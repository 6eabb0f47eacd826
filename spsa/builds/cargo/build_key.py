"""The build key: names a binary before it is built, by a hash of all its inputs."""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spsa.builds.checkout import CONFIGURATIONS, cargo_home, configuration
from spsa.builds.pinned import Pinned
from spsa.builds.requirements import level_for, own_level
from spsa.builds.smoke import FirstSearch, SmokeTimeouts
from spsa.builds.subprocesses import Commands


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """How to build an engine, by cargo or by another command.

    `flags` go to `cargo build` unchanged; they may include `--locked` and `--offline`. `binary` may
    be None if the crate, or the `package` of its workspace, has just one. With a `command`, that is
    run instead of cargo, and `binary` is the path of what it makes. `timeout` is in seconds for
    each engine. `bench` says whether the engine must have a `bench` command with a node count
    (True), may have one (None), or is not asked for one (False). `at_once` pairs of engines are
    built at a time, each in its own work copies. `level` is the level of x86-64 to build for; with
    a command, the one that the command builds for. `smoke` limits the smoke test, in which the
    engine has to obey `first_search` and to accept `options`.
    """

    source_path: Path
    command: tuple[str, ...] = ()
    package: str | None = None
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    level: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    smoke: SmokeTimeouts = field(default_factory=SmokeTimeouts)
    at_once: int = 1
    first_search: FirstSearch | None = None
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The values of one engine, and the files that hold them: path in the source -> text."""

    files: Mapping[str, str]
    values: Mapping[str, float | int]


_DECIDING = re.compile(
    r"RUSTFLAGS|CARGO_ENCODED_RUSTFLAGS|RUSTC(_.*)?|RUSTUP_TOOLCHAIN|CARGO_INCREMENTAL"
    r"|CARGO_(?!TARGET_DIR|BUILD_TARGET_DIR|BUILD_JOBS)(BUILD|PROFILE|TARGET|UNSTABLE)_.*|(HOST_|TARGET_)?(CC|CXX|AR|CFLAGS|CXXFLAGS)(_.*)?"
    r"|CPPFLAGS|LDFLAGS|LDLIBS|ARCH"
)
_NATIVE = "target-cpu=native"
_TARGETED = re.compile(r"target-(?:cpu|feature)=[-+\w.,]+", re.ASCII)
_FEATURE = re.compile(r'^target_feature="(.+)"$', re.MULTILINE)
_TARGET_FLAGS = re.compile(r"CARGO_TARGET_\w+_RUSTFLAGS")


@dataclass(frozen=True, slots=True)
class Toolchain:
    """The compiler as it describes itself: version, commit, host triple."""

    description: str

    @property
    def host(self) -> str:
        found = re.search(r"^host: (\S+)$", self.description, re.MULTILINE)
        return found[1] if found else "unknown"


@dataclass(frozen=True, slots=True)
class BuildEnvironment:
    """What the engines of a run are built from and with: all of a build key but the values.

    Cargo runs in a folder below `work`.
    """

    pinned: Pinned
    settings: BuildSettings
    commands: Commands
    work: Path

    def toolchain(self) -> Toolchain:
        """The compiler that the pinned source selects, which may have a rust-toolchain file."""
        return Toolchain(self._rustc("-vV"))

    def key(self, rendered: Rendered, toolchain: Toolchain) -> str:
        """The build key: equal for equal values, source, flags, target, compiler and settings."""
        settings = self.settings
        surroundings = self._surroundings()
        parts = values_of(rendered) | {
            "source": self.pinned.sha256,
            "package": settings.package,
            "binary": settings.binary,
            "flags": settings.flags,
            "target": settings.target,
            "rustc": toolchain.description,
            "environment": environment_of(self.commands),
            "configuration": surroundings,
            "processor": self._processor(surroundings),
        }
        return digest_of(parts)

    def level(self) -> str | None:
        """The level of x86-64 that rustc's flags name; None where they name no processor.

        That of this machine for its own processor.
        """
        texts = self._texts(self._surroundings())
        flags = [flag for text in texts for flag in _TARGETED.findall(text)]
        if not flags:
            return None
        if [flag for flag in flags if "-cpu" in flag][-1:] == [_NATIVE]:
            return own_level()
        target = ["--target", self.settings.target] if self.settings.target else []
        wanted = (word for flag in flags for word in ("-C", flag))
        return level_for(_FEATURE.findall(self._rustc("--print", "cfg", *target, *wanted)))

    def for_level(self) -> tuple[BuildSettings, dict[str, str]]:
        """Settings and environment with which cargo builds for `settings.level`.

        Cargo takes flags from the first of these places that has any, and rustc the last processor
        that they name: two variables, `target.*.rustflags`, `build.rustflags`
        (https://doc.rust-lang.org/cargo/reference/config.html#buildrustflags).
        """
        settings, environment = self.settings, dict(self.commands.environment)
        flag = f"-Ctarget-cpu={settings.level}"
        for name, between in (("CARGO_ENCODED_RUSTFLAGS", "\x1f"), ("RUSTFLAGS", " ")):
            if written := environment.get(name):
                return settings, environment | {name: f"{written}{between}{flag}"}
        tables = [_configured(text) for text in (*self._surroundings(), *self._own())]
        for_all = environment.get("CARGO_BUILD_RUSTFLAGS", "").split()
        for_all += [word for table in tables for word in _rustflags(table.get("build"))]
        targets = (each for table in tables for each in _tables(table.get("target")))
        by_target = any(map(_TARGET_FLAGS.fullmatch, environment)) or any(map(_rustflags, targets))
        # of the targets that fit, cargo takes the flags of the last name last
        words = json.dumps([*([] if by_target else for_all), flag])
        more = ("--config", f'target."cfg(unix)".rustflags={words}')
        return replace(settings, flags=(*settings.flags, *more)), environment

    def _surroundings(self) -> list[str]:
        """Cargo's configuration outside of the source, which is not pinned."""
        above = (configuration(directory) for directory in (self.work, *self.work.parents))
        paths = {path for _, path in filter(None, above)} | set(_home_configuration())
        return [_text(path) for path in sorted(paths)]

    def _processor(self, surroundings: list[str]) -> str | None:
        """This machine's processor features if the build targets exactly this processor."""
        if not any(_NATIVE in text for text in self._texts(surroundings)):
            return None
        return self._rustc("--print", "cfg", "-C", _NATIVE)

    def _own(self) -> list[str]:
        """Cargo's configuration inside of the source."""
        tree = self.pinned.tree()
        return [_text(e.path) for name, e in tree.items() if name.endswith(CONFIGURATIONS)]

    def _texts(self, surroundings: list[str]) -> list[str]:
        """All that may hold flags of rustc; what counts most comes last."""
        variables = environment_of(self.commands).values()
        return [*surroundings, *self._own(), *variables, *self.settings.flags]

    def _rustc(self, *arguments: str) -> str:
        argv = [self.commands.environment.get("RUSTC", "rustc"), *arguments]
        return self.commands.answer(argv, self.pinned.crate)


def _configured(text: str) -> dict[str, Any]:
    """The tables of a configuration; cargo says what is wrong with one."""
    try:
        return tomllib.loads(text)
    except ValueError:
        return {}


def _tables(table: Any) -> list[Any]:
    return list(table.values()) if isinstance(table, dict) else []


def _rustflags(table: Any) -> list[str]:
    """The flags of rustc in a table, which may be one text."""
    found = table.get("rustflags", []) if isinstance(table, dict) else []
    return found.split() if isinstance(found, str) else list(found)


def values_of(rendered: Rendered) -> dict[str, object]:
    """What a build key says of an engine's values."""
    return {
        "values": dict(rendered.values),
        "files": {name: _hash(text) for name, text in rendered.files.items()},
    }


def environment_of(commands: Commands) -> dict[str, str]:
    """The variables that change the compiled binary, such as RUSTFLAGS."""
    return {k: v for k, v in commands.environment.items() if _DECIDING.fullmatch(k)}


def digest_of(parts: Mapping[str, object]) -> str:
    """The build key of these inputs."""
    return _hash(json.dumps(parts, sort_keys=True, allow_nan=False, separators=(",", ":")))


def _home_configuration() -> Iterator[Path]:
    for name in CONFIGURATIONS:
        path = cargo_home() / Path(name).name
        if path.is_file():
            yield path


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
