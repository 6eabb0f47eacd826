"""The input of a build: how to call cargo, and the values of one engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spsa.builds.cargo.smoke import SmokeTimeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """How to build an engine.

    `flags` go to `cargo build` unchanged; they may include `--locked` and `--offline`. `binary` may
    be None if the crate has just one. `timeout` is in seconds for each engine. `bench` says whether
    the engine must have a `bench` command with a node count (True), may have one (None), or is not
    asked for one (False). `at_once` pairs of engines are built at a time, each in its own work
    copies. `smoke` limits the smoke test.
    """

    source_path: Path
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    smoke: SmokeTimeouts = field(default_factory=SmokeTimeouts)
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Rendered:
    """The values of one engine, and the files that hold them: path in the source -> text."""

    files: Mapping[str, str]
    values: Mapping[str, float | int]
