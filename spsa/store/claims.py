"""Work is claimed and kept: claim, renew.

The claim's id is made by the worker before it asks and is the fencing token of everything after:
only the holder of a batch's present claim may change it, and asking twice is answered once.

Every step is a statement made by a function of its own: here they are run one by one, which is the
way of SQLite, and `functions` makes the functions of a PostgreSQL server from the same statements.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.errors import IllegalTransition, LeaseLost
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, RunStatus
from spsa.schema import (
    IS_LEASED,
    IS_READY,
    batches,
    engines,
    iterations,
    runs,
    seconds_from_now,
)
from spsa.store import turns
from spsa.store.database import Database, may_become
from spsa.store.reading import claim_of
from spsa.store.rows import Claim
from spsa.store.turns import IS_PLAYABLE

Given = sa.ColumnElement[Any]
"""A value, bound as a parameter, or the name that a function of the database knows it by."""

_IS_BEING_PLAYED = (
    select(iterations.c.id)
    .where(
        iterations.c.id == batches.c.iteration_id,
        iterations.c.status == IterationStatus.IN_PROGRESS,
    )
    .exists()
)


def holding(claim_id: Given) -> sa.Select[Any]:
    """The batch that a claim has, or has reported."""
    return select(batches.c.id, batches.c.status).where(batches.c.claim_id == claim_id)


def expired(iteration_id: Given) -> sa.Select[Any]:
    """A batch whose worker went away; it goes before fresh ones, because others wait for it."""
    lapsed = sa.and_(IS_LEASED, batches.c.lease_expires_at < seconds_from_now(0))
    return _one(iteration_id, lapsed)


def ready(iteration_id: Given) -> sa.Select[Any]:
    """A batch that nobody has."""
    return _one(iteration_id, IS_READY)


def _one(iteration_id: Given, free: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        select(batches.c.id)
        .where(
            batches.c.iteration_id == iteration_id,
            free,
            batches.c.attempt < batches.c.max_attempts,
        )
        .order_by(batches.c.seq)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


def taking(batch_id: Given, claim_id: Given, worker_id: Given, lease_seconds: Given) -> sa.Update:
    """Lease a batch that was found free, and locked."""
    return (
        update(batches)
        .where(batches.c.id == batch_id)
        .values(
            status=BatchStatus.LEASED,
            attempt=batches.c.attempt + 1,
            claim_id=claim_id,
            worker_id=worker_id,
            leased_at=seconds_from_now(0),
            lease_expires_at=seconds_from_now(lease_seconds),
        )
    )


def beginning(iteration_id: Given) -> sa.Update:
    """An iteration of which something was handed out is being played."""
    return (
        update(iterations)
        .where(
            iterations.c.id == iteration_id,
            may_become(iterations.c.status, ITERATION, IterationStatus.IN_PROGRESS),
        )
        .values(status=IterationStatus.IN_PROGRESS)
    )


_TOLD = ("id", "claim_id", "iteration_id", "seq", "attempt", "first_pair", "games", "seed")
_TOLD_OF_ITERATION = (
    *("run_id", "iteration_number", "purpose", "signature", "plus_sha256", "plus_engine_path"),
    *("plus_options", "minus_sha256", "minus_engine_path", "minus_options", "terms"),
)


def telling(batch_id: Given) -> sa.Select[Any]:
    """All that whoever holds a batch has to know."""
    return (
        select(
            *(batches.c[name] for name in _TOLD),
            *(iterations.c[name] for name in _TOLD_OF_ITERATION),
            runs.c.name.label("run_name"),
            runs.c.seed.label("run_seed"),
        )
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .join(runs, runs.c.id == iterations.c.run_id)
        .where(batches.c.id == batch_id)
    )


def renewing(held: sa.ColumnElement[bool], lease_seconds: Given) -> sa.Update:
    """Lengthen the leases of the claims that meet `held`."""
    return (
        update(batches)
        .where(held, batches.c.status == BatchStatus.LEASED, _IS_BEING_PLAYED)
        .values(lease_expires_at=seconds_from_now(lease_seconds))
        .returning(batches.c.claim_id)
    )


def bytes_of(sha256: Given) -> sa.Select[Any]:
    """What is kept of a binary in the database."""
    return select(engines.c.bytes).where(engines.c.sha256 == sha256)


def unfinished() -> sa.Select[Any]:
    """Whether there is anything left to play for.

    A master that still sits at a run that is finished may be about to open its validation.
    """
    running = select(runs.c.id).where(runs.c.status == RunStatus.RUNNING)
    open_ones = select(iterations.c.id).join(runs).where(IS_PLAYABLE)
    attended = select(runs.c.id).where(
        runs.c.status == RunStatus.FINISHED, runs.c.lease_expires_at > seconds_from_now(0)
    )
    return select(sa.or_(running.exists(), open_ones.exists(), attended.exists()))


def given(name: str, kind: Any) -> sa.BindParameter[Any]:
    """A parameter of a statement that is made once: to make one takes longer than to run it."""
    return sa.bindparam(f"p_{name}", type_=kind)


_CLAIM_ID, _BATCH_ID = given("claim_id", sa.Text), given("batch_id", sa.BigInteger)
_ITERATION_ID, _WORKER_ID = given("iteration_id", sa.BigInteger), given("worker_id", sa.BigInteger)
_HOLDING, _TELLING = holding(_CLAIM_ID), telling(_BATCH_ID)
_EXPIRED, _READY = expired(_ITERATION_ID), ready(_ITERATION_ID)
_TAKING = taking(_BATCH_ID, _CLAIM_ID, _WORKER_ID, given("lease_seconds", sa.Double))
_BEGINNING = beginning(_ITERATION_ID)


class ClaimDesk(Database):
    """Where a worker gets something to play."""

    def claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None:
        """The first free batch, for `lease_seconds`; None when there is no work now.

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
            batch_id = _held(connection, claim_id)
            if batch_id is None:
                batch_id = _take(connection, claim_id, worker_id, lease_seconds)
            if batch_id is None:
                return None
            told = connection.execute(_TELLING, {"p_batch_id": batch_id}).one()
            return claim_of(told, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """Lengthen the leases of these claims; those that are still held.

        A claim that is missing from the answer is lost: its games have to be dropped.
        """
        if not claim_ids:
            return frozenset()
        with self._write() as connection:
            mine = batches.c.claim_id.in_(claim_ids)
            return frozenset(connection.scalars(renewing(mine, sa.literal(lease_seconds))))

    def engine_bytes(self, sha256: str) -> bytes | None:
        """A binary that is kept in the database; None where only its path is."""
        with self._read() as connection:
            content: bytes | None = connection.scalar(bytes_of(sa.literal(sha256)))
            return content

    def work_left(self) -> bool:
        """Whether any run is still to be played, though perhaps nothing of it is free just now."""
        with self._read() as connection:
            return bool(connection.scalar(unfinished()))


def _held(connection: sa.Connection, claim_id: str) -> int | None:
    row = connection.execute(_HOLDING, {"p_claim_id": claim_id}).one_or_none()
    if row is not None and row.status == BatchStatus.DONE:
        raise LeaseLost(f"claim {claim_id} has been reported; new work takes a new claim")
    return None if row is None else int(row.id)


def _take(
    connection: sa.Connection, claim_id: str, worker_id: int, lease_seconds: float
) -> int | None:
    """The first batch that is free of all that may be handed out."""
    wanted = turns.uncontested()
    if connection.scalar(turns.is_contested()):
        wanted = turns.playable(sa.literal(turns.lot_of(claim_id)))
    for iteration_id in connection.scalars(wanted).all():
        where = {"p_iteration_id": iteration_id}
        batch_id = connection.scalar(_EXPIRED, where) or connection.scalar(_READY, where)
        if batch_id is not None:
            connection.execute(
                _TAKING,
                {
                    "p_batch_id": batch_id,
                    "p_claim_id": claim_id,
                    "p_worker_id": worker_id,
                    "p_lease_seconds": lease_seconds,
                },
            )
            connection.execute(_BEGINNING, where)
            return int(batch_id)
    return None
