"""All runs of a database side by side."""

import sqlalchemy as sa
from sqlalchemy import and_, case, func, or_, select

from spsa.db.database import Database
from spsa.db.rows import RunOverview
from spsa.db.schema import IS_LEASED, IS_OPEN, batches, iterations, runs, seconds_from_now
from spsa.lifecycle import RunStatus

_IS_IN_USE = and_(IS_LEASED, batches.c.lease_expires_at >= seconds_from_now(0))
_OWN = ("name", "status", "priority", "share", "applied", "max_iterations")


class RunOverviewQueries(Database):
    """The query for an overview of the runs."""

    def run_overviews(self) -> list[RunOverview]:
        """All runs in the order of scheduling; ended runs come last, the most recent first."""
        with self._read() as connection:
            return [
                RunOverview(**{**row._mapping, "status": RunStatus(row.status)})
                for row in connection.execute(_overviews())
            ]


def _overviews() -> sa.Select[tuple[object, ...]]:
    open_ones = (
        select(iterations.c.run_id, func.count(batches.c.id).label("slots"))
        .select_from(
            iterations.outerjoin(
                batches, and_(batches.c.iteration_id == iterations.c.id, _IS_IN_USE)
            )
        )
        .where(IS_OPEN)
        .group_by(iterations.c.run_id)
        .subquery()
    )
    ended = case((runs.c.finished_at.is_(None), 0), else_=1)
    return (
        select(
            *(runs.c[name] for name in _OWN),
            func.coalesce(open_ones.c.slots, 0).label("slots"),
            and_(
                runs.c.master_id.is_not(None), runs.c.lease_expires_at >= seconds_from_now(0)
            ).label("has_master"),
            or_(runs.c.finished_at.is_(None), open_ones.c.run_id.is_not(None)).label("live"),
        )
        .select_from(runs.outerjoin(open_ones, open_ones.c.run_id == runs.c.id))
        .order_by(ended, runs.c.finished_at.desc(), runs.c.priority.desc(), runs.c.id)
    )
