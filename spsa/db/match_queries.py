"""The validations of a run, each as one match however many rounds it has."""

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.limits import COUNTS
from spsa.db.database import Database, tally_of
from spsa.db.entries import Compared
from spsa.db.history_rows import MatchLine
from spsa.db.row_values import iteration_of
from spsa.db.rows import Iteration
from spsa.db.schema import IS_VALIDATION, iterations
from spsa.lifecycle import IterationStatus

_COUNTED = (*COUNTS, "void_games", "struck_games", "games_played", "target_games")


class MatchQueries(Database):
    """The queries about validations; they only read."""

    def matches(self, run_id: int, *, last: int | None = None) -> list[Iteration]:
        """The validations of a run in order, only the `last` ones if that is given.

        A match of several rounds is one iteration: its first round, with the sums over all rounds
        that were not abandoned.
        """
        with self._read() as connection:
            sums = connection.execute(_match_sums(run_id).limit(last)).all()[::-1]
            first = [row.number for row in sums]
            rows = connection.execute(
                select(iterations)
                .where(iterations.c.run_id == run_id, iterations.c.iteration_number.in_(first))
                .order_by(iterations.c.iteration_number)
            )
            return [_match(iteration_of(row), one) for row, one in zip(rows, sums, strict=True)]

    def match_lines(self, run_id: int) -> list[MatchLine]:
        """The validations of a run in order, without their parameters; those that have games."""
        sums = _match_sums(run_id).subquery()
        statement = (
            select(*sums.c, iterations.c.opened_on, iterations.c.compared)
            .join(iterations, iterations.c.iteration_number == sums.c.number)
            .where(iterations.c.run_id == run_id, sums.c.games_played > 0)
            .order_by(sums.c.number)
        )
        with self._read() as connection:
            return [
                MatchLine(
                    match_number=row.number,
                    k=row.opened_on,
                    compared=None if row.compared is None else Compared.from_json(row.compared),
                    tally=tally_of(row),
                )
                for row in connection.execute(statement)
            ]

    def rounds(self, run_id: int, match_number: int) -> list[Iteration]:
        """The rounds of one match in order, abandoned ones too."""
        statement = (
            select(iterations)
            .where(
                iterations.c.run_id == run_id,
                IS_VALIDATION,
                iterations.c.match_number == match_number,
            )
            .order_by(iterations.c.iteration_number)
        )
        with self._read() as connection:
            return [iteration_of(row) for row in connection.execute(statement)]


def _match_sums(run_id: int) -> sa.Select[Any]:
    """The newest match first: its number, its sums and how many rounds it has of each status."""
    kept = iterations.c.status != IterationStatus.ABANDONED

    def rounds(*status: IterationStatus) -> sa.ColumnElement[int]:
        return func.sum(sa.case((iterations.c.status.in_(status), 1), else_=0))

    sums = [func.sum(sa.case((kept, iterations.c[name]), else_=0)).label(name) for name in _COUNTED]
    number = func.coalesce(iterations.c.match_number, iterations.c.iteration_number)
    return (
        select(
            number.label("number"),
            *sums,
            rounds(IterationStatus.PENDING, IterationStatus.IN_PROGRESS).label("open"),
            rounds(IterationStatus.COMPLETE).label("complete"),
            func.max(iterations.c.completed_at).label("completed_at"),
        )
        .where(iterations.c.run_id == run_id, IS_VALIDATION)
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
    return replace(
        first,
        status=status,
        tally=tally_of(sums),
        games_played=int(sums.games_played),
        target_games=int(sums.target_games),
        void_games=int(sums.void_games),
        struck_games=int(sums.struck_games),
        completed_at=None if sums.open else sums.completed_at,
    )
