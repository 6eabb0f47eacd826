"""What is computed from several rows, as frozen values; no SQL here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from spsa.core.scoring import Tally
from spsa.db.engine_tables import EngineFile
from spsa.db.entries import Compared, Values
from spsa.protocol import KeptVoid


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker with the sums over its batches."""

    name: str
    host: str
    platform: str
    cores: int
    concurrency: int
    nps: float | None
    scale: float | None
    version: str
    sandbox: str | None
    provides: tuple[str, ...] = ()
    seconds_since_seen: float
    batches: int
    games: int
    games_leased: int
    void_games: int
    time_losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveWorker:
    """A worker that was seen recently: what it provides, and whether its machine may build."""

    words: tuple[str, ...]
    slots: int
    may_build: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedBuild:
    """What has become of an order: `engines` are plus and minus, without their bytes, when they are
    published, and require the words of `requires`.

    `failures` are machines and why they could not build, `builders` is how many active workers may
    still do so, or are doing so.
    """

    key: str
    engines: tuple[EngineFile, EngineFile] | None
    requires: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]
    builders: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThetaPoint:
    """Theta after the result k."""

    k: int
    theta: Values
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultGroup:
    """The results of the complete tuning iterations from `first_k` to `last_k`, summed."""

    first_k: int
    last_k: int
    tally: Tally
    void_games: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShare:
    """What one worker has played of a run's tuning iterations.

    `seconds` is the sum over games by the wall, `think_seconds` of both engines. Times were
    multiplied by `least_scale` to `most_scale`.
    """

    worker: str
    machine: str
    batches: int
    tally: Tally
    void_games: int
    time_losses: int
    nodes: int
    seconds: float
    think_seconds: float
    least_scale: float = 1.0
    most_scale: float = 1.0

    def __add__(self, other: "WorkerShare") -> "WorkerShare":
        """Two parts of what the same worker has played."""
        return WorkerShare(
            worker=self.worker,
            machine=self.machine,
            batches=self.batches + other.batches,
            tally=self.tally + other.tally,
            void_games=self.void_games + other.void_games,
            time_losses=self.time_losses + other.time_losses,
            nodes=self.nodes + other.nodes,
            seconds=self.seconds + other.seconds,
            think_seconds=self.think_seconds + other.think_seconds,
            least_scale=min(self.least_scale, other.least_scale),
            most_scale=max(self.most_scale, other.most_scale),
        )

    @property
    def games_per_hour(self) -> float | None:
        """Of one slot; None where no time is known."""
        return 3600 * self.tally.games / self.seconds if self.seconds > 0 else None

    @property
    def nodes_per_second(self) -> float | None:
        """Of one engine; None where no time is known."""
        return self.nodes / self.think_seconds if self.think_seconds > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPart:
    """What one worker has played of a group of consecutive tuning iterations.

    `void_batches` had a void game on this worker, `late_batches` a game that was lost on time.
    """

    group: int
    share: WorkerShare
    void_batches: int
    late_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLine:
    """A validation without its parameters: the theta after `k`, the sums over its rounds."""

    k: int
    compared: Compared | None
    tally: Tally

    @property
    def asked(self) -> Compared:
        """What it compares; theta against the start if its row does not say."""
        return self.compared or Compared()


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidGame:
    """A void game of a batch, with the values of the engine at fault and its binary."""

    iteration_number: int
    seq: int
    machine: str | None
    kept: KeptVoid
    values: Values
    options: Mapping[str, str]
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Sums over the reported games of a run: seconds, plies and results."""

    games: int
    plies: int
    seconds: float
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All tuning games of a run, and how many of its steps were bounded."""

    tally: Tally
    void_games: int
    bounded_steps: int
