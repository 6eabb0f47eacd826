"""The indexes of the tables, for migrations and for tests that compare schemas.

They are in a module of their own because a partial index makes SQLAlchemy load the dialects of both
databases: 3 MiB that a program which only uses the tables does not need.
"""

from typing import Any

from sqlalchemy import Column, ColumnElement, Index

from spsa.db.schema import (
    IS_ABANDONED,
    IS_LEASED,
    IS_OPEN,
    IS_READY,
    IS_VALIDATION,
    batches,
    failures,
    iterations,
    metadata,
    purged,
)

__all__ = ["metadata"]


def _partial(name: str, rows: ColumnElement[bool], *columns: Column[Any]) -> None:
    """An index of some rows, the same on both databases."""
    Index(name, *columns, sqlite_where=rows, postgresql_where=rows)


_partial("ix_spsa_iteration_open", IS_OPEN, iterations.c.run_id, iterations.c.id)
_partial("ix_spsa_iteration_abandoned", IS_ABANDONED, iterations.c.run_id)
_partial(
    "ix_spsa_iteration_validation",
    IS_VALIDATION,
    iterations.c.run_id,
    iterations.c.iteration_number,
)
Index("ix_spsa_iteration_completed", iterations.c.run_id, iterations.c.completed_at)
# two indexes: the search for a ready batch must not read all leased ones, and the search for an
# expired lease must not read all ready ones
_partial("ix_spsa_batch_ready", IS_READY, batches.c.iteration_id, batches.c.seq)
_partial("ix_spsa_batch_leased", IS_LEASED, batches.c.iteration_id, batches.c.lease_expires_at)
Index("ix_spsa_batch_claim_id", batches.c.claim_id, unique=True)
Index("ix_spsa_batch_worker_id", batches.c.worker_id)
Index("ix_spsa_failure_at", failures.c.at)
Index("ix_spsa_struck_iteration_id", purged.c.iteration_id)
Index("ix_spsa_struck_worker_id", purged.c.worker_id)
