"""The content of config.toml as frozen values. Every path is absolute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from spsa.core.game_settings import GameSettings, TimeControl


class DeliveryKind(StrEnum):
    """How values get into an engine: by rewritten constants and a build, or by `setoption`."""

    BUILD = "build"
    UCI = "uci"


class Distribution(StrEnum):
    """How workers get a binary: from a shared folder, or from the database."""

    PATH = "path"
    DATABASE = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class GamesConfig:
    """How games are divided into iterations and batches; both counts are even.

    With "auto", the master keeps as many iterations in flight as the fleet needs.
    """

    per_iteration: int = 150
    batch_size: int = 10
    iterations_in_flight: int | Literal["auto"] = "auto"
    max_attempts: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildConfig:
    """How binaries are built, where they are kept and how workers get them.

    `flags` go to `cargo build`. `package` is None if the crate is no workspace, `binary` for
    cargo's only binary, `target` for this machine's triple. Binaries are built for each of the
    `levels` of x86-64, which ascend; without any, for what the source says. A `command` is run
    instead of cargo, and `binary` is the path of what it makes, relative to `source_path`.
    `timeout` is in seconds for each engine. `bench` says whether the engine must have a `bench`
    command (True), may have one (None) or is not asked for one (False); `bench_timeout` is in
    seconds. `at_once` is the
    number of iterations whose engines are built at a time, None to follow the number of processors.
    `source_path` is None only if nothing is built. `where` says whose machines build.
    """

    source_path: Path | None = None
    constants_file: str = "src/engine_constants.rs"
    engines_path: Path
    command: tuple[str, ...] = ()
    package: str | None = None
    binary: str | None = None
    flags: tuple[str, ...] = ("--release",)
    target: str | None = None
    levels: tuple[str, ...] = ()
    timeout: float = 900.0
    bench: bool | None = None
    bench_timeout: float = 60.0
    at_once: int | None = None
    distribute: Distribution = Distribution.PATH
    where: Literal["master", "worker"] = "master"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryConfig:
    """`engine` is the one binary of the delivery over UCI, None for builds."""

    kind: DeliveryKind = DeliveryKind.BUILD
    engine: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The match of the tuned values against the first ones; with 0 games none is played.

    With `every` above 0, theta after every so many iterations is measured while the run goes on, by
    `share` games for each game of the tuning. `time_control` is None to use that of the run.
    """

    games: int = 0
    every: int = 0
    share: float = 0.05
    time_control: TimeControl | None = None


class MessageFormat(StrEnum):
    """The body of a POST about alarms: plain text, or the JSON of Slack or Discord."""

    TEXT = "text"
    SLACK = "slack"
    DISCORD = "discord"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmsConfig:
    """Who gets the alarms; with no command and no URL, events are all there is.

    An alarm is reported after it has lasted `after` seconds, and is over when it is gone for as
    long. The URL is a password of most services.
    """

    command: str = ""
    url: str = field(default="", repr=False)
    format: MessageFormat = MessageFormat.TEXT
    after: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """One config.toml, overridden by the environment.

    `seed` is None if the master draws one. `priority` and
    `share` decide how a new run is scheduled beside others. With `sets_aside`, the master gives no
    more batches to machines whose results stand out. A worker has to provide the words of
    `require`. `settings` are the algorithm's own keys
    of [spsa] as they are written; they are known keys with plain values. `stop_when` is in Elo.
    """

    path: Path
    params_path: Path
    name: str
    seed: int | None
    priority: int = 0
    share: float = 1.0
    database_url: str
    game_settings: GameSettings
    games: GamesConfig
    algorithm: str
    max_iterations: int
    stop_when: float | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    build: BuildConfig
    delivery: DeliveryConfig
    validation: Validation
    alarms: AlarmsConfig = AlarmsConfig()
    sets_aside: bool = False
    require: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """Game pairs in an iteration."""
        return self.games.per_iteration // 2
