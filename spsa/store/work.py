"""The verbs of a box that plays: claim, renew, report, release, fail.

The claim's id is made by the worker before it asks and is the fencing token of everything after:
only the holder of a batch's present claim may change it, and asking twice is answered once.
"""

from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.errors import IllegalTransition, LeaseLost, ReportConflict
from spsa.lifecycle import BATCH, ITERATION, RUN, BatchStatus, IterationStatus, Purpose, RunStatus
from spsa.schema import batches, engines, events, iterations, runs, seconds_from_now, workers
from spsa.store.database import Database, counts_of, may_become, tally_of
from spsa.store.rows import BatchResult, Claim, Engine, WorkerInfo
from spsa.terms import Terms

# while a run is paused nothing of it is handed out; a validation outlives its run
_PLAYABLE = sa.and_(
    iterations.c.status.in_([IterationStatus.PENDING, IterationStatus.IN_PROGRESS]),
    sa.or_(
        runs.c.status == RunStatus.RUNNING,
        sa.and_(
            iterations.c.purpose == Purpose.VALIDATE,
            runs.c.status.in_([RunStatus.FINISHED, RunStatus.STOPPED]),
        ),
    ),
)
_BEING_PLAYED = select(iterations.c.id).where(iterations.c.status == IterationStatus.IN_PROGRESS)
_FREE = sa.or_(
    batches.c.status == BatchStatus.READY,
    sa.and_(
        batches.c.status == BatchStatus.LEASED, batches.c.lease_expires_at < seconds_from_now(0)
    ),
)


class WorkerDesk(Database):
    """What a worker may do with the database."""

    def register_worker(self, info: WorkerInfo) -> int:
        """Write the worker's row, or bring it up to date; its id."""
        facts = {
            "host": info.host,
            "platform": info.platform,
            "cores": info.cores,
            "concurrency": info.concurrency,
            "version": info.version,
            "last_seen_at": seconds_from_now(0),
        }
        with self._write() as connection:
            changed = update(workers).where(workers.c.name == info.name).values(facts)
            known = connection.scalar(changed.returning(workers.c.id))
            if known is None:
                insert = workers.insert().values(name=info.name, **facts)
                known = connection.scalar(insert.returning(workers.c.id))
            return int(known or 0)

    def touch_worker(self, worker_id: int, nps: float | None = None) -> None:
        """Say that the worker lives, and how many nodes a second an engine makes on it."""
        facts: dict[str, Any] = {"last_seen_at": seconds_from_now(0)}
        if nps is not None:
            facts["nps"] = nps
        with self._write() as connection:
            connection.execute(update(workers).where(workers.c.id == worker_id).values(facts))

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
            return None if batch is None else _claim(connection, batch, lease_seconds)

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
                    batches.c.iteration_id.in_(_BEING_PLAYED),
                )
                .values(lease_expires_at=seconds_from_now(lease_seconds))
                .returning(batches.c.claim_id)
            )
            return frozenset(connection.scalars(statement))

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        """Count a batch, once: its row and the iteration's counts in one transaction.

        A lease that has run out but was not given to anybody else still counts.

        Raises:
            LeaseLost: the batch is somebody else's now; the games do not count.
            ReportConflict: this claim was reported before with other counts.
        """
        with self._write() as connection:
            if _settle(connection, claim, result):
                _count(connection, claim, result)
                return "accepted"
            return _answer_again(connection, claim, result)

    def release(self, claim: Claim) -> None:
        """Give a batch back unplayed; the attempt does not count. Nothing if it is not held."""
        with self._write() as connection:
            connection.execute(
                _own(claim, BatchStatus.READY).values(
                    status=BatchStatus.READY,
                    claim_id=None,
                    attempt=batches.c.attempt - 1,
                    lease_expires_at=None,
                )
            )

    def fail(self, claim: Claim, reason: str, void_games: int = 0) -> None:
        """Give a batch back as impossible to play, with the reason.

        Out of attempts it is `failed` for good and its run is paused with the reason, in the same
        transaction: an engine that cannot play is never tuned silently.
        """
        with self._write() as connection:
            exhausted = batches.c.attempt >= batches.c.max_attempts
            row = connection.execute(
                _own(claim, BatchStatus.FAILED)
                .values(
                    status=sa.case((exhausted, BatchStatus.FAILED), else_=BatchStatus.READY),
                    claim_id=None,
                    lease_expires_at=None,
                    last_error=reason,
                    void_games=batches.c.void_games + void_games,
                )
                .returning(batches.c.status, batches.c.attempt)
            ).one_or_none()
            if row is None:
                return
            _add_voids(connection, claim.iteration_id, void_games)
            if row.status == BatchStatus.FAILED:
                place = f"iteration {claim.iteration_number} batch {claim.seq}"
                pause_for_failure(connection, claim.run_id, f"{place}: {reason}")

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


