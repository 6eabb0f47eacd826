"""The indexes of the tables of `schema`, and its checks, for who makes or compares tables.

They stand apart because SQLAlchemy loads the dialects of both databases to know which rows a
partial index holds, 3 MiB that a program that only uses the tables has no need of.
"""

from sqlalchemy import Index

from spsa import soundness
from spsa.schema import (
    IS_ABANDONED,
    IS_LEASED,
    IS_OPEN,
    IS_READY,
    IS_VALIDATION,
    batches,
    iterations,
    metadata,
    struck,
)

__all__ = ["metadata"]

Index(
    "ix_spsa_iteration_open",
    iterations.c.run_id,
    iterations.c.id,
    sqlite_where=IS_OPEN,
    postgresql_where=IS_OPEN,
)
Index(
    "ix_spsa_iteration_abandoned",
    iterations.c.run_id,
    sqlite_where=IS_ABANDONED,
    postgresql_where=IS_ABANDONED,
)
Index(
    "ix_spsa_iteration_validation",
    iterations.c.run_id,
    iterations.c.iteration_number,
    sqlite_where=IS_VALIDATION,
    postgresql_where=IS_VALIDATION,
)
Index("ix_spsa_iteration_completed", iterations.c.run_id, iterations.c.completed_at)
# two, so that neither who looks for a free batch reads all that are being played, nor who looks
# for one that was left behind
Index(
    "ix_spsa_batch_ready",
    batches.c.iteration_id,
    batches.c.seq,
    sqlite_where=IS_READY,
    postgresql_where=IS_READY,
)
Index(
    "ix_spsa_batch_leased",
    batches.c.iteration_id,
    batches.c.lease_expires_at,
    sqlite_where=IS_LEASED,
    postgresql_where=IS_LEASED,
)
Index("ix_spsa_batch_claim_id", batches.c.claim_id, unique=True)
Index("ix_spsa_batch_worker_id", batches.c.worker_id)
Index("ix_spsa_struck_iteration_id", struck.c.iteration_id)
Index("ix_spsa_struck_worker_id", struck.c.worker_id)

soundness.attach()
