"""Changes a run's status, and writes the event in the same transaction."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.db.database import may_become
from spsa.db.schema import events, runs, seconds_from_now
from spsa.errors import IllegalTransition
from spsa.lifecycle import RUN, RunStatus

ALARM, ALARM_OVER = "alarm", "alarm_over"
"""The kinds of the events of an alarm's beginning and of its end."""

PARAMS = "params"
"""The kind of the event of a change of the space."""

MEASURED = "measured"
"""The kind of the event of a trial; it belongs to no run."""


def write_event(
    connection: sa.Connection, run_id: int | None, kind: str, actor: str, detail: Mapping[str, Any]
) -> None:
    """Add a row to the events, in the transaction that it describes."""
    connection.execute(
        events.insert().values(run_id=run_id, kind=kind, actor=actor, detail=dict(detail))
    )


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
    ended = to in (RunStatus.FINISHED, RunStatus.STOPPED)
    row = connection.execute(
        update(runs)
        .where(
            runs.c.name == name,
            may_become(runs.c.status, RUN, to),
            sa.true() if leaving is None else runs.c.status == leaving,
        )
        .values(status=to, reason=reason, finished_at=seconds_from_now(0) if ended else None)
        .returning(runs.c.id)
    ).one_or_none()
    if row is None:
        status = connection.scalar(select(runs.c.status).where(runs.c.name == name))
        state = "there is no such run" if status is None else f"it is {status}"
        raise IllegalTransition(f"run {name} cannot become {to}: {state}")
    write_event(connection, row.id, str(to), actor, {} if reason is None else {"reason": reason})
    return int(row.id)


def pause_for_failure(connection: sa.Connection, run_id: int, actor: str, reason: str) -> None:
    """Pause a run that cannot go on, with the reason in its row and in an event.

    A run that is not running keeps its status; the event is written all the same.
    """
    paused = connection.scalar(
        update(runs)
        .where(runs.c.id == run_id, may_become(runs.c.status, RUN, RunStatus.PAUSED))
        .values(status=RunStatus.PAUSED, reason=reason)
        .returning(runs.c.id)
    )
    kind = "failed" if paused is None else str(RunStatus.PAUSED)
    write_event(connection, run_id, kind, actor, {"reason": reason})