def _claim(connection: sa.Connection, batch: Any, lease_seconds: float) -> Claim:
    row = connection.execute(
        select(iterations, runs.c.name.label("run_name"), runs.c.seed.label("run_seed"))
        .join(runs)
        .where(iterations.c.id == batch.iteration_id)
    ).one()
    return Claim(
        claim_id=batch.claim_id,
        batch_id=batch.id,
        run_id=row.run_id,
        run_name=row.run_name,
        run_seed=row.run_seed,
        iteration_id=row.id,
        iteration_number=row.iteration_number,
        seq=batch.seq,
        attempt=batch.attempt,
        first_pair=batch.first_pair,
        pairs=batch.games // 2,
        seed=batch.seed,
        plus=Engine(sha256=row.plus_sha256, path=row.plus_engine_path, options=row.plus_options),
        minus=Engine(
            sha256=row.minus_sha256, path=row.minus_engine_path, options=row.minus_options
        ),
        terms=Terms.from_json(row.terms),
        lease_seconds=lease_seconds,
    )


def _own(claim: Claim, to: BatchStatus) -> sa.Update:
    return update(batches).where(
        batches.c.id == claim.batch_id,
        batches.c.claim_id == claim.claim_id,
        may_become(batches.c.status, BATCH, to),
    )


def _settle(connection: sa.Connection, claim: Claim, result: BatchResult) -> bool:
    voids = sum(result.voids.values())
    settled = connection.scalar(
        _own(claim, BatchStatus.DONE)
        .values(
            status=BatchStatus.DONE,
            **counts_of(result.tally),
            void_games=batches.c.void_games + voids,
            voids=dict(result.voids),
            plus_nodes=result.plus_nodes,
            minus_nodes=result.minus_nodes,
            moves=result.moves,
            plus_time_losses=result.plus_time_losses,
            minus_time_losses=result.minus_time_losses,
            seconds=result.seconds,
            reported_at=seconds_from_now(0),
        )
        .returning(batches.c.id)
    )
    return settled is not None


def _count(connection: sa.Connection, claim: Claim, result: BatchResult) -> None:
    added = {name: iterations.c[name] + n for name, n in counts_of(result.tally).items()}
    counted = connection.execute(
        update(iterations)
        .where(
            iterations.c.id == claim.iteration_id,
            iterations.c.status == IterationStatus.IN_PROGRESS,
        )
        .values(
            games_played=iterations.c.games_played + result.tally.games,
            void_games=iterations.c.void_games + sum(result.voids.values()),
            **added,
        )
        .returning(iterations.c.id)
    ).one_or_none()
    if counted is None:
        raise LeaseLost(f"iteration {claim.iteration_number} of {claim.run_name} was abandoned")


def _answer_again(
    connection: sa.Connection, claim: Claim, result: BatchResult
) -> Literal["already"]:
    row = connection.execute(
        select(batches).where(
            batches.c.id == claim.batch_id,
            batches.c.claim_id == claim.claim_id,
            batches.c.status == BatchStatus.DONE,
        )
    ).one_or_none()
    name = f"iteration {claim.iteration_number} batch {claim.seq} of run {claim.run_name}"
    if row is None:
        raise LeaseLost(f"{name} is no longer held by claim {claim.claim_id}")
    if tally_of(row) != result.tally:
        raise ReportConflict(f"{name}: reported as {tally_of(row)}, and now as {result.tally}")
    return "already"


def _add_voids(connection: sa.Connection, iteration_id: int, void_games: int) -> None:
    connection.execute(
        update(iterations)
        .where(iterations.c.id == iteration_id)
        .values(void_games=iterations.c.void_games + void_games)
    )


def pause_for_failure(connection: sa.Connection, run_id: int, reason: str) -> None:
    """Pause a run because a batch of it cannot be played, saying so in its row and its events."""
    connection.execute(
        update(runs)
        .where(runs.c.id == run_id, may_become(runs.c.status, RUN, RunStatus.PAUSED))
        .values(status=RunStatus.PAUSED, reason=reason)
    )
    connection.execute(
        events.insert().values(
            run_id=run_id, kind="pause", actor="worker", detail={"reason": reason}
        )
    )
