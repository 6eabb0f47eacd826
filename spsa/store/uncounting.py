"""What was struck is taken off the rows of the iterations that had counted it."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, select, update

from spsa.errors import IllegalTransition
from spsa.lifecycle import IterationStatus, Purpose
from spsa.schema import iterations, struck
from spsa.scoring import Tally, elo
from spsa.store.database import COUNTS, tally_of
from spsa.store.struck import NewPurge


def uncount(connection: sa.Connection, purge_id: int, new: NewPurge) -> int:
    """Take what was struck off the iterations' rows; how many games it was."""
    hit = connection.execute(_hit(purge_id)).all()
    applied = {row.id for row in hit if row.k is not None and _is_complete(row)}
    if applied != set(new.judgements):
        raise IllegalTransition("the purge was decided on other results than it would strike")
    if hit:
        connection.execute(_subtraction(), [_taken_off(row) for row in hit])
    if judged := [_judged(row, new) for row in hit if _is_complete(row)]:
        connection.execute(_judging(), judged)
    return sum(int(row.struck_now) for row in hit)


def _is_complete(row: Any) -> bool:
    return bool(row.status == IterationStatus.COMPLETE)


def _hit(purge_id: int) -> sa.Select[Any]:
    """The iterations that lose games, each with the sums of what it loses."""
    columns = ("id", "k", "purpose", "status", *COUNTS)
    sums = [func.sum(struck.c[name]).label(f"struck_{name}") for name in (*COUNTS, "void_games")]
    return (
        select(
            *(iterations.c[name] for name in columns),
            func.sum(struck.c.games).label("struck_now"),
            *sums,
        )
        .join(struck, struck.c.iteration_id == iterations.c.id)
        .where(struck.c.purge_id == purge_id)
        .group_by(iterations.c.id)
        .order_by(iterations.c.id)
    )


def _subtraction() -> sa.Update:
    less = {
        name: iterations.c[name] - bindparam(f"struck_{name}") for name in (*COUNTS, "void_games")
    }
    return (
        update(iterations)
        .where(iterations.c.id == bindparam("row"))
        .values(
            games_played=iterations.c.games_played - bindparam("struck_now"),
            struck_games=iterations.c.struck_games + bindparam("for_good"),
            **less,
        )
    )


def _taken_off(row: Any) -> dict[str, int]:
    names = ("struck_now", *(f"struck_{name}" for name in (*COUNTS, "void_games")))
    games = int(row.struck_now)
    is_open = row.status in (IterationStatus.PENDING, IterationStatus.IN_PROGRESS)
    sums = {name: int(getattr(row, name)) for name in names}
    return {"row": row.id, "for_good": 0 if is_open else games, **sums}


def _judging() -> sa.Update:
    return (
        update(iterations)
        .where(iterations.c.id == bindparam("row"))
        .values(gradient_estimate=bindparam("gradient"), elo_diff=bindparam("elo"))
    )


def _judged(row: Any, new: NewPurge) -> dict[str, Any]:
    """What the games that a complete iteration has left say."""
    if row.purpose == Purpose.VALIDATE:
        left = tally_of(row).without(_tally_struck(row))
        return {"row": row.id, "gradient": None, "elo": elo(left).value if left.pairs else None}
    judgement = new.judgements[row.id]
    gradient = judgement.gradient
    return {
        "row": row.id,
        "gradient": None if gradient is None else dict(gradient),
        "elo": judgement.elo,
    }


def _tally_struck(row: Any) -> Tally:
    wins, losses, draws, *pairs = (int(getattr(row, f"struck_{name}")) for name in COUNTS)
    ll, ld, even, wd, ww = pairs
    return Tally(wins, losses, draws, (ll, ld, even, wd, ww))
