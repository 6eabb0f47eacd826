"""The tables of runs: their iterations, steps, purges and events.

The columns of the first version's `spsa_iteration` keep their names and meaning, because people
query them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, query_expression, relationship

from spsa import protocol
from spsa.core import NOTHING_KNOWN, Builds, Estimates, Update, Values
from spsa.core.game_settings import MAX_MOVES, GameSettings, HashedFile
from spsa.core.json_values import Text
from spsa.db.base import (
    COUNTS,
    GAMES,
    HALF_POINTS_AGREE,
    HAS_LEASE,
    NONE_NEGATIVE,
    PAIRS,
    Base,
    Counts,
    Identity,
    Leased,
    Numbered,
    Stored,
    Variants,
    now_column,
    number_column,
    optional,
    partial_index,
    status_column,
    written_out,
)
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, MachineRole, Purpose, RunStatus
from spsa.text import NAME_LENGTH


def _joined(**options: Any) -> Any:
    """Another row, for the queries that load it."""
    hidden: dict[str, Any] = dict.fromkeys(("init", "repr", "compare"), False)
    return relationship(viewonly=True, lazy="raise", **hidden, **options)


class EngineRow(Base, kw_only=True):
    """A published binary or file of a side; the bytes only if workers get it from here."""

    __tablename__ = "spsa_engine"

    sha256: Mapped[protocol.Sha256] = mapped_column(primary_key=True)
    build_key: Mapped[str]
    target: Mapped[str]
    size: Mapped[int] = mapped_column(sa.BigInteger)
    bench: Mapped[int | None] = optional(sa.BigInteger)
    path: Mapped[str]
    content: Mapped[bytes | None] = optional("bytes", deferred=True)
    created_at: Mapped[datetime] = now_column()

    @property
    def location(self) -> HashedFile:
        return HashedFile(path=self.path, sha256=self.sha256)


class StoredFile(Base, kw_only=True):
    """A book, a side file or the archive of a source, for workers that get their files here."""

    __tablename__ = "spsa_file"

    sha256: Mapped[protocol.Sha256] = mapped_column(primary_key=True)
    content: Mapped[bytes] = mapped_column("bytes", deferred=True)
    created_at: Mapped[datetime] = now_column()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a validation compares.

    `theta` and `against` are "final", "supported", "start", the number of a result, or the name of
    an engine, which has no parameters. `time_control` is None for that of the tuning.
    `sprt` has the two hypotheses of a sequential test in normalised Elo, None for a match of a
    fixed length. `background`: the master plays it while it tunes.
    """

    theta: str = "final"
    against: str = "start"
    time_control: str | None = None
    sprt: tuple[float, float] | None = None
    background: bool = False


class Run(Numbered, Base, kw_only=True):
    """A run; theta holds the results of `applied` iterations, without what `purges` removed.

    `start_state` is what its rule knew at the start, if it began where another run was. Only
    `ReadQueries.run_overviews` reads what follows `slots`: how many play for it now, when the
    oldest of their batches was claimed, and whether it has not ended or has an open validation.
    """

    __tablename__ = "spsa_run"

    name: Mapped[str] = mapped_column(unique=True)
    status: Mapped[RunStatus] = status_column(RunStatus, RunStatus.RUNNING)
    reason: Mapped[str | None] = optional()  # why it is paused or stopped
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    algorithm: Mapped[str]
    settings: Mapped[Mapping[str, Any]]
    space: Mapped[Mapping[str, Any]]
    game_settings: Mapped[GameSettings]
    source_sha256: Mapped[str | None] = optional()
    max_iterations: Mapped[int]
    start_theta: Mapped[Values] = mapped_column(Stored(Values, "start_theta"), default_factory=dict)
    theta: Mapped[Values] = mapped_column(Stored(Values, "theta"))  # the current values
    estimates: Mapped[Estimates] = mapped_column(default=NOTHING_KNOWN)
    state: Mapped[Mapping[str, Any]]
    start_state: Mapped[Mapping[str, Any] | None] = optional()
    applied: Mapped[int] = number_column()
    master_id: Mapped[str | None] = optional()
    epoch: Mapped[int] = number_column(0, sa.BigInteger)
    lease_expires_at: Mapped[datetime | None] = optional()
    builds: Mapped[Builds] = mapped_column(default=Builds())
    created_at: Mapped[datetime] = now_column()
    finished_at: Mapped[datetime | None] = optional()
    # scheduling: the highest priority first, and equal ones by their shares of the slots
    priority: Mapped[int] = number_column()
    share: Mapped[float] = number_column(1)
    purges: Mapped[int] = number_column()  # how many; theta is computed without their results
    slots: Mapped[int] = query_expression()
    held_since: Mapped[datetime | None] = query_expression()
    has_master: Mapped[bool] = query_expression()
    live: Mapped[bool] = query_expression()

    __table_args__ = (
        CheckConstraint("share > 0", name="share"),
        CheckConstraint("applied >= 0 AND applied <= max_iterations", name="applied"),
        CheckConstraint(
            "(status IN ('finished', 'stopped')) = (finished_at IS NOT NULL)", name="finished"
        ),
    )

    @property
    def tunes(self) -> bool:
        """Whether it has iterations; one without has matches of engines alone."""
        return self.max_iterations > 0

    @property
    def has_ended(self) -> bool:
        """Whether it tunes no more."""
        return self.status in (RunStatus.FINISHED, RunStatus.STOPPED)


