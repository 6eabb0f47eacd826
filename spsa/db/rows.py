"""What is read from the database, as frozen values; no SQL here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from spsa.core.estimates import NOTHING_KNOWN, Estimates
from spsa.core.game_settings import GameSettings
from spsa.core.scoring import Tally
from spsa.db.entries import Compared, Values
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One side of a match: the hash of its binary, and the UCI options that are sent to it."""

    sha256: str
    path: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A batch of whole pairs, leased to this worker."""

    claim_id: str
    batch_id: int
    run_id: int
    run_name: str
    run_seed: int
    iteration_id: int
    iteration_number: int
    purpose: Purpose
    signature: str | None  # the master's, of what the worker executes
    seq: int
    attempt: int
    first_pair: int
    pairs: int
    seed: int
    plus: Engine
    minus: Engine
    variants: Mapping[str, tuple[Engine, Engine]] = field(default_factory=dict)
    game_settings: GameSettings
    lease_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWorker:
    """A registered worker; the secret of its machine identifies it."""

    id: int
    machine: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run; theta holds the results of `applied` iterations, without what `purges` removed.

    Each of the estimates is None until there are enough results for it. `start_space` is the space
    that the run was started with, None if `changes` is 0. `start_theta` has also what was
    added since. `start_state` is what the rule of a fork knew at the start.
    """

    id: int
    name: str
    status: RunStatus
    reason: str | None
    seed: int
    algorithm: str
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    game_settings: GameSettings
    source_sha256: str | None
    max_iterations: int
    start_theta: Values
    theta: Values
    estimates: Estimates = NOTHING_KNOWN
    state: Mapping[str, Any]
    applied: int
    purges: int = 0
    changes: int = 0
    start_space: Mapping[str, Any] | None = None
    start_state: Mapping[str, Any] | None = None
    master_id: str | None
    builds: Mapping[str, Any] | None = None
    epoch: int
    created_at: datetime
    finished_at: datetime | None
    priority: int = 0
    share: float = 1.0

    def whole(self, theta: Values) -> Values:
        """A theta of its past, with the parameters that were added later at their start."""
        return {**self.start_theta, **theta}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """A row of the overview of all runs; `slots` is how many play for the run now."""

    name: str
    status: RunStatus
    priority: int
    share: float
    applied: int
    max_iterations: int
    slots: int
    has_master: bool
    live: bool  # has not ended, or has a validation that is not complete


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterLease:
    """The right to advance a run; each acquisition has its own `epoch`."""

    run_id: int
    master_id: str
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """An iteration.

    `struck_games` counts the purged games of a closed iteration. When the iteration was opened,
    theta held the results through `opened_on`, and the run had had `opened_purges` purges and
    `opened_changes` changes of its space. `compared` and `match_number` are those of a validation:
    the rounds of one match have the number of the first of them.
    """

    id: int
    run_id: int
    iteration_number: int
    purpose: Purpose
    k: int | None
    opened_on: int
    in_flight: int
    a_k: float | None
    c_k: float | None
    plus_sha256: str
    minus_sha256: str
    target_games: int
    games_played: int
    tally: Tally
    void_games: int
    status: IterationStatus
    base_parameters: Values
    plus_parameters: Values
    minus_parameters: Values
    gradient_estimate: Values | None
    elo_diff: float | None
    created_at: datetime
    completed_at: datetime | None
    struck_games: int = 0
    opened_purges: int = 0
    opened_changes: int = 0
    match_number: int | None = None
    compared: Compared | None = None

    @property
    def is_background(self) -> bool:
        """Whether it is a round of a validation that is played while the run goes on."""
        return self.compared is not None and self.compared.background

    @property
    def is_played(self) -> bool:
        """Whether all its games have been reported."""
        return self.games_played + self.struck_games == self.target_games


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One row of the append-only log of steps."""

    k: int
    iteration_id: int
    theta_before: Values
    delta: Values
    theta_after: Values
    bounded: bool
    epoch: int  # of the master that applied it
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A batch of an open iteration that is out of attempts, and why."""

    iteration_id: int
    seq: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailures:
    """The batches that a machine failed recently, and what was played of the same iterations.

    `sha256` is the binary that failed each time; None if that is unknown or differs.
    """

    machine: str
    batches: int
    sha256: str | None
    reason: str  # of the last one
    played: int  # batches that this machine has reported
    played_by_others: int
    binaries_set_aside: frozenset[str]  # whose batches the machine does not get
    is_set_aside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A machine that gets no batches of one binary, or none at all if `sha256` is None."""

    machine: str
    sha256: str | None
    reason: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """All that a master's decision depends on: the run, its open iterations, its failed batches.

    `ready_games` wait for a claim, `leased_games` are being played in `leased_batches`.
    `game_seconds` is the mean length of recent games; None before any has been reported.
    """

    run: Run
    opened: int  # the highest k that has an iteration
    open: Sequence[Iteration]
    failures: Sequence[Failure]
    ready_games: int
    leased_games: int
    leased_batches: int
    game_seconds: float | None
    machine_failures: Sequence[MachineFailures] = ()
    active_workers: int
    active_slots: int


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
    confinement: str | None
    provides: tuple[str, ...] = ()
    seconds_since_seen: float
    batches: int
    games: int
    games_leased: int
    void_games: int
    time_losses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What was changed in a run, when and by whom."""

    at: datetime
    kind: str
    actor: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """A batch."""

    iteration_id: int
    iteration_number: int
    seq: int
    games: int
    first_pair: int
    seed: int
    status: BatchStatus
    attempt: int
    tally: Tally
    void_games: int
    last_error: str | None
