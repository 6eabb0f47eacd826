"""Changes a run's status, and writes the event in the same transaction."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.db.base import time_from_now
from spsa.db.database import add, may_become
from spsa.db.run_tables import Event, Run
from spsa.errors import IllegalTransition
from spsa.lifecycle import RUN, RunStatus

ALARM, ALARM_OVER = "alarm", "alarm_over"
"""The kinds of the events of an alarm's beginning and of its end."""

MEASURED = "measured"
"""The kind of the event of a trial; it belongs to no run."""


def write_event(
    connection: sa.Connection, run_id: int | None, kind: str, actor: str, detail: Mapping[str, Any]
) -> None:
    """Add a row to the events, in the transaction that it describes."""
    add(connection, Event(run_id=run_id, kind=kind, actor=actor, detail=dict(detail)))


def set_run_status(
    connection: sa.Connection,
    name: str,
    to: RunStatus,
    actor: str,
    reason: str | None = None,
    *,
    leaving: RunStatus | None = None,
) -> int:
    """Change a run's status if its lifecycle allows it; returns the run's id.

    With `leaving`, only from that status.
    """
    own = Run.name == name if leaving is None else sa.and_(Run.name == name, Run.status == leaving)
    run_id = _become(connection, own, to, reason)
    if run_id is None:
        status = connection.scalar(select(Run.status).where(Run.name == name))
        state = "there is no such run" if status is None else f"it is {status}"
        raise IllegalTransition(f"run {name} cannot become {to}: {state}")
    write_event(connection, run_id, str(to), actor, {} if reason is None else {"reason": reason})
    return run_id


def pause_for_failure(connection: sa.Connection, run_id: int, actor: str, reason: str) -> None:
    """Pause a run that cannot go on, with the reason in its row and in an event.

    A run that is not running keeps its status; the event is written all the same.
    """
    paused = _become(connection, Run.id == run_id, RunStatus.PAUSED, reason)
    kind = "failed" if paused is None else str(RunStatus.PAUSED)
    write_event(connection, run_id, kind, actor, {"reason": reason})


def _become(
    connection: sa.Connection, which: sa.ColumnElement[bool], to: RunStatus, reason: str | None
) -> int | None:
    """Carry out a transition of a run; its id, or None where the lifecycle does not allow it."""
    ended = to in (RunStatus.FINISHED, RunStatus.STOPPED)
    finished_at = time_from_now(0) if ended else None
    values = {"status": to, "reason": reason, "finished_at": finished_at}
    guarded = update(Run).where(which, may_become(Run.status, RUN, to))
    run_id: int | None = connection.scalar(guarded.values(values).returning(Run.id))
    return run_id
