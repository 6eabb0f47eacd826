"""Batches that cannot be played, and the machines that could not play them."""

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
    batches,
    failures,
    iterations,
    seconds_from_now,
    set_aside,
    workers,
)
from spsa.lifecycle import BATCH, BatchStatus

SEEN_LATELY_SECONDS = 120
"""A worker that has not been heard of for this long is not counted as playing."""

FAILED_LATELY_SECONDS = 3600
"""How long a failure speaks against a machine."""

WENT_AWAY = "every worker that claimed it went away without reporting"


def fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Give up batches that were tried often enough, and pause their run with the reason.

    A batch is tried by as many machines as it allows, or by every machine that is there; where
    there is only one, by that one as often as the batch allows. The functions of a worker hand it
    out by the same rule. A row that is locked is being reported or renewed just now; the next look
    is soon enough.
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
        _give_up(connection, run_id, ids)


def _tried_enough() -> sa.ColumnElement[bool]:
    noted = select(failures.c.machine).where(failures.c.batch_id == batches.c.id).correlate(batches)
    failed = noted.where(failures.c.failures > 0)
    holder = (
        select(workers.c.host)
        .where(workers.c.id == batches.c.worker_id, IS_LEASED)
        .correlate(batches)
    )
    tried = sa.union(noted, holder)
    machines = select(func.count()).select_from(tried.subquery()).scalar_subquery()
    able = _able()
    several = select(func.count(workers.c.host.distinct())).where(able).scalar_subquery() >= 2
    nobody_else = ~select(workers.c.id).where(able, workers.c.host.not_in(tried)).exists()
    all_failed = ~select(workers.c.id).where(able, workers.c.host.not_in(failed)).exists()
    return sa.or_(
        machines >= batches.c.max_attempts,
        sa.and_(nobody_else, batches.c.attempt >= batches.c.max_attempts),
        sa.and_(all_failed, several),
    )


def _able() -> sa.ColumnElement[bool]:
    """A worker is there, and its machine is given the batches of this iteration."""
    sides = (iterations.c.plus_sha256, iterations.c.minus_sha256)
    aside = select(set_aside.c.id).where(
        set_aside.c.machine == workers.c.host,
        sa.or_(set_aside.c.sha256.is_(None), set_aside.c.sha256.in_(sides)),
    )
    return sa.and_(
        workers.c.last_seen_at > seconds_from_now(-SEEN_LATELY_SECONDS),
        ~aside.correlate(workers, iterations).exists(),
    )


def _give_up(connection: sa.Connection, run_id: int, ids: Sequence[int]) -> None:
    failed = connection.execute(
        update(batches)
        .where(batches.c.id.in_(ids), may_become(batches.c.status, BATCH, BatchStatus.FAILED))
        .values(
            status=BatchStatus.FAILED,
            claim_id=None,
            lease_expires_at=None,
            last_error=func.coalesce(batches.c.last_error, WENT_AWAY),
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
    """Which machines have failed batches of a run within the last hour, beside what was played.

    A lease that ran out is no such failure: a machine may be switched off at any time.
    """
    # subqueries, not joins, so that both databases begin with the few failures of this hour
    batch = select(batches.c.iteration_id).where(batches.c.id == failures.c.batch_id)
    its_iteration = batch.correlate(failures).scalar_subquery()
    run = select(iterations.c.run_id).where(iterations.c.id == its_iteration)
    its_run = run.correlate(failures).scalar_subquery()
    hits = connection.execute(
        select(
            failures.c.machine,
            its_iteration.label("iteration_id"),
            failures.c.sha256,
            failures.c.reason,
        )
        .where(
            its_run == run_id,
            failures.c.failures > 0,
            failures.c.at > seconds_from_now(-FAILED_LATELY_SECONDS),
        )
        .order_by(failures.c.machine, failures.c.at)
    ).all()
    by_machine: dict[str, list[Any]] = {}
    for hit in hits:
        by_machine.setdefault(hit.machine, []).append(hit)
    return [_failures_of(connection, machine, own) for machine, own in by_machine.items()]


def _failures_of(connection: sa.Connection, machine: str, own: Sequence[Any]) -> MachineFailures:
    played = connection.execute(
        select(workers.c.host, func.count().label("batches"))
        .join(batches, batches.c.worker_id == workers.c.id)
        .where(
            batches.c.iteration_id.in_({hit.iteration_id for hit in own}),
            batches.c.status == BatchStatus.DONE,
        )
        .group_by(workers.c.host)
    ).all()
    aside = connection.scalars(
        select(set_aside.c.sha256).where(set_aside.c.machine == machine)
    ).all()
    blamed = {hit.sha256 for hit in own}
    return MachineFailures(
        machine=machine,
        batches=len(own),
        sha256=blamed.pop() if len(blamed) == 1 else None,
        reason=own[-1].reason or "",
        played=sum(row.batches for row in played if row.host == machine),
        played_by_others=sum(row.batches for row in played if row.host != machine),
        binaries_set_aside=frozenset(sha256 for sha256 in aside if sha256 is not None),
        is_set_aside=None in aside,
    )