def run_columns(update: Update) -> dict[str, Any]:
    """The columns of a run for its theta, the rule's state and the estimates."""
    return {name: getattr(update, name) for name in ("theta", "state", "estimates")}


class Iteration(Counts, Numbered, Base, kw_only=True):
    """An iteration.

    When it was opened, theta held the results through `opened_on`, and the run had had
    `opened_purges` purges. `compared` and `match_number` are those of a validation: the rounds of
    one match have the number of the first of them.
    """

    __tablename__ = "spsa_iteration"

    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"), default=None)
    iteration_number: Mapped[int] = mapped_column(default=None)
    purpose: Mapped[Purpose] = status_column(Purpose, Purpose.TUNE, "purpose")
    k: Mapped[int | None] = optional()  # in the gain schedule; NULL for a validation
    opened_on: Mapped[int]
    in_flight: Mapped[int]
    a_k: Mapped[float | None] = optional()
    c_k: Mapped[float | None] = optional()
    plus_engine_path: Mapped[str] = mapped_column(default="")
    minus_engine_path: Mapped[str] = mapped_column(default="")
    plus_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_engine.sha256"), default=None)
    minus_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_engine.sha256"), default=None)
    plus_options: Mapped[Mapping[str, str]] = mapped_column(default_factory=dict)
    minus_options: Mapped[Mapping[str, str]] = mapped_column(default_factory=dict)
    # of one side: sha256 and path by the option that takes it
    plus_files: Mapped[Mapping[str, HashedFile]] = mapped_column(default_factory=dict)
    minus_files: Mapped[Mapping[str, HashedFile]] = mapped_column(default_factory=dict)
    game_settings: Mapped[GameSettings]
    timelow_ms: Mapped[int] = mapped_column(default=0)
    timehigh_ms: Mapped[int] = mapped_column(default=0)
    first_pair: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    rng_seed: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    target_games: Mapped[int]
    games_played: Mapped[int] = number_column()
    purged_games: Mapped[int] = number_column()  # and not played again
    status: Mapped[IterationStatus] = status_column(IterationStatus, IterationStatus.PENDING)
    base_parameters: Mapped[Values]
    plus_parameters: Mapped[Values]
    minus_parameters: Mapped[Values]
    perturbation_signs: Mapped[Mapping[str, int]] = mapped_column(default_factory=dict)
    # the gradient from this iteration's games alone, in Elo per step: E / (plus - minus), where
    # the divisor is at least 2 c_k; 0 for a parameter that was equal on both sides
    gradient_estimate: Mapped[Values | None] = optional()
    elo_diff: Mapped[float | None] = optional()
    created_at: Mapped[datetime] = now_column()
    completed_at: Mapped[datetime | None] = optional()
    opened_purges: Mapped[int] = number_column()
    requires: Mapped[str | None] = optional()  # of a worker: a pattern that `provides` is like
    # plus and minus for a level of x86-64, or for a pattern like `requires`
    variants: Mapped[Variants] = mapped_column(default_factory=dict)
    match_number: Mapped[int | None] = optional()
    compared: Mapped[Compared | None] = optional(Stored(Compared, "compared"))
    run: Mapped[Run] = _joined()

    __table_args__ = (
        UniqueConstraint("run_id", "iteration_number"),
        UniqueConstraint("run_id", "k"),
        CheckConstraint("(purpose = 'tune') = (k IS NOT NULL)", name="k"),
        CheckConstraint("target_games > 0 AND target_games % 2 = 0", name="whole_pairs"),
        CheckConstraint(
            f"games_played = {GAMES} AND games_played = 2 * {PAIRS}"
            f" AND games_played + purged_games <= target_games AND {HALF_POINTS_AGREE}",
            name="counts",
        ),
        CheckConstraint(
            "status <> 'complete' OR (games_played + purged_games = target_games"
            " AND completed_at IS NOT NULL)",
            name="complete",
        ),
        CheckConstraint(
            "purged_games = 0 OR (purged_games > 0 AND purged_games % 2 = 0"
            " AND status IN ('complete', 'abandoned'))",
            name="purged",
        ),
    )

    @property
    def is_open(self) -> bool:
        return bool(ITERATION[self.status])

    @property
    def asked(self) -> Compared:
        """What it compares; a match that does not say is theta against the start."""
        return self.compared or Compared()

    @property
    def is_background(self) -> bool:
        """Whether it is a round of a validation that is played while the run goes on."""
        return self.asked.background

    @property
    def opponent(self) -> str:
        """What it measures plus against, as "start", or `stockfish (1a2b), handicap 4`."""
        against, handicap = self.asked.against, self.game_settings.handicap
        return against if handicap == 1.0 else f"{against}, handicap {handicap:g}"

    def measures(self, opponent: str) -> bool:
        """Whether this validation says how strong a theta is against this opponent."""
        return self.opponent == opponent and bool(self.plus_parameters)

    @property
    def files(self) -> dict[str, str]:
        """Where its binaries and the files of its sides are, by their hashes."""
        files = (self.plus_files.values(), self.minus_files.values(), *self.variants.values())
        own = {self.plus_sha256: self.plus_engine_path, self.minus_sha256: self.minus_engine_path}
        return own | {file.sha256: file.path for some in files for file in some}

    @property
    def is_played(self) -> bool:
        """Whether all games of an open one have been reported."""
        return self.games_played == self.target_games


