"""Work is claimed and kept: claim, renew.

The claim's id is made by the worker before it asks and is the fencing token of everything after:
only the holder of a batch's present claim may change it, and asking twice is answered once.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.errors import IllegalTransition, LeaseLost
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus
from spsa.schema import IS_OPEN, IS_OWED, batches, engines, iterations, runs, seconds_from_now
from spsa.store.database import Database, may_become
from spsa.store.reading import claim_of
from spsa.store.rows import Claim

# while a run is paused nothing of it is handed out; a validation outlives its run
_PLAYABLE = sa.and_(
    IS_OPEN,
    sa.or_(
        runs.c.status == RunStatus.RUNNING,
        sa.and_(
            iterations.c.purpose == Purpose.VALIDATE,
            runs.c.status.in_([RunStatus.FINISHED, RunStatus.STOPPED]),
        ),
    ),
)
_IS_BEING_PLAYED = (
    select(iterations.c.id)
    .where(
        iterations.c.id == batches.c.iteration_id,
        iterations.c.status == IterationStatus.IN_PROGRESS,
    )
    .exists()
)
_FREE = sa.and_(
    IS_OWED,
    sa.or_(batches.c.status == BatchStatus.READY, batches.c.lease_expires_at < seconds_from_now(0)),
)


class ClaimDesk(Database):
    """Where a worker gets something to play."""

    def claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None:
        """The oldest free batch, for `lease_seconds`; None when there is no work now.

        Called again with the same `claim_id`, as after an unknown outcome, it answers with the
        batch that this claim already holds.

        Raises:
            LeaseLost: the batch of this claim was reported already.
        """
        try:
            return self._claim(claim_id, worker_id, lease_seconds)
        except IllegalTransition:
            # the same question, cut off on its way, was answered only now: that answer holds
            return self._claim(claim_id, worker_id, lease_seconds)

    def _claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None:
        with self._write() as connection:
            batch = _held(connection, claim_id)
            if batch is None:
                batch = _take(connection, claim_id, worker_id, lease_seconds)
            return None if batch is None else _told(connection, batch, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """Lengthen the leases of these claims; those that are still held.

        A claim that is missing from the answer is lost: its games have to be dropped.
        """
        if not claim_ids:
            return frozenset()
        with self._write() as connection:
            statement = (
                update(batches)
                .where(
                    batches.c.claim_id.in_(claim_ids),
                    batches.c.status == BatchStatus.LEASED,
                    _IS_BEING_PLAYED,
                )
                .values(lease_expires_at=seconds_from_now(lease_seconds))
                .returning(batches.c.claim_id)
            )
            return frozenset(connection.scalars(statement))

    def engine_bytes(self, sha256: str) -> bytes | None:
        """A binary that is kept in the database; None where only its path is."""
        with self._read() as connection:
            statement = select(engines.c.bytes).where(engines.c.sha256 == sha256)
            content: bytes | None = connection.scalar(statement)
            return content

    def work_left(self) -> bool:
        """Whether any run is still to be played, though perhaps nothing of it is free just now."""
        running = select(runs.c.id).where(runs.c.status == RunStatus.RUNNING)
        playable = select(iterations.c.id).join(runs).where(_PLAYABLE)
        with self._read() as connection:
            return bool(connection.scalar(select(sa.or_(running.exists(), playable.exists()))))


def _held(connection: sa.Connection, claim_id: str) -> Any:
    row = connection.execute(select(batches).where(batches.c.claim_id == claim_id)).one_or_none()
    if row is not None and row.status == BatchStatus.DONE:
        raise LeaseLost(f"claim {claim_id} has been reported; new work takes a new claim")
    return row


def _take(
    connection: sa.Connection, claim_id: str, worker_id: int, lease_seconds: float
) -> Any | None:
    candidate = connection.scalar(
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .join(runs, runs.c.id == iterations.c.run_id)
        .where(_PLAYABLE, _FREE, batches.c.attempt < batches.c.max_attempts)
        .order_by(iterations.c.id, batches.c.seq)
        .limit(1)
        .with_for_update(of=batches, skip_locked=True)
    )
    if candidate is None:
        return None
    taken = connection.execute(
        update(batches)
        .where(batches.c.id == candidate)
        .values(
            status=BatchStatus.LEASED,
            attempt=batches.c.attempt + 1,
            claim_id=claim_id,
            worker_id=worker_id,
            leased_at=seconds_from_now(0),
            lease_expires_at=seconds_from_now(lease_seconds),
        )
        .returning(*batches.c)
    ).one()
    _begin_iteration(connection, taken.iteration_id)
    return taken


def _begin_iteration(connection: sa.Connection, iteration_id: int) -> None:
    connection.execute(
        update(iterations)
        .where(
            iterations.c.id == iteration_id,
            may_become(iterations.c.status, ITERATION, IterationStatus.IN_PROGRESS),
        )
        .values(status=IterationStatus.IN_PROGRESS)
    )


def _told(connection: sa.Connection, batch: Any, lease_seconds: float) -> Claim:
    row = connection.execute(
        select(iterations, runs.c.name.label("run_name"), runs.c.seed.label("run_seed"))
        .join(runs)
        .where(iterations.c.id == batch.iteration_id)
    ).one()
    return claim_of(batch, row, lease_seconds)
