"""Fails the batches that no machine can play, and lists the machines that failed batches."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select, update

from spsa.db.database import may_become
from spsa.db.rows import MachineFailures
from spsa.db.run_status import pause_for_failure
from spsa.db.schema import (
    IS_LEASED,
    IS_OPEN,
    IS_READY,
    SUITED,
    batches,
    failures,
    iterations,
    seconds_from_now,
    set_aside,
    workers,
)
from spsa.lifecycle import BATCH, BatchStatus

ACTIVE_SECONDS = 120
"""A worker that was last seen longer ago does not count as active."""

RECENT_FAILURE_SECONDS = 3600
"""How long a failure counts against a machine."""

LEASES_EXPIRED = "every worker that claimed it disappeared without a report"


def fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Fail batches that were tried often enough, and pause their run with the reason.

    Often enough: `max_attempts` machines have tried it, or every active machine has; a single
    active machine tries it `max_attempts` times. The functions for workers hand it out by the same
    rule. A locked row is being reported or renewed; the next tick looks at it again.
    """
    exhausted = (
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .where(
            iterations.c.run_id == run_id,
            IS_OPEN,
            batches.c.attempt > 0,
            sa.or_(IS_READY, sa.and_(IS_LEASED, batches.c.lease_expires_at < seconds_from_now(0))),
            _tried_enough(),
        )
        .with_for_update(of=batches, skip_locked=True)
    )
    ids = connection.scalars(exhausted).all()
    if ids:
        _fail(connection, run_id, ids)


def _tried_enough() -> sa.ColumnElement[bool]:
    recorded = (
        select(failures.c.machine).where(failures.c.batch_id == batches.c.id).correlate(batches)
    )
    failed = recorded.where(failures.c.failures > 0)
    holder = (
        select(workers.c.host)
        .where(workers.c.id == batches.c.worker_id, IS_LEASED)
        .correlate(batches)
    )
    tried = sa.union(recorded, holder)
    machines = select(func.count()).select_from(tried.subquery()).scalar_subquery()
    # the workers that were seen recently and may play the iteration
    active = sa.and_(
        SUITED.c.iteration_id == batches.c.iteration_id,
        SUITED.c.last_seen_at > seconds_from_now(-ACTIVE_SECONDS),
    )
    suited = select(SUITED.c.machine).where(active).correlate(batches)
    several = (
        select(func.count(SUITED.c.machine.distinct()))
        .where(active)
        .correlate(batches)
        .scalar_subquery()
        >= 2
    )
    none_left = ~suited.where(SUITED.c.machine.not_in(tried)).exists()
    all_failed = ~suited.where(SUITED.c.machine.not_in(failed)).exists()
    return sa.or_(
        machines >= batches.c.max_attempts,
        sa.and_(none_left, batches.c.attempt >= batches.c.max_attempts),
        sa.and_(all_failed, several),
    )


def _fail(connection: sa.Connection, run_id: int, ids: Sequence[int]) -> None:
    failed = connection.execute(
        update(batches)
        .where(batches.c.id.in_(ids), may_become(batches.c.status, BATCH, BatchStatus.FAILED))
        .values(
            status=BatchStatus.FAILED,
            claim_id=None,
            lease_expires_at=None,
            last_error=func.coalesce(batches.c.last_error, LEASES_EXPIRED),
        )
        .returning(batches.c.id, batches.c.iteration_id, batches.c.seq, batches.c.last_error)
    ).all()
    for row in failed:
        number = select(iterations.c.iteration_number).where(iterations.c.id == row.iteration_id)
        tried = select(func.count()).where(failures.c.batch_id == row.id)
        machines = max(1, connection.scalar(tried) or 0)
        pause_for_failure(
            connection,
            run_id,
            "master",
            f"iteration {connection.scalar(number)} batch {row.seq}: {row.last_error}"
            f" (tried by {machines} machine{'s' if machines > 1 else ''})",
        )


def machine_failures(connection: sa.Connection, run_id: int) -> list[MachineFailures]:
    """The machines that failed batches of a run within the last hour, and what was played.

    An expired lease is no such failure: a machine may be switched off at any time.
    """
    # subqueries, not joins, so that both databases start with the few failures of this hour
    batch = select(batches.c.iteration_id).where(batches.c.id == failures.c.batch_id)
    its_iteration = batch.correlate(failures).scalar_subquery()
    run = select(iterations.c.run_id).where(iterations.c.id == its_iteration)
    its_run = run.correlate(failures).scalar_subquery()
    recent = connection.execute(
        select(
            failures.c.machine,
            its_iteration.label("iteration_id"),
            failures.c.sha256,
            failures.c.reason,
        )
        .where(
            its_run == run_id,
            failures.c.failures > 0,
            failures.c.at > seconds_from_now(-RECENT_FAILURE_SECONDS),
        )
        .order_by(failures.c.machine, failures.c.at)
    ).all()
    by_machine: dict[str, list[Any]] = {}
    for row in recent:
        by_machine.setdefault(row.machine, []).append(row)
    return [_failures_of(connection, machine, own) for machine, own in by_machine.items()]


def _failures_of(connection: sa.Connection, machine: str, own: Sequence[Any]) -> MachineFailures:
    played = connection.execute(
        select(workers.c.host, func.count().label("batches"))
        .join(batches, batches.c.worker_id == workers.c.id)
        .where(
            batches.c.iteration_id.in_({row.iteration_id for row in own}),
            batches.c.status == BatchStatus.DONE,
        )
        .group_by(workers.c.host)
    ).all()
    aside = connection.scalars(
        select(set_aside.c.sha256).where(set_aside.c.machine == machine)
    ).all()
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
