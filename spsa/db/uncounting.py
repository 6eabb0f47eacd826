"""What the iterations that a purge takes games from have left, and what that says."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, select, update

from spsa.core.scoring import elo
from spsa.db.database import COUNTS, tally_of
from spsa.db.purge_values import NewPurge
from spsa.db.schema import iterations, struck
from spsa.errors import IllegalTransition
from spsa.lifecycle import IterationStatus, Purpose


def uncount(connection: sa.Connection, purge_id: int, new: NewPurge) -> int:
    """Judge anew what the iterations have left that lost games; how many games were purged.

    The trigger spsa_count has taken the games off the iterations' rows with their batches.
    """
    hit = connection.execute(_hit(purge_id)).all()
    applied = {row.id for row in hit if row.k is not None and _is_complete(row)}
    if applied != set(new.judgements):
        raise IllegalTransition("the purge was decided on other results than it would purge")
    if judged := [_judged(row, new) for row in hit if _is_complete(row)]:
        connection.execute(_judging(), judged)
    return sum(int(row.purged_now) for row in hit)


def _is_complete(row: Any) -> bool:
    return bool(row.status == IterationStatus.COMPLETE)


def _hit(purge_id: int) -> sa.Select[Any]:
    """The iterations that have lost games, with the counts that they have left."""
    columns = ("id", "k", "purpose", "status", *COUNTS)
    return (
        select(
            *(iterations.c[name] for name in columns),
            func.sum(struck.c.games).label("purged_now"),
        )
        .join(struck, struck.c.iteration_id == iterations.c.id)
        .where(struck.c.purge_id == purge_id)
        .group_by(iterations.c.id)
        .order_by(iterations.c.id)
    )


def _judging() -> sa.Update:
    return (
        update(iterations)
        .where(iterations.c.id == bindparam("row"))
        .values(gradient_estimate=bindparam("gradient"), elo_diff=bindparam("elo"))
    )


def _judged(row: Any, new: NewPurge) -> dict[str, Any]:
    """What the games that a complete iteration has left say."""
    if row.purpose == Purpose.VALIDATE:
        left = tally_of(row)
        return {"row": row.id, "gradient": None, "elo": elo(left).value if left.pairs else None}
    judgement = new.judgements[row.id]
    gradient = judgement.gradient
    return {
        "row": row.id,
        "gradient": None if gradient is None else dict(gradient),
        "elo": judgement.elo,
    }
