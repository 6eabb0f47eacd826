"""The iterations and batches of a run: what was played in them, and by which worker."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select

from spsa.core.limits import COUNTS
from spsa.core.scoring import Tally
from spsa.db.database import Database, tally_of
from spsa.db.history_rows import (
    BatchFailure,
    BatchLine,
    IterationLine,
    VoidGame,
)
from spsa.db.row_values import claim_of, iteration_of, kept_voids_of
from spsa.db.rows import Claim, Iteration
from spsa.db.schema import batches, failures, iterations, runs, workers
from spsa.errors import NothingToDo
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose

_LINE = (
    *("iteration_number", "k", "opened_on", "a_k", "c_k", "target_games"),
    *("void_games", "struck_games", "created_at", "completed_at"),
)
_BATCH_LINE = (
    *("seq", "games", "attempt", "failures", "slot", "void_games", "voids"),
    *("first_pair", "seed", "plus_nodes", "minus_nodes", "moves"),
    *("plus_time_losses", "minus_time_losses", "think_seconds", "scale"),
    *("seconds", "leased_at", "reported_at", "last_error"),
)

_SIDE = ("parameters", "options", "sha256")

_PLAYED = (
    sa.literal("").label("claim_id"),  # who reads this holds no claim
    *(batches.c[name] for name in ("id", "seq", "attempt", "first_pair", "games", "seed")),
    *(batches.c.status, iterations.c.id.label("iteration_id")),
    *(iterations.c[name] for name in ("iteration_number", "purpose", "signature", "terms")),
    *(iterations.c[name] for name in ("plus_sha256", "plus_engine_path", "plus_options")),
    *(iterations.c[name] for name in ("minus_sha256", "minus_engine_path", "minus_options")),
    iterations.c.variants,
    *(runs.c.id.label("run_id"), runs.c.name.label("run_name"), runs.c.seed.label("run_seed")),
)
"""The columns of `spsa_claimed`, from tables that viewers may read."""


class BatchQueries(Database):
    """The iterations of a run and their batches; reads only."""

    def iteration_lines(
        self, run_id: int, *, before: int | None = None, last: int | None = None
    ) -> list[IterationLine]:
        """The iterations of a run in order, without their parameters.

        Only those before the number `before`, and of these only the `last` ones, if given.
        """
        names = (*_LINE, *COUNTS, "purpose", "status")
        statement = select(*(iterations.c[name] for name in names)).where(
            iterations.c.run_id == run_id
        )
        if before is not None:
            statement = statement.where(iterations.c.iteration_number < before)
        statement = statement.order_by(iterations.c.iteration_number.desc()).limit(last)
        with self._read() as connection:
            return [
                IterationLine(
                    purpose=Purpose(row.purpose),
                    status=IterationStatus(row.status),
                    tally=tally_of(row),
                    **{name: getattr(row, name) for name in _LINE},
                )
                for row in connection.execute(statement)
            ][::-1]

    def find_iteration(self, run_id: int, number: int) -> Iteration | None:
        """The iteration of this number, if there is one."""
        statement = select(iterations).where(
            iterations.c.run_id == run_id, iterations.c.iteration_number == number
        )
        with self._read() as connection:
            row = connection.execute(statement).one_or_none()
            return None if row is None else iteration_of(row)

    def played_batch(self, run_id: int, number: int, seq: int) -> tuple[Claim, Tally | None, float]:
        """What a worker played in batch `seq` of the iteration `number`, its counts and its scale.

        The counts are None where the batch has not been reported, or was purged.

        Raises:
            NothingToDo: the run has no such batch.
        """
        statement = (
            select(*_PLAYED, *(batches.c[name] for name in (*COUNTS, "scale")))
            .select_from(batches.join(iterations).join(runs))
            .where(
                runs.c.id == run_id, iterations.c.iteration_number == number, batches.c.seq == seq
            )
        )
        with self._read() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            raise NothingToDo(f"the run has no batch {seq} in an iteration {number}")
        counts = tally_of(row) if row.status == BatchStatus.DONE else None
        return claim_of(row, lease_seconds=0.0), counts, row.scale

    def batch_lines(self, iteration_id: int) -> list[BatchLine]:
        """The batches of an iteration, in order."""
        names = (*_BATCH_LINE, *COUNTS, "status")
        statement = (
            select(*(batches.c[name] for name in names), workers.c.name, workers.c.host)
            .select_from(batches.outerjoin(workers, workers.c.id == batches.c.worker_id))
            .where(batches.c.iteration_id == iteration_id)
            .order_by(batches.c.seq)
        )
        with self._read() as connection:
            return [_batch_line(row) for row in connection.execute(statement)]

    def void_games(self, run_id: int, last: int) -> list[VoidGame]:
        """The void games that workers have kept of the newest `last` batches with any, in order."""
        sides = [f"{side}_{what}" for side in ("plus", "minus") for what in _SIDE]
        statement = (
            select(batches.c.seq, batches.c.void_log, *(iterations.c[name] for name in sides))
            .add_columns(iterations.c.iteration_number, workers.c.host.label("machine"))
            .select_from(batches.join(iterations))
            .outerjoin(workers, workers.c.id == batches.c.void_worker_id)
            .where(iterations.c.run_id == run_id, batches.c.void_log.is_not(None))
            .order_by(iterations.c.iteration_number.desc(), batches.c.seq.desc())
            .limit(last)
        )
        with self._read() as connection:
            rows = connection.execute(statement).all()
        return [game for row in reversed(rows) for game in _void_games(row)]

    def batch_failures(self, iteration_id: int, seq: int) -> list[BatchFailure]:
        """The machines that failed a batch or lost its lease."""
        statement = (
            select(failures)
            .join(batches, batches.c.id == failures.c.batch_id)
            .where(batches.c.iteration_id == iteration_id, batches.c.seq == seq)
            .order_by(failures.c.at, failures.c.machine)
        )
        names = ("machine", "failures", "lost_leases", "reason", "at")
        with self._read() as connection:
            return [
                BatchFailure(**{name: getattr(row, name) for name in names})
                for row in connection.execute(statement)
            ]


def _void_games(row: Any) -> Iterator[VoidGame]:
    for kept in kept_voids_of(row.void_log):
        side = "minus" if kept.culprit == "minus" else "plus"
        values, options, sha256 = (getattr(row, f"{side}_{what}") for what in _SIDE)
        yield VoidGame(
            iteration_number=row.iteration_number,
            seq=row.seq,
            machine=row.machine,
            kept=kept,
            values=values,
            options=options,
            sha256=sha256,
        )


def _batch_line(row: Any) -> BatchLine:
    return BatchLine(
        status=BatchStatus(row.status),
        worker=row.name,
        machine=row.host,
        tally=tally_of(row),
        time_losses=row.plus_time_losses + row.minus_time_losses,
        **{name: getattr(row, name) for name in _BATCH_LINE},
    )
