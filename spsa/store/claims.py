"""Work is claimed and kept.

The claim's id is made by the worker before it asks and is the fencing token of everything after:
only the holder of a batch's present claim may change it, and asking twice is answered once.

Every step is a statement made by a function of its own: here they are run one by one, which is the
way of SQLite, and `functions` makes the functions of a PostgreSQL server from the same statements.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

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
from spsa.store.turns import IS_PLAYABLE

Given = sa.ColumnElement[Any]
"""A value, bound as a parameter, or the name that a function of the database knows it by."""

IS_BEING_PLAYED = (
    select(iterations.c.id)
    .where(
        iterations.c.id == batches.c.iteration_id,
        iterations.c.status == IterationStatus.IN_PROGRESS,
    )
    .exists()
)


def holding(claim_id: Given) -> sa.Select[Any]:
    """The batch that a claim has, or has reported."""
    return select(batches.c.id).where(batches.c.claim_id == claim_id)


def expired(iteration_id: Given, at_most: Given) -> sa.Select[Any]:
    """Batches whose workers went away; they go before fresh ones, because others wait for them."""
    lapsed = sa.and_(IS_LEASED, batches.c.lease_expires_at < seconds_from_now(0))
    return _first(iteration_id, lapsed, at_most)


def ready(iteration_id: Given, at_most: Given) -> sa.Select[Any]:
    """Batches that nobody has."""
    return _first(iteration_id, IS_READY, at_most)


def _first(iteration_id: Given, free: sa.ColumnElement[bool], at_most: Given) -> sa.Select[Any]:
    return (
        select(batches.c.id)
        .where(
            batches.c.iteration_id == iteration_id,
            free,
            batches.c.attempt < batches.c.max_attempts,
        )
        .order_by(batches.c.seq)
        .limit(at_most)
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


_TOLD = (
    "id",
    "status",
    "claim_id",
    "iteration_id",
    "seq",
    "attempt",
    "first_pair",
    "games",
    "seed",
)
_TOLD_OF_ITERATION = (
    *("run_id", "iteration_number", "purpose", "signature", "plus_sha256", "plus_engine_path"),
    *("plus_options", "minus_sha256", "minus_engine_path", "minus_options", "terms"),
)


def telling(its_own: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """All that whoever holds a batch has to know, of those that are its own."""
    return (
        select(
            *(batches.c[name] for name in _TOLD),
            *(iterations.c[name] for name in _TOLD_OF_ITERATION),
            runs.c.name.label("run_name"),
            runs.c.seed.label("run_seed"),
        )
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .join(runs, runs.c.id == iterations.c.run_id)
        .where(its_own)
    )


def renewing(held: sa.ColumnElement[bool], lease_seconds: Given) -> sa.Update:
    """Lengthen the leases of the claims that meet `held`."""
    return (
        update(batches)
        .where(held, batches.c.status == BatchStatus.LEASED, IS_BEING_PLAYED)
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
_AT_MOST = given("at_most", sa.Integer)
_HOLDING, _TELLING = holding(_CLAIM_ID), telling(batches.c.claim_id == _CLAIM_ID)
_EXPIRED, _READY = expired(_ITERATION_ID, _AT_MOST), ready(_ITERATION_ID, _AT_MOST)
_TAKING = taking(_BATCH_ID, _CLAIM_ID, _WORKER_ID, given("lease_seconds", sa.Double))
_BEGINNING = beginning(_ITERATION_ID)


class ClaimDesk(Database):
    """Where a worker gets something to play."""

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


def unanswered(connection: sa.Connection, claim_ids: Iterable[str]) -> list[str]:
    """Those of the claims that hold no batch, and have reported none."""
    return [
        claim_id
        for claim_id in claim_ids
        if connection.scalar(_HOLDING, {"p_claim_id": claim_id}) is None
    ]


def take(
    connection: sa.Connection, claim_ids: Sequence[str], worker_id: int, lease_seconds: float
) -> set[int]:
    """Lease a batch to each claim, as long as any is free; the iterations that thereby begin."""
    if not claim_ids:
        return set()
    lease = {"p_worker_id": worker_id, "p_lease_seconds": lease_seconds}
    open_ones = connection.execute(turns.uncontested()).all()
    if not any(one.contested for one in open_ones):
        return _take_from(connection, open_ones, deque(claim_ids), lease)
    begun: set[int] = set()
    for claim_id in claim_ids:
        playable = connection.execute(turns.playable(sa.literal(turns.lot_of(claim_id)))).all()
        begun |= _take_from(connection, playable, deque([claim_id]), lease)
    return begun


def _take_from(
    connection: sa.Connection, open_ones: Sequence[Any], wanted: deque[str], lease: dict[str, Any]
) -> set[int]:
    begun = set()
    for iteration in open_ones:
        for batch_id in _free(connection, iteration.id, len(wanted)):
            given_to = {"p_batch_id": batch_id, "p_claim_id": wanted.popleft()}
            connection.execute(_TAKING, given_to | lease)
            if iteration.status == IterationStatus.PENDING:
                begun.add(iteration.id)
        if not wanted:
            break
    return begun


def _free(connection: sa.Connection, iteration_id: int, wanted: int) -> list[int]:
    where = {"p_iteration_id": iteration_id, "p_at_most": wanted}
    left_behind = list(connection.scalars(_EXPIRED, where))
    where["p_at_most"] = wanted - len(left_behind)
    return left_behind + (list(connection.scalars(_READY, where)) if where["p_at_most"] else [])


def begin(connection: sa.Connection, iteration_id: int) -> None:
    """Say that an iteration is being played."""
    connection.execute(_BEGINNING, {"p_iteration_id": iteration_id})


def tell(connection: sa.Connection, claim_ids: Iterable[str]) -> list[Any]:
    """What there is to be known of the batch of each claim that has one."""
    rows = (connection.execute(_TELLING, {"p_claim_id": id}).one_or_none() for id in claim_ids)
    return [row for row in rows if row is not None]