IS_OPEN = written_out(Iteration.status, IterationStatus.PENDING, IterationStatus.IN_PROGRESS)
"""An iteration that waits to be played or is being played."""

NARROW = [
    getattr(Iteration, name)
    for name in (
        *("iteration_number", "purpose", "k", "opened_on", "status", "a_k", "c_k"),
        *("target_games", "void_games", "purged_games", "created_at", "completed_at", *COUNTS),
    )
]
"""The columns of an iteration whose size does not grow with the number of parameters."""

IS_ABANDONED = written_out(Iteration.status, IterationStatus.ABANDONED)
IS_VALIDATION = written_out(Iteration.purpose, Purpose.VALIDATE)


class Step(Numbered, Base, kw_only=True):
    """One row of the append-only log of steps; `epoch` is of the master that applied it."""

    __tablename__ = "spsa_step"

    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"))
    iteration_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("spsa_iteration.id"), unique=True
    )
    k: Mapped[int]
    theta_before: Mapped[Values]
    delta: Mapped[Values]
    theta_after: Mapped[Values] = mapped_column(Stored(Values, "theta_after"))
    bounded: Mapped[bool]
    epoch: Mapped[int] = mapped_column(sa.BigInteger)
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (UniqueConstraint("run_id", "k"),)


class Purge(Numbered, Base, kw_only=True):
    """One purge of a run: `number` counts from 1.

    Theta held the results through `applied`, and changed from `theta_before` to `theta_after`.
    """

    __tablename__ = "spsa_purge"

    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"))
    number: Mapped[int]
    applied: Mapped[int]
    theta_before: Mapped[Values]
    theta_after: Mapped[Values] = mapped_column(Stored(Values, "theta_after"))
    games: Mapped[int] = number_column()
    selection: Mapped[Mapping[str, Any]]
    actor: Mapped[str]
    reason: Mapped[str]
    at: Mapped[datetime] = now_column()

    __table_args__ = (UniqueConstraint("run_id", "number"),)


class Event(Numbered, Base, kw_only=True):
    """What was changed in a run, or of a machine in all runs, when and by whom."""

    __tablename__ = "spsa_event"

    at: Mapped[datetime] = now_column()
    run_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_run.id"))
    kind: Mapped[str]
    actor: Mapped[str]
    detail: Mapped[Mapping[str, Any]]


partial_index("ix_spsa_iteration_open", IS_OPEN, Iteration.run_id, Iteration.id)
partial_index("ix_spsa_iteration_abandoned", IS_ABANDONED, Iteration.run_id)
partial_index(
    "ix_spsa_iteration_validation", IS_VALIDATION, Iteration.run_id, Iteration.iteration_number
)
Index("ix_spsa_iteration_completed", Iteration.run_id, Iteration.completed_at)


