"""What config.toml says, as frozen values. Every path is absolute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from spsa.core.game_settings import Terms, TimeControl


class DeliveryKind(StrEnum):
    """How values get into an engine: constants and a build, or `setoption`."""

    BUILD = "build"
    UCI = "uci"


class Distribution(StrEnum):
    """How workers get a binary: from a shared folder, or out of the database."""

    PATH = "path"
    DATABASE = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class GamesConfig:
    """How games are cut into iterations and batches; both counts are even, pairs stay whole.

    `iterations_in_flight` is "auto" where the master keeps as many as the fleet needs.
    """

    per_iteration: int = 150
    batch_size: int = 10
    iterations_in_flight: int | Literal["auto"] = "auto"
    max_attempts: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildConfig:
    """How binaries are made of the source, where they are kept and how boxes get them.

    `flags` go to `cargo build`; `binary` is None for cargo's only one and `target` None for this
    machine's triple; `timeout` is in seconds, a side. `bench` says whether the engine must have a
    `bench` command (True), is not asked for one (False) or may have one (None), `bench_timeout`
    how many seconds that may take. `at_once` are the iterations whose engines are built at a time,
    None where the processors decide. `source_path` is None only where nothing is built.
    """

    source_path: Path | None = None
    constants_file: str = "src/engine_constants.rs"
    engines_path: Path
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    timeout: float = 900.0
    bench: bool | None = None
    bench_timeout: float = 60.0
    at_once: int | None = None
    distribute: Distribution = Distribution.PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """`engine` is the one binary of the delivery over UCI, None for builds."""

    kind: DeliveryKind = DeliveryKind.BUILD
    engine: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The match of the tuned values against the first ones; 0 games is none.

    `time_control` is None for that of the tune.
    """

    games: int = 0
    time_control: TimeControl | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config.toml with the environment on top of it.

    `seed` is None when the master is to draw one, `signing_key` when nothing is to be signed.
    `priority` and `share` say how a new run is served beside others. `settings` are the rule's own
    keys of [spsa] as they are written, known to exist and to be plain values.
    """

    path: Path
    params_path: Path
    name: str
    seed: int | None
    priority: int = 0
    share: float = 1.0
    database_url: str
    terms: Terms
    games: GamesConfig
    algorithm: str
    max_iterations: int
    settings: Mapping[str, object] = field(default_factory=dict)
    build: BuildConfig
    delivery: DeliveryConfig
    validation: Validation
    signing_key: Path | None = None

    @property
    def pairs(self) -> int:
        """Game pairs in an iteration."""
        return self.games.per_iteration // 2
