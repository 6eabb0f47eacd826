"""The tables of machines and their workers, and of the batches that they play."""

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, Column, ForeignKey, Table, UniqueConstraint

from spsa.db.schema_types import (
    GAMES,
    HALF_POINTS_AGREE,
    NONE_NEGATIVE,
    PAIRS,
    Identity,
    Json,
    UtcTime,
    counts,
    created_at,
    limited,
    metadata,
    now,
    one_of,
    written_out,
)
from spsa.lifecycle import BatchStatus

# a computer that plays; it is identified by its login and its secret, or, without a secret, by a
# login of its own (`grant --machine`)
machines = Table(
    "spsa_machine",
    metadata,
    Column("name", sa.Text, primary_key=True),
    Column("login", sa.Text, nullable=False, server_default=""),  # empty on SQLite
    Column("secret_sha256", sa.Text),
    created_at(),
    UniqueConstraint("login", "secret_sha256"),
    *limited("spsa_machine"),
)

workers = Table(
    "spsa_worker",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("name", sa.Text, nullable=False, unique=True),
    Column("host", ForeignKey("spsa_machine.name"), nullable=False),
    Column("platform", sa.Text, nullable=False),
    Column("cores", sa.Integer, nullable=False),
    Column("concurrency", sa.Integer, nullable=False),
    Column("nps", sa.Double),
    Column("scale", sa.Double),  # by what it multiplied times last, see Scale
    Column("version", sa.Text, nullable=False),
    now("first_seen_at"),
    now("last_seen_at"),
    Column("confinement", sa.Text),  # the sandbox of its engines
    Column("provides", sa.Text),  # words in order, each between two spaces
    # the runs that it takes and those that it leaves, as the keys of objects; NULL: all, none
    Column("only_runs", Json),
    Column("not_runs", Json),
    # sums over complete iterations
    Column("batches", sa.BigInteger, nullable=False, server_default="0"),
    Column("games", sa.BigInteger, nullable=False, server_default="0"),
    Column("void_games", sa.BigInteger, nullable=False, server_default="0"),
    Column("time_losses", sa.BigInteger, nullable=False, server_default="0"),
    # void games of the attempts that it failed, until its machine is released
    Column("failed_void_games", sa.BigInteger, nullable=False, server_default="0"),
    *limited("spsa_worker"),
)

batches = Table(
    "spsa_batch",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("iteration_id", ForeignKey("spsa_iteration.id"), nullable=False),
    Column("seq", sa.Integer, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("first_pair", sa.BigInteger, nullable=False),
    Column("seed", sa.BigInteger, nullable=False),
    Column("status", sa.Text, nullable=False, server_default=BatchStatus.READY),
    Column("attempt", sa.Integer, nullable=False, server_default="0"),
    Column("max_attempts", sa.Integer, nullable=False),
    Column("claim_id", sa.Text),
    Column("worker_id", ForeignKey("spsa_worker.id")),
    Column("leased_at", UtcTime),
    Column("lease_expires_at", UtcTime),
    *counts(),
    Column("voids", Json),
    Column("void_log", Json),  # the last void games, see KeptVoid
    Column("void_worker_id", ForeignKey("spsa_worker.id")),  # whose they are
    Column("plus_nodes", sa.BigInteger, nullable=False, server_default="0"),
    Column("minus_nodes", sa.BigInteger, nullable=False, server_default="0"),
    Column("moves", sa.BigInteger, nullable=False, server_default="0"),
    Column("plus_time_losses", sa.Integer, nullable=False, server_default="0"),
    Column("minus_time_losses", sa.Integer, nullable=False, server_default="0"),
    Column("seconds", sa.Double, nullable=False, server_default="0"),
    Column("reported_at", UtcTime),
    Column("last_error", sa.Text),
    Column("slot", sa.Integer),  # of its worker, from 0
    Column("think_seconds", sa.Double, nullable=False, server_default="0"),  # of both engines
    Column("scale", sa.Double, nullable=False, server_default="1"),  # of its times, see Scale
    Column(
        "failures", sa.Integer, nullable=False, server_default="0"
    ),  # machines, see spsa_failure
    UniqueConstraint("iteration_id", "seq"),
    one_of("status", BatchStatus, "status"),
    CheckConstraint("games > 0 AND games % 2 = 0", name="whole_pairs"),
    CheckConstraint("attempt >= 0 AND failures >= 0", name="attempt"),
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
    *limited("spsa_batch"),
)

IS_READY = written_out(batches.c.status, BatchStatus.READY)
IS_LEASED = written_out(batches.c.status, BatchStatus.LEASED)

# a batch that a machine could not play: how often it failed, and how often its lease expired
failures = Table(
    "spsa_failure",
    metadata,
    Column("batch_id", ForeignKey("spsa_batch.id"), primary_key=True),
    Column("machine", ForeignKey("spsa_machine.name"), primary_key=True),
    Column("failures", sa.Integer, nullable=False, server_default="0"),
    Column("lost_leases", sa.Integer, nullable=False, server_default="0"),
    Column("sha256", sa.Text),  # of the binary that failed, where that is known
    Column("reason", sa.Text),  # of the last failure
    now("at"),
    CheckConstraint("failures >= 0 AND lost_leases >= 0", name="numbers"),
    *limited("spsa_failure"),
)

# a machine that gets no batches of one binary, or none at all
set_aside = Table(
    "spsa_set_aside",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("machine", ForeignKey("spsa_machine.name"), nullable=False),
    Column("sha256", sa.Text),  # NULL: all binaries
    Column("reason", sa.Text, nullable=False),
    Column("actor", sa.Text, nullable=False),
    now("at"),
    UniqueConstraint("machine", "sha256"),
    *limited("spsa_set_aside"),
)

# a purged result, as it was reported
purged = Table(
    "spsa_struck",
    metadata,
    Column("id", Identity, primary_key=True),
    Column("purge_id", ForeignKey("spsa_purge.id"), nullable=False),
    Column("iteration_id", ForeignKey("spsa_iteration.id"), nullable=False),
    Column("seq", sa.Integer, nullable=False),
    Column("games", sa.Integer, nullable=False),
    Column("played_again", sa.Boolean, nullable=False),  # its batch became ready again
    Column("worker_id", ForeignKey("spsa_worker.id"), nullable=False),
    Column("claim_id", sa.Text, nullable=False),
    Column("attempt", sa.Integer, nullable=False),
    Column("slot", sa.Integer),
    *counts(),
    Column("voids", Json),
    Column("plus_nodes", sa.BigInteger, nullable=False),
    Column("minus_nodes", sa.BigInteger, nullable=False),
    Column("moves", sa.BigInteger, nullable=False),
    Column("plus_time_losses", sa.Integer, nullable=False),
    Column("minus_time_losses", sa.Integer, nullable=False),
    Column("seconds", sa.Double, nullable=False),
    Column("reported_at", UtcTime, nullable=False),
    UniqueConstraint("purge_id", "iteration_id", "seq"),
    CheckConstraint(f"{GAMES} = games AND 2 * {PAIRS} = games", name="counts"),
)
