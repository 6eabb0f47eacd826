"""Fails the batches that no machine can play, and lists the machines that failed batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.db.base import time_from_now
from spsa.db.batch_tables import Batch, BatchFailure, SetAside, Worker
from spsa.db.run_status import pause_for_failure
from spsa.db.run_tables import Iteration
from spsa.db.statements import execute
from spsa.lifecycle import BatchStatus
from spsa.text import plural

ACTIVE_SECONDS = 120
"""A worker that was last seen longer ago does not count as active."""

RECENT_FAILURE_SECONDS = 3600
"""How long a failure counts against a machine."""

LEASES_EXPIRED = "every worker that claimed it disappeared without a report"


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


def fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Fail batches that were tried often enough, and pause their run with the reason.

    `exhausted` in protocol.sql says how often that is; claims hand batches out by the same rule.
    """
    ids = execute(connection, "exhausted", run_id=run_id).scalars().all()
    if not ids:
        return
    for row in execute(connection, "exhaust", batch_ids=ids, reason=LEASES_EXPIRED).all():
        number = select(Iteration.iteration_number).where(Iteration.id == row.iteration_id)
        tried = select(func.count()).where(BatchFailure.batch_id == row.id)
        machines = max(1, connection.scalar(tried) or 0)
        place = f"iteration {connection.scalar(number)} batch {row.seq}"
        reason = f"{place}: {row.last_error} (tried by {plural(machines, 'machine')})"
        pause_for_failure(connection, run_id, "master", reason)


def machine_failures(connection: sa.Connection, run_id: int) -> list[MachineFailures]:
    """The machines that failed batches of a run within the last hour, and what was played.

    An expired lease is no such failure: a machine may be switched off at any time.
    """
    # subqueries, not joins, so that both databases start with the few failures of this hour
    batch = select(Batch.iteration_id).where(Batch.id == BatchFailure.batch_id)
    its_iteration = batch.correlate(BatchFailure).scalar_subquery()
    run = select(Iteration.run_id).where(Iteration.id == its_iteration)
    its_run = run.correlate(BatchFailure).scalar_subquery()
    columns = (BatchFailure.machine, BatchFailure.sha256, BatchFailure.reason)
    recent = (
        select(*columns, its_iteration.label("iteration_id"))
        .where(
            its_run == run_id,
            BatchFailure.failures > 0,
            BatchFailure.at > time_from_now(-RECENT_FAILURE_SECONDS),
        )
        .order_by(BatchFailure.machine, BatchFailure.at)
    )
    by_machine: dict[str, list[Any]] = {}
    for row in connection.execute(recent).all():
        by_machine.setdefault(row.machine, []).append(row)
    return [_failures_of(connection, machine, own) for machine, own in by_machine.items()]


def _failures_of(connection: sa.Connection, machine: str, own: Sequence[Any]) -> MachineFailures:
    ids = {row.iteration_id for row in own}
    played = connection.execute(
        select(Worker.host, func.count().label("batches"))
        .join(Batch, Batch.worker_id == Worker.id)
        .where(Batch.iteration_id.in_(ids), Batch.status == BatchStatus.DONE)
        .group_by(Worker.host)
    ).all()
    of_machine = select(SetAside.sha256).where(SetAside.machine == machine)
    aside = connection.scalars(of_machine).all()
    binaries = {row.sha256 for row in own}
    return MachineFailures(
        machine=machine,
        batches=len(own),
        sha256=binaries.pop() if len(binaries) == 1 else None,
        reason=own[-1].reason or "",
        played=sum(row.batches for row in played if row.host == machine),
        played_by_others=sum(row.batches for row in played if row.host != machine),
        binaries_set_aside=frozenset(sha256 for sha256 in aside if sha256 is not None),
        is_set_aside=None in aside,
    )
