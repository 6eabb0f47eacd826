"""A claim ends, in one of three ways: its games count, or it is given back, or it cannot be played.

Only the holder of a batch's present claim may end it.
"""

from typing import Literal

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.errors import LeaseLost, ReportConflict
from spsa.lifecycle import BATCH, BatchStatus, IterationStatus
from spsa.schema import batches, iterations, seconds_from_now
from spsa.store.database import Database, counts_of, may_become, tally_of
from spsa.store.entries import BatchResult
from spsa.store.halting import lock_run, pause_for_failure
from spsa.store.rows import Claim


class ReportDesk(Database):
    """Where a worker says what became of its claim."""

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
            lock_run(connection, claim.run_id)
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
                pause_for_failure(connection, claim.run_id, "worker", f"{place}: {reason}")


def _own(claim: Claim, to: BatchStatus) -> sa.Update:
    return update(batches).where(
        batches.c.id == claim.batch_id,
        batches.c.claim_id == claim.claim_id,
        batches.c.status == BatchStatus.LEASED,  # what was reported is a purge's to hand out again
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