class Machine(Base, kw_only=True):
    """A computer that plays, and what identifies its workers.

    `secret_sha256` is the hash of its token if a person invited it, else that of the secret that it
    made itself. A builder may also build engines for others.
    """

    __tablename__ = "spsa_machine"

    # of a host; a second one of its name gets a longer one
    name: Mapped[Annotated[str, Text(1, NAME_LENGTH + 20)]] = mapped_column(primary_key=True)
    secret_sha256: Mapped[protocol.Sha256] = mapped_column(unique=True)
    role: Mapped[MachineRole] = status_column(MachineRole, MachineRole.WORKER, "role")
    invited_by: Mapped[str | None] = optional()  # NULL: a direct worker registered it
    created_at: Mapped[datetime] = now_column()
    revoked_at: Mapped[datetime | None] = optional()

    @property
    def may_build(self) -> bool:
        """Whether its workers may build engines for others."""
        return self.invited_by is None or self.role is MachineRole.BUILDER


class Worker(Numbered, Base, kw_only=True):
    """A worker process, and what it said of itself when it registered.

    Only `ReadQueries.workers` reads what follows `now`, the time of the database.
    """

    __tablename__ = "spsa_worker"

    name: Mapped[protocol.Name] = mapped_column(unique=True)
    host: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"))
    platform: Mapped[protocol.Word]
    cores: Mapped[protocol.Cores]
    concurrency: Mapped[protocol.Slots]
    nps: Mapped[protocol.Speed | None] = optional()
    scale: Mapped[protocol.Scale | None] = optional()  # by what it multiplied times last
    version: Mapped[protocol.Word]
    first_seen_at: Mapped[datetime] = now_column()
    last_seen_at: Mapped[datetime] = now_column()
    sandbox: Mapped[protocol.Word | None] = optional()  # of its engines
    # words in order, each between two spaces
    provides: Mapped[Annotated[str, protocol.SHORT] | None] = optional()
    # the runs that it takes and those that it leaves, as the keys of objects; NULL: all, none
    only_runs: Mapped[Annotated[Mapping[str, Any], protocol.SHORT] | None] = optional()
    not_runs: Mapped[Annotated[Mapping[str, Any], protocol.SHORT] | None] = optional()
    # void games of the attempts that it failed, until its machine is released
    failed_void_games: Mapped[int] = number_column(0, sa.BigInteger)
    now: Mapped[datetime] = query_expression()
    batches: Mapped[int] = query_expression()
    games: Mapped[int] = query_expression()
    games_leased: Mapped[int] = query_expression()
    void_games: Mapped[int] = query_expression()
    time_losses: Mapped[int] = query_expression()

    __table_args__ = (
        Index("ix_spsa_worker_last_seen_at", "last_seen_at"),
        Index("ix_spsa_worker_host", "host"),
    )

    @property
    def words(self) -> tuple[str, ...]:
        """What it provides."""
        return protocol.words_of(self.provides)

    @property
    def seconds_since_seen(self) -> float:
        return max(0.0, (self.now - self.last_seen_at).total_seconds())


