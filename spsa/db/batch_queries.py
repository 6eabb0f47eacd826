"""The iterations, validations and batches of a run: what was played in them, by which worker."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload, load_only

from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, tally_of
from spsa.db.batch_tables import Batch, BatchFailure, Worker
from spsa.db.claims import claim_of, shared
from spsa.db.database import Database, rows
from spsa.db.rows import MatchLine, VoidGame
from spsa.db.run_tables import IS_VALIDATION, Iteration
from spsa.db.statements import execute
from spsa.errors import NothingToDo
from spsa.lifecycle import BatchStatus, IterationStatus
from spsa.protocol import Claim, ClaimRequest, KeptVoid

_NARROW = [
    getattr(Iteration, name)
    for name in (
        *("iteration_number", "purpose", "k", "opened_on", "status", "a_k", "c_k"),
        *("target_games", "void_games", "purged_games", "created_at", "completed_at", *COUNTS),
    )
]
"""The columns of an iteration whose size does not grow with the number of parameters."""

_COUNTED = (*COUNTS, "void_games", "purged_games", "games_played", "target_games")


class BatchQueries(Database):
    """The iterations of a run and their batches; reads only."""

    def iteration_lines(
        self, run_id: int, *, before: int | None = None, last: int | None = None
    ) -> list[Iteration]:
        """The iterations of a run in order, without their parameters, which cannot be read.

        Only those before the number `before`, and of these only the `last` ones, if given.
        """
        statement = select(Iteration).where(Iteration.run_id == run_id)
        if before is not None:
            statement = statement.where(Iteration.iteration_number < before)
        statement = statement.order_by(Iteration.iteration_number.desc()).limit(last)
        with self._read() as connection:
            return rows(connection, statement.options(load_only(*_NARROW)))[::-1]

    def find_iteration(self, run_id: int, number: int) -> Iteration | None:
        """The iteration of this number, if there is one."""
        statement = select(Iteration).where(
            Iteration.run_id == run_id, Iteration.iteration_number == number
        )
        with self._read() as connection:
            return next(iter(rows(connection, statement)), None)

    def matches(self, run_id: int, *, last: int | None = None) -> list[Iteration]:
        """The validations of a run in order, only the `last` ones if that is given.

        A match of several rounds is one iteration: its first round, with the sums over all rounds
        that were not abandoned.
        """
        with self._read() as connection:
            sums = connection.execute(_match_sums(run_id).limit(last)).all()[::-1]
            first = [row.number for row in sums]
            found = rows(
                connection,
                select(Iteration)
                .where(Iteration.run_id == run_id, Iteration.iteration_number.in_(first))
                .order_by(Iteration.iteration_number),
            )
        return [_match(iteration, one) for iteration, one in zip(found, sums, strict=True)]

    def match_lines(self, run_id: int) -> list[MatchLine]:
        """The validations of a run in order, without their parameters; those that have games."""
        sums = _match_sums(run_id).subquery()
        statement = (
            select(*sums.c, Iteration.opened_on, Iteration.compared)
            .join(Iteration, Iteration.iteration_number == sums.c.number)
            .where(Iteration.run_id == run_id, sums.c.games_played > 0)
            .order_by(sums.c.number)
        )
        with self._read() as connection:
            return [
                MatchLine(k=row.opened_on, compared=row.compared, tally=tally_of(row))
                for row in connection.execute(statement)
            ]

    def rounds(self, run_id: int, match_number: int) -> list[Iteration]:
        """The rounds of one match in order, abandoned ones too."""
        statement = (
            select(Iteration)
            .where(
                Iteration.run_id == run_id,
                IS_VALIDATION,
                Iteration.match_number == match_number,
            )
            .order_by(Iteration.iteration_number)
        )
        with self._read() as connection:
            return rows(connection, statement)

    def played_batch(self, run_id: int, number: int, seq: int) -> tuple[Claim, Tally | None, float]:
        """What a worker played in batch `seq` of the iteration `number`, its counts and its scale.

        The counts are None where the batch has not been reported, or was purged.

        Raises:
            NothingToDo: the run has no such batch.
        """
        chosen = (
            select(Batch)
            .join(Iteration)
            .where(
                Iteration.run_id == run_id, Iteration.iteration_number == number, Batch.seq == seq
            )
        )
        with self._read() as connection:
            batch = next(iter(rows(connection, chosen)), None)
            if batch is None:
                raise NothingToDo(f"the run has no batch {seq} in an iteration {number}")
            names = ("id", "iteration_id", "seq", "attempt", "first_pair", "games", "seed")
            own = {name: getattr(batch, name) for name in names}
            details = execute(connection, "claim.details", iteration_id=batch.iteration_id).one()
        claim = claim_of({**shared(dict(details._mapping)), **own}, _NO_CLAIM)
        return claim, batch.tally if batch.status is BatchStatus.DONE else None, batch.scale

    def batch_lines(self, iteration_id: int) -> list[Batch]:
        """The batches of an iteration in order, each with its worker."""
        statement = (
            select(Batch)
            .where(Batch.iteration_id == iteration_id)
            .order_by(Batch.seq)
            .options(joinedload(Batch.worker))
        )
        with self._read() as connection:
            return rows(connection, statement)

    def void_games(self, run_id: int, last: int) -> list[VoidGame]:
        """The void games that workers have kept of the newest `last` batches with any, in order."""
        statement = (
            select(Batch, Iteration, Worker.host)
            .join(Iteration, Iteration.id == Batch.iteration_id)
            .outerjoin(Worker, Worker.id == Batch.void_worker_id)
            .where(Iteration.run_id == run_id, Batch.void_log.is_not(None))
            .order_by(Iteration.iteration_number.desc(), Batch.seq.desc())
            .limit(last)
        )
        with self._read() as connection, Session(connection) as session:
            newest = session.execute(statement).all()
        return [
            _void_game(iteration, batch, machine, kept)
            for batch, iteration, machine in reversed(newest)
            for kept in batch.void_log or ()
        ]

    def batch_failures(self, iteration_id: int, seq: int) -> list[BatchFailure]:
        """The machines that failed a batch or lost its lease."""
        statement = (
            select(BatchFailure)
            .join(Batch)
            .where(Batch.iteration_id == iteration_id, Batch.seq == seq)
            .order_by(BatchFailure.at, BatchFailure.machine)
        )
        with self._read() as connection:
            return rows(connection, statement)


_NO_CLAIM = ClaimRequest(worker_id=0, claim_id="", lease_seconds=0.0)


def _void_game(iteration: Iteration, batch: Batch, machine: str | None, kept: KeptVoid) -> VoidGame:
    side = kept.culprit or "plus"
    return VoidGame(
        iteration_number=iteration.iteration_number,
        seq=batch.seq,
        machine=machine,
        kept=kept,
        values=getattr(iteration, f"{side}_parameters"),
        options=getattr(iteration, f"{side}_options"),
        sha256=getattr(iteration, f"{side}_sha256"),
    )


def _match_sums(run_id: int) -> sa.Select[*tuple[Any, ...]]:
    """The newest match first: its number, its sums and how many rounds it has of each status."""
    kept = Iteration.status != IterationStatus.ABANDONED

    def rounds(*status: IterationStatus) -> sa.ColumnElement[int]:
        return func.sum(sa.case((Iteration.status.in_(status), 1), else_=0))

    sums = [
        func.sum(sa.case((kept, getattr(Iteration, name)), else_=0)).label(name)
        for name in _COUNTED
    ]
    number = func.coalesce(Iteration.match_number, Iteration.iteration_number)
    return (
        select(
            number.label("number"),
            *sums,
            rounds(IterationStatus.PENDING, IterationStatus.IN_PROGRESS).label("open"),
            rounds(IterationStatus.COMPLETE).label("complete"),
            func.max(Iteration.completed_at).label("completed_at"),
        )
        .where(Iteration.run_id == run_id, IS_VALIDATION)
        .group_by(number)
        .order_by(number.desc())
    )


def _match(first: Iteration, sums: Any) -> Iteration:
    """A match as one iteration; one whose rounds are all abandoned is its first round."""
    if not sums.open and not sums.complete:
        return first
    status = IterationStatus.COMPLETE if not sums.open else first.status
    if sums.open and status is not IterationStatus.PENDING:
        status = IterationStatus.IN_PROGRESS
    counts: dict[str, Any] = {name: int(getattr(sums, name)) for name in _COUNTED}
    ended = None if sums.open else sums.completed_at
    return replace(first, status=status, completed_at=ended, **counts)
