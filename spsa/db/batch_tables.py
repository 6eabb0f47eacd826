"""The tables of machines and their workers, and of the batches that they play."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from spsa.core.game_settings.numbers import MAX_MOVES
from spsa.core.json_values import from_json
from spsa.db.base import (
    GAMES,
    HALF_POINTS_AGREE,
    NONE_NEGATIVE,
    PAIRS,
    Base,
    Counts,
    Identity,
    Json,
    Stored,
    UtcTime,
    limited,
    now_column,
    number_column,
    one_of,
    optional,
    partial_index,
    status_column,
    text_column,
    written_out,
)
from spsa.errors import OutOfRange
from spsa.lifecycle import BatchStatus, MachineRole
from spsa.protocol import (
    KEPT_VOIDS_LENGTH,
    BatchResult,
    ClaimRequest,
    Failure,
    KeptVoid,
    Touch,
    WorkerInfo,
)


class Machine(Base, kw_only=True):
    """A computer that plays, and what identifies its workers.

    `secret_sha256` is the hash of its token if a person invited it, else that of the secret that it
    made itself. A builder may also build engines for others.
    """

    __tablename__ = "spsa_machine"

    name: Mapped[str] = text_column(primary_key=True)
    secret_sha256: Mapped[str] = text_column(unique=True)
    role: Mapped[MachineRole] = status_column(MachineRole, MachineRole.WORKER)
    invited_by: Mapped[str | None] = optional()  # NULL: a direct worker registered it
    created_at: Mapped[datetime] = now_column()
    revoked_at: Mapped[datetime | None] = optional(UtcTime)

    __table_args__ = (
        one_of("role", MachineRole, "role"),
        CheckConstraint("length(name) BETWEEN 1 AND 220", name="name"),
        CheckConstraint("length(secret_sha256) = 64", name="secret_sha256"),
    )

    @property
    def may_build(self) -> bool:
        """Whether its workers may build engines for others."""
        return self.invited_by is None or self.role is MachineRole.BUILDER


class Worker(Base, kw_only=True):
    """A worker process, and what it said of itself when it registered."""

    __tablename__ = "spsa_worker"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    name: Mapped[str] = text_column(unique=True)
    host: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"))
    platform: Mapped[str] = text_column()
    cores: Mapped[int]
    concurrency: Mapped[int]
    nps: Mapped[float | None] = optional(sa.Double)
    scale: Mapped[float | None] = optional(sa.Double)  # by what it multiplied times last
    version: Mapped[str] = text_column()
    first_seen_at: Mapped[datetime] = now_column()
    last_seen_at: Mapped[datetime] = now_column()
    sandbox: Mapped[str | None] = optional()  # of its engines
    provides: Mapped[str | None] = optional()  # words in order, each between two spaces
    # the runs that it takes and those that it leaves, as the keys of objects; NULL: all, none
    only_runs: Mapped[Mapping[str, Any] | None] = optional(Json)
    not_runs: Mapped[Mapping[str, Any] | None] = optional(Json)
    # void games of the attempts that it failed, until its machine is released
    failed_void_games: Mapped[int] = number_column(kind=sa.BigInteger)

    __table_args__ = (
        *limited(WorkerInfo, "name", "platform", "cores", "concurrency", "version", "sandbox"),
        *limited(WorkerInfo, "provides", "only_runs", "not_runs"),
        *limited(Touch, "nps", "scale"),
        Index("ix_spsa_worker_last_seen_at", "last_seen_at"),
        Index("ix_spsa_worker_host", "host"),
    )


def _void_counts(voids: Any) -> Mapping[str, int]:
    """What a worker has sent; anything that is no number of games is left out."""
    counts = voids.items() if isinstance(voids, dict) else ()
    return {reason: games for reason, games in counts if type(games) is int}


def _kept_voids(log: Any) -> tuple[KeptVoid, ...]:
    """What a worker has sent; anything that is no such game is left out."""
    found = []
    for one in log if isinstance(log, list) else ():
        with suppress(OutOfRange):
            found.append(from_json(KeptVoid, one))
    return tuple(found)


class Batch(Counts, Base, kw_only=True):
    """Whole pairs of one iteration with a seed: what a worker claims, plays and reports once."""

    __tablename__ = "spsa_batch"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    iteration_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_iteration.id"))
    seq: Mapped[int]
    games: Mapped[int]
    first_pair: Mapped[int] = mapped_column(sa.BigInteger)
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    status: Mapped[BatchStatus] = status_column(BatchStatus, BatchStatus.READY)
    attempt: Mapped[int] = number_column()
    max_attempts: Mapped[int]
    claim_id: Mapped[str | None] = optional()
    worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    # whose lease had expired when the batch was claimed last
    expired_worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    leased_at: Mapped[datetime | None] = optional(UtcTime)
    lease_expires_at: Mapped[datetime | None] = optional(UtcTime)
    voids: Mapped[Mapping[str, int] | None] = optional(Stored(_void_counts))
    own_void_games: Mapped[int] = number_column()  # of the reported attempt: the sum of `voids`
    void_log: Mapped[tuple[KeptVoid, ...] | None] = optional(Stored(_kept_voids))  # the last ones
    void_worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    plus_nodes: Mapped[int] = number_column(kind=sa.BigInteger)
    minus_nodes: Mapped[int] = number_column(kind=sa.BigInteger)
    moves: Mapped[int] = number_column(kind=sa.BigInteger)
    plus_time_losses: Mapped[int] = number_column()
    minus_time_losses: Mapped[int] = number_column()
    seconds: Mapped[float] = number_column(kind=sa.Double)
    reported_at: Mapped[datetime | None] = optional(UtcTime)
    last_error: Mapped[str | None] = optional()
    slot: Mapped[int | None] = optional(sa.Integer)  # of its worker, from 0
    think_seconds: Mapped[float] = number_column(kind=sa.Double)  # of both engines
    scale: Mapped[float] = number_column(1, sa.Double)  # of its times
    # who holds it or held it last; only `batch_lines` reads it
    worker: Mapped[Worker | None] = relationship(
        foreign_keys=[worker_id], viewonly=True, lazy="raise", init=False, repr=False, compare=False
    )

    __table_args__ = (
        UniqueConstraint("iteration_id", "seq"),
        one_of("status", BatchStatus, "status"),
        CheckConstraint("games > 0 AND games % 2 = 0", name="whole_pairs"),
        CheckConstraint("attempt >= 0", name="attempt"),
        CheckConstraint(
            "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL"
            " AND worker_id IS NOT NULL)",
            name="leased",
        ),
        CheckConstraint(
            f"CASE WHEN status = 'done' THEN claim_id IS NOT NULL AND {GAMES} = games"
            f" AND 2 * {PAIRS} = games AND {HALF_POINTS_AGREE} ELSE {GAMES} + {PAIRS} = 0 END"
            f" AND {NONE_NEGATIVE}",
            name="counts",
        ),
        CheckConstraint(
            f"plus_time_losses BETWEEN 0 AND games AND minus_time_losses BETWEEN 0 AND games"
            f" AND moves BETWEEN 0 AND games * {2 * MAX_MOVES}",
            name="costs",
        ),
        CheckConstraint("own_void_games BETWEEN 0 AND void_games", name="void_games"),
        CheckConstraint(
            f"length(CAST(void_log AS TEXT)) <= {2 * KEPT_VOIDS_LENGTH}", name="void_log"
        ),
        *limited(BatchResult, "voids", "plus_nodes", "minus_nodes", "slot"),
        *limited(BatchResult, "seconds", "think_seconds", "scale"),
        *limited(ClaimRequest, "claim_id"),
        *limited(Failure, last_error="reason"),
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


class BatchFailure(Base, kw_only=True):
    """A machine that could not play a batch: how often it failed, how often its lease expired."""

    __tablename__ = "spsa_failure"

    batch_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_batch.id"), primary_key=True)
    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"), primary_key=True)
    failures: Mapped[int] = number_column()
    lost_leases: Mapped[int] = number_column()
    sha256: Mapped[str | None] = optional()  # of the binary that failed, where that is known
    reason: Mapped[str | None] = optional()  # of the last failure
    at: Mapped[datetime] = now_column()

    __table_args__ = (
        CheckConstraint("failures >= 0 AND lost_leases >= 0", name="numbers"),
        *limited(Failure, "sha256", "reason"),
        Index("ix_spsa_failure_at", "at"),
    )


class SetAside(Base, kw_only=True):
    """A machine that gets no batches of one binary, or none at all if `sha256` is None."""

    __tablename__ = "spsa_set_aside"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"))
    sha256: Mapped[str | None] = optional()
    reason: Mapped[str] = text_column()
    actor: Mapped[str] = text_column()
    at: Mapped[datetime] = now_column()

    __table_args__ = (
        UniqueConstraint("machine", "sha256"),
        *limited(Failure, "sha256", "reason"),
    )


class PurgedBatch(Counts, Base, kw_only=True):
    """A purged result, as it was reported; `played_again`: its batch became ready again."""

    __tablename__ = "spsa_purged"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    purge_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_purge.id"))
    iteration_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_iteration.id"))
    seq: Mapped[int]
    games: Mapped[int]
    played_again: Mapped[bool]
    worker_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_worker.id"))
    claim_id: Mapped[str] = text_column()
    attempt: Mapped[int]
    slot: Mapped[int | None] = optional(sa.Integer)
    voids: Mapped[Mapping[str, int] | None] = optional(Json)
    plus_nodes: Mapped[int] = mapped_column(sa.BigInteger)
    minus_nodes: Mapped[int] = mapped_column(sa.BigInteger)
    moves: Mapped[int] = mapped_column(sa.BigInteger)
    plus_time_losses: Mapped[int]
    minus_time_losses: Mapped[int]
    seconds: Mapped[float] = mapped_column(sa.Double)
    reported_at: Mapped[datetime] = mapped_column(UtcTime)

    __table_args__ = (
        UniqueConstraint("purge_id", "iteration_id", "seq"),
        CheckConstraint(f"{GAMES} = games AND 2 * {PAIRS} = games", name="counts"),
        Index("ix_spsa_purged_iteration_id", "iteration_id"),
        Index("ix_spsa_purged_worker_id", "worker_id"),
    )


# three indexes: the search for a ready batch must not read all leased ones, the search for an
# expired lease not all ready ones, and what a worker holds not all that it ever had
partial_index("ix_spsa_batch_ready", IS_READY, Batch.iteration_id, Batch.attempt, Batch.seq)
partial_index("ix_spsa_batch_leased", IS_LEASED, Batch.iteration_id, Batch.lease_expires_at)
partial_index("ix_spsa_batch_held", IS_LEASED, Batch.worker_id)
Index("ix_spsa_batch_claim_id", Batch.claim_id, unique=True)
Index("ix_spsa_batch_worker_id", Batch.worker_id)
