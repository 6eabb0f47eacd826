"""What a build is asked for: how to call cargo, and the values that one side is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spsa.builds.cargo.smoke import SmokeTimeouts


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """How an engine is built; what is not said here is cargo's and the engine's own affair.

    `flags` go to `cargo build` as they are, `--locked` and `--offline` among them if wanted.
    `binary` may be None when the crate makes just one. `timeout` is in seconds, per side.
    `bench` tells whether the engine must have a `bench` command with a node count (True), need not
    (None), or is not asked (False). `at_once` are as many pairs of engines as may be built at a
    time, each in work trees of its own.
    """

    source_path: Path
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    patience: SmokeTimeouts = field(default_factory=SmokeTimeouts)
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Rendered:
    """One side's values, and the texts of the files that hold them, by path in the source."""

    files: Mapping[str, str]
    values: Mapping[str, float | int]
