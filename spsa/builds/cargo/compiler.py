"""Calls cargo in a work copy: finds the binary to build, and reports errors."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spsa.builds.cargo.build_key import BuildSettings
from spsa.builds.subprocesses import Commands, Output
from spsa.errors import BuildFailed, Fault, InvalidInput

_SHOWN_LINES = 60
_PROGRESS = ("Compiling", "Finished", "Blocking", "Updating", "Locking", "Downloaded", "Fresh")
_LOOK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Compiled:
    """A binary, the triple it was built for, and its level of x86-64 where that is known."""

    executable: Path
    target: str
    level: str | None = None


@dataclass(frozen=True, slots=True)
class Compiler:
    """Cargo with the settings of one run."""

    settings: BuildSettings
    commands: Commands

    def binary(self, crate: Path, logs: Path) -> str:
        """The binary to build; InvalidInput with the choices if it is ambiguous."""
        packages = self._packages(crate, logs)
        choices = sorted({name for package in packages for name in _binaries(package)})
        wanted = self.settings.binary
        if wanted is not None and wanted in choices:
            return wanted
        defaults = {package["default_run"] for package in packages if package.get("default_run")}
        likely = sorted(defaults) if len(defaults) == 1 else choices
        if wanted is not None or len(likely) != 1:
            raise InvalidInput([_unclear(self.settings, choices)])
        return likely[0]

    def lock(self, crate: Path, logs: Path) -> None:
        """Let cargo generate the missing Cargo.lock."""
        offline = [flag for flag in self.settings.flags if flag == "--offline"]
        argv = ["cargo", "generate-lockfile", *offline]
        _succeeded(self.commands.run(argv, crate, logs, self.settings.timeout), logs)

    def build(
        self, binary: str, crate: Path, target: Path, logs: Path, watch: Callable[[], None]
    ) -> tuple[Path, str | None]:
        """Compile, and call `watch` while cargo runs; BuildFailed has the compiler's own errors.

        Returns the binary, and the target triple if it is not the host's.
        """
        argv = ["cargo", "build", *self.settings.flags, *self._package(), "--bin", binary]
        argv += [*self._triple(), "--target-dir", str(target)]
        argv += ["--message-format=json", "--color=never"]
        output = self.commands.run(argv, crate, logs, self.settings.timeout, watch)
        _succeeded(output, logs)
        executable = _executable(output.stdout, binary)
        return executable, _triple_of(executable, target)

    def _package(self) -> list[str]:
        return ["--package", self.settings.package] if self.settings.package else []

    def _triple(self) -> list[str]:
        return ["--target", self.settings.target] if self.settings.target else []

    def _packages(self, crate: Path, logs: Path) -> list[dict[str, Any]]:
        argv = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
        output = self.commands.run(argv, crate, logs, _LOOK_SECONDS)
        _succeeded(output, logs)
        packages: list[dict[str, Any]] = json.loads(output.stdout)["packages"]
        wanted = self.settings.package
        chosen = [package for package in packages if wanted in (None, package["name"])]
        if not chosen:
            raise InvalidInput([_no_package(self.settings, [p["name"] for p in packages])])
        return chosen


def _binaries(package: Mapping[str, Any]) -> list[str]:
    return [target["name"] for target in package["targets"] if "bin" in target["kind"]]


def _no_package(settings: BuildSettings, choices: Sequence[str]) -> Fault:
    return Fault(
        file=str(settings.source_path / "Cargo.toml"),
        line=None,
        name="package",
        found=f'the workspace has no package "{settings.package}"',
        remedy=f"name one of: {', '.join(sorted(choices))}",
    )


def _unclear(settings: BuildSettings, choices: Sequence[str]) -> Fault:
    named = f'has no binary "{settings.binary}"' if settings.binary else "has more than one binary"
    return Fault(
        file=str(settings.source_path / "Cargo.toml"),
        line=None,
        name="binary",
        found=f"the source {named}" if choices else "the source has no binary at all",
        remedy=f"name one of: {', '.join(choices)}" if choices else "name an engine's source",
    )


def _succeeded(output: Output, logs: Path) -> None:
    if output.status != 0:
        found = _complaint(output)
        raise BuildFailed(f"cargo ended with {output.status}\n{found}\nall of it is in {logs}")


def _complaint(output: Output) -> str:
    """The compiler's errors; if there are none, the output of cargo itself."""
    rendered = [error.rstrip() for error in _errors(output.stdout)]
    own = [line for line in output.stderr.splitlines() if line.strip() and not _is_progress(line)]
    lines = "\n".join(rendered).splitlines() or own
    more = len(lines) - _SHOWN_LINES
    return "\n".join(lines[:_SHOWN_LINES] + ([f"... and {more} lines more"] if more > 0 else []))


def _is_progress(line: str) -> bool:
    return line.strip().startswith(_PROGRESS)


def _messages(stdout: str) -> Iterator[dict[str, Any]]:
    """Cargo's messages, without what a procedural macro may have printed between them."""
    for line in stdout.splitlines():
        if line.startswith('{"reason":'):
            yield json.loads(line)


def _errors(stdout: str) -> Iterator[str]:
    for message in _messages(stdout):
        if message["reason"] == "compiler-message" and message["message"]["level"] == "error":
            yield message["message"]["rendered"]


def _executable(stdout: str, binary: str) -> Path:
    for message in _messages(stdout):
        if message.get("executable") and _is_binary(message["target"], binary):
            return Path(message["executable"])
    raise BuildFailed(f'cargo succeeded without making "{binary}"')


def _is_binary(target: Mapping[str, Any], binary: str) -> bool:
    return target["name"] == binary and "bin" in target["kind"]


def _triple_of(executable: Path, target: Path) -> str | None:
    """`target/<profile>/x` was made for the host, `target/<triple>/<profile>/x` was not."""
    parts = executable.resolve().relative_to(target.resolve()).parts
    return parts[0] if len(parts) > 2 else None
