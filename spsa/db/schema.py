"""The schema: its version, all its tables, and the views."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Table

from spsa.db.batch_tables import (
    IS_LEASED,
    IS_READY,
    batches,
    failures,
    machines,
    purged,
    set_aside,
    workers,
)
from spsa.db.run_tables import (
    IS_ABANDONED,
    IS_OPEN,
    IS_VALIDATION,
    build_failures,
    builds,
    changes,
    engines,
    events,
    files,
    iterations,
    purges,
    runs,
    steps,
)
from spsa.db.schema_types import Json, UtcTime, metadata, seconds_from_now, written_out
from spsa.db.sql_files import named_statements

REVISION = "0001"
"""The migration that creates this schema; the program works only with a database at it."""

_HIDDEN = ("claim_id", "bytes", "secret_sha256")


def shown(table: Table) -> list[Column[Any]]:
    """The columns for viewers: no bytes, no secrets, no ids of claims, which permit a report."""
    return [column for column in table.c if column.name not in _HIDDEN]


VIEWS = named_statements("views.sql")
"""The views for people: name -> query."""

PRIVATE_VIEWS = named_statements("worker_views.sql")
"""The views for claims, which hold the ids of claims: name -> query."""

MISCOUNTED = sa.table("spsa_miscounted", sa.column("iteration_id"))
SUITED = sa.table(
    "spsa_suited", *map(sa.column, ("iteration_id", "worker_id", "machine", "last_seen_at"))
)

__all__ = [
    "IS_ABANDONED",
    "IS_LEASED",
    "IS_OPEN",
    "IS_READY",
    "IS_VALIDATION",
    "MISCOUNTED",
    "PRIVATE_VIEWS",
    "REVISION",
    "SUITED",
    "VIEWS",
    "Json",
    "UtcTime",
    "batches",
    "build_failures",
    "builds",
    "changes",
    "engines",
    "events",
    "failures",
    "files",
    "iterations",
    "machines",
    "metadata",
    "purged",
    "purges",
    "runs",
    "seconds_from_now",
    "set_aside",
    "shown",
    "steps",
    "workers",
    "written_out",
]
