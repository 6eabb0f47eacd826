"""A run from its start to now, as frozen values; no SQL here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spsa.core.scoring import Tally
from spsa.db.entries import Compared, KeptVoid, Values
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose


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
class IterationLine:
    """An iteration without its parameters."""

    iteration_number: int
    purpose: Purpose
    k: int | None
    opened_on: int
    status: IterationStatus
    a_k: float | None
    c_k: float | None
    target_games: int
    tally: Tally
    void_games: int
    struck_games: int
    created_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLine:
    """A validation without its parameters: the theta after `k`, the sums over its rounds."""

    match_number: int
    k: int
    compared: Compared | None
    tally: Tally

    @property
    def asked(self) -> Compared:
        """What it compares; theta against the start if its row does not say."""
        return self.compared or Compared()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """A batch of an iteration; `worker` is the one that holds it or held it last, if any did.

    Its pairs are numbered through the run from `first_pair`. `voids` are the reasons of its void
    games with their counts, `seconds` the sum over its games by the wall, `think_seconds` of both
    engines.
    """

    seq: int
    status: BatchStatus
    games: int
    first_pair: int
    seed: int
    tally: Tally
    attempt: int
    failures: int
    worker: str | None
    machine: str | None
    slot: int | None
    void_games: int
    voids: Mapping[str, int] | None
    time_losses: int
    plus_time_losses: int
    minus_time_losses: int
    plus_nodes: int
    minus_nodes: int
    moves: int
    seconds: float
    think_seconds: float
    scale: float
    leased_at: datetime | None
    reported_at: datetime | None
    last_error: str | None

    @property
    def nodes_per_second(self) -> float | None:
        """Of one engine; None where no time is known."""
        nodes = self.plus_nodes + self.minus_nodes
        return nodes / self.think_seconds if self.think_seconds > 0 else None


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
class BatchFailure:
    """A machine that could not play a batch: how often it failed and how often it was lost."""

    machine: str
    failures: int
    lost_leases: int
    reason: str | None
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the space of a run: `number` counts from 1.

    Theta held the results through `applied`, and the run had had `purges` purges.
    """

    number: int
    applied: int
    purges: int
    space: Mapping[str, Any]
    theta_before: Values
    theta_after: Values
    actor: str
    reason: str
    at: datetime

    @property
    def added(self) -> Values:
        """The parameters that are new, with their start."""
        return {n: x for n, x in self.theta_after.items() if n not in self.theta_before}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRow:
    """A binary that an iteration of a run uses."""

    sha256: str
    path: str
    build_key: str
    size: int
