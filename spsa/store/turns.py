"""Whose turn it is: in which order a claim looks for something that is free.

The highest priority that has anything free is served first. Runs of one priority share the slots of
the fleet: of the slots in use by those that wait and the one that asks, each is due the part that
its share is of all their shares, and the draw is among those that have less. What is lacking is the
weight in the draw, so a run is never off by more than about a slot, and none starves where there
are fewer slots than runs. Within a run the oldest iteration goes first.

Only open iterations and their batches are read: the cost does not grow with the runs.
"""

from random import Random
from typing import Any

import sqlalchemy as sa
from sqlalchemy import and_, case, func, literal, or_, select

from spsa.lifecycle import Purpose, RunStatus
from spsa.schema import (
    IS_LEASED,
    IS_OPEN,
    IS_READY,
    batches,
    iterations,
    runs,
    seconds_from_now,
)

# while a run is paused nothing of it is handed out; a validation outlives its run
IS_PLAYABLE = and_(
    IS_OPEN,
    or_(
        runs.c.status == RunStatus.RUNNING,
        and_(
            iterations.c.purpose == Purpose.VALIDATE,
            runs.c.status.in_([RunStatus.FINISHED, RunStatus.STOPPED]),
        ),
    ),
)
# made once, as every claim asks it
_UNCONTESTED = (
    select(
        iterations.c.id,
        iterations.c.status,
        (func.max(iterations.c.run_id).over() > func.min(iterations.c.run_id).over()).label(
            "contested"
        ),
    )
    .join(runs)
    .where(IS_PLAYABLE)
    # by run first, though there is but one: in this order they stand in the index of open ones
    .order_by(iterations.c.run_id, iterations.c.id)
)
_LEFT_BEHIND = and_(IS_LEASED, batches.c.lease_expires_at < seconds_from_now(0))
IS_IN_USE = and_(IS_LEASED, batches.c.lease_expires_at >= seconds_from_now(0))


def lot_of(claim_id: str) -> float:
    """Where in [0, 1) the draw of this claim falls; asked again, it falls there again."""
    return Random(claim_id).random()


def uncontested() -> sa.Select[Any]:
    """The iterations of which something may be handed out, where one run alone has any.

    Where several have, each row says that they are `contested`, and what counts is `playable`;
    where none but one may be served, nothing has to be drawn.
    """
    return _UNCONTESTED


def playable(lot: sa.ColumnElement[float]) -> sa.Select[Any]:
    """The iterations of which something may be handed out, the first to be served first.

    Where all of the run whose turn it is turns out to be taken, the others follow.
    """
    whose_turn = _drawn(_lacking(_contenders()), lot).scalar_subquery()
    return (
        select(iterations.c.id, iterations.c.status)
        .join(runs, runs.c.id == iterations.c.run_id)
        .where(IS_PLAYABLE)
        # false sorts before true
        .order_by(runs.c.priority.desc(), runs.c.id != whose_turn, iterations.c.id)
    )


def _drawn(lacking: sa.CTE, lot: sa.ColumnElement[float]) -> sa.Select[Any]:
    """The first run whose part of all that is lacking the lot falls into."""
    parts = select(
        lacking.c.id,
        func.sum(lacking.c.slots).over(order_by=lacking.c.id).label("upto"),
        func.sum(lacking.c.slots).over().label("whole"),
    ).cte("parts")
    return select(parts.c.id).order_by(parts.c.upto <= lot * parts.c.whole, parts.c.id).limit(1)


def _contenders() -> sa.CTE:
    """Runs of the highest priority among those that have a free batch."""
    # asked one after the other, as each has an index of its own
    free = or_(_any_of_its_own(IS_READY), _any_of_its_own(_LEFT_BEHIND))
    waiting = select(runs.c.id, runs.c.priority, runs.c.share).where(free).cte("waiting")
    highest = select(func.max(waiting.c.priority)).scalar_subquery()
    served = select(waiting.c.id, waiting.c.share).where(waiting.c.priority == highest)
    return served.cte("contenders")


def _any_of_its_own(free: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether the run of the statement around it has such a batch, to be tried once more."""
    return (
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .where(
            iterations.c.run_id == runs.c.id,
            IS_PLAYABLE,
            free,
            batches.c.attempt < batches.c.max_attempts,
        )
        .correlate(runs)
        .exists()
    )


def _lacking(contenders: sa.CTE) -> sa.CTE:
    """How many slots each contender has less than it is due, 0 where it has enough."""
    # a run that is alone is served whatever it holds: nothing has to be counted
    several = select(func.count()).select_from(contenders).scalar_subquery() > 1
    used = case((several, _in_use(contenders.c.id)), else_=0)
    held = select(contenders.c.id, contenders.c.share, used.label("slots")).cte("held")
    in_all = 1 + func.sum(held.c.slots).over()
    lack = in_all * held.c.share / func.sum(held.c.share).over() - held.c.slots
    due = select(held.c.id, lack.label("slots")).cte("due")
    wanted = case((due.c.slots > 0, due.c.slots), else_=literal(0.0))
    return select(due.c.id, wanted.label("slots")).cte("lacking")


def _in_use(run_id: sa.ColumnElement[int]) -> sa.ScalarSelect[Any]:
    return (
        select(func.count())
        .select_from(iterations.join(batches, batches.c.iteration_id == iterations.c.id))
        .where(iterations.c.run_id == run_id, IS_OPEN, IS_IN_USE)
        .scalar_subquery()
    )