class Batch(Counts, Leased, Numbered, Base, kw_only=True):
    """Whole pairs of one iteration with a seed: what a worker claims, plays and reports once.

    A purged one keeps the result that counts no more; if the iteration was open, it is
    `played_again`: another row with the same `seq` was added.
    """

    __tablename__ = "spsa_batch"

    iteration_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_iteration.id"))
    seq: Mapped[int]
    games: Mapped[int]
    first_pair: Mapped[int] = mapped_column(sa.BigInteger)
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    # whose lease had expired when the batch was claimed last
    expired_worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    voids: Mapped[Annotated[Mapping[str, int], protocol.VOIDS] | None] = optional()
    own_void_games: Mapped[int] = number_column()  # of the reported attempt: the sum of `voids`
    # the last ones
    void_log: Mapped[tuple[protocol.KeptVoid, ...] | None] = optional(
        Stored(tuple[protocol.KeptVoid, ...], "void_log")
    )
    void_worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    plus_nodes: Mapped[protocol.Nodes] = number_column(0, sa.BigInteger)
    minus_nodes: Mapped[protocol.Nodes] = number_column(0, sa.BigInteger)
    moves: Mapped[int] = number_column(0, sa.BigInteger)
    plus_time_losses: Mapped[int] = number_column()
    minus_time_losses: Mapped[int] = number_column()
    seconds: Mapped[protocol.Played] = number_column()
    reported_at: Mapped[datetime | None] = optional()
    last_error: Mapped[protocol.Reason | None] = optional()
    slot: Mapped[protocol.Slot | None] = optional()  # of its worker, from 0
    think_seconds: Mapped[protocol.Played] = number_column()  # of both engines
    scale: Mapped[protocol.Scale] = number_column(1)  # of its times
    purge: Mapped[int] = number_column()  # the number of the purge; 0 if there was none
    time_control: Mapped[int] = number_column()  # the number of that of its games, from 0
    played_again: Mapped[bool] = mapped_column(default=False, server_default=sa.false())
    iteration: Mapped[Iteration] = _joined()
    # who holds it or held it last
    worker: Mapped[Worker | None] = _joined(foreign_keys="Batch.worker_id")
    void_worker: Mapped[Worker | None] = _joined(foreign_keys="Batch.void_worker_id")

    __table_args__ = (
        UniqueConstraint("iteration_id", "seq", "purge"),
        CheckConstraint(HAS_LEASE, name="leased"),
        CheckConstraint("games > 0 AND games % 2 = 0", name="whole_pairs"),
        CheckConstraint(
            f"CASE WHEN status IN ('done', 'purged') THEN claim_id IS NOT NULL AND {GAMES} = games"
            f" AND 2 * {PAIRS} = games AND {HALF_POINTS_AGREE} ELSE {GAMES} + {PAIRS} = 0 END"
            f" AND {NONE_NEGATIVE}",
            name="counts",
        ),
        CheckConstraint(
            f"plus_time_losses BETWEEN 0 AND games AND minus_time_losses BETWEEN 0 AND games"
            f" AND moves BETWEEN 0 AND games * {2 * MAX_MOVES}",
            name="costs",
        ),
        CheckConstraint("status <> 'purged' OR purge > 0", name="purged"),
        CheckConstraint("time_control >= 0", name="time_control"),
        CheckConstraint("own_void_games BETWEEN 0 AND void_games", name="void_games"),
    )

    @property
    def time_losses(self) -> int:
        return self.plus_time_losses + self.minus_time_losses

    @property
    def nodes_per_second(self) -> float | None:
        """Of one engine; None where no time is known."""
        nodes = self.plus_nodes + self.minus_nodes
        return nodes / self.think_seconds if self.think_seconds > 0 else None


IS_READY = written_out(Batch.status, BatchStatus.READY)
IS_LEASED = written_out(Batch.status, BatchStatus.LEASED)
IS_PURGED = Batch.purge > sa.literal_column("0")
NOT_PURGED = Batch.purge == 0


class FailureRow(Base, kw_only=True):
    """A machine that could not play a batch: how often it failed, how often its lease expired."""

    __tablename__ = "spsa_failure"

    batch_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_batch.id"), primary_key=True)
    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"), primary_key=True)
    failures: Mapped[int] = number_column()
    lost_leases: Mapped[int] = number_column()
    # of the binary that failed, where that is known
    sha256: Mapped[protocol.Sha256 | None] = optional()
    reason: Mapped[protocol.Reason | None] = optional()  # of the last failure
    at: Mapped[datetime] = now_column()
    batch: Mapped[Batch] = _joined()

    __table_args__ = (Index("ix_spsa_failure_at", "at"),)


class SetAsideRow(Numbered, Base, kw_only=True):
    """A machine that gets no batches of one binary, or none at all if `sha256` is None."""

    __tablename__ = "spsa_set_aside"

    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"))
    sha256: Mapped[protocol.Sha256 | None] = optional()
    reason: Mapped[protocol.Reason]
    actor: Mapped[str]
    at: Mapped[datetime] = now_column()

    __table_args__ = (UniqueConstraint("machine", "sha256"),)


# three indexes: the search for a ready batch must not read all leased ones, the search for an
# expired lease not all ready ones, and what a worker holds not all that it ever had
partial_index("ix_spsa_batch_ready", IS_READY, Batch.iteration_id, Batch.attempt, Batch.seq)
partial_index("ix_spsa_batch_leased", IS_LEASED, Batch.iteration_id, Batch.lease_expires_at)
partial_index("ix_spsa_batch_purged", IS_PURGED, Batch.purge, Batch.iteration_id)
partial_index("ix_spsa_batch_held", IS_LEASED, Batch.worker_id)
Index("ix_spsa_batch_worker_id", Batch.worker_id)
