"""The queries with which a person changes a run: start, pause, resume, stop, extend."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import delete, func, or_, select, update

from spsa.db.base import execute, time_from_now
from spsa.db.database import Database, add, may_become, rows
from spsa.db.tables import Event, FailureRow, Iteration, Run
from spsa.errors import IllegalTransition
from spsa.lifecycle import ITERATION, RUN, IterationStatus, RunStatus
from spsa.text import plural

ALARM, ALARM_OVER = "alarm", "alarm_over"
"""The kinds of the events of an alarm's beginning and of its end."""

NEWS = "news"
"""The kind of the event of what a message told: that the run ended, what a validation measured."""

VERDICT = "verdict"
"""The kind of the event of a verdict that differs from the one before."""


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


def pause_for_failure(connection: sa.Connection, run_id: int, reason: str) -> None:
    """Pause a run that cannot go on, with the reason in its row and in an event.

    A run that is not running keeps its status; the event is written all the same.
    """
    paused = _become(connection, Run.id == run_id, RunStatus.PAUSED, reason)
    kind = "failed" if paused is None else str(RunStatus.PAUSED)
    write_event(connection, run_id, kind, "master", {"reason": reason})


def _become(
    connection: sa.Connection, which: sa.ColumnElement[bool], to: RunStatus, reason: str | None
) -> int | None:
    """Carry out a transition of a run; its id, or None where the lifecycle does not allow it."""
    ended = to in (RunStatus.FINISHED, RunStatus.STOPPED)
    finished_at = time_from_now() if ended else None
    values = {"status": to, "reason": reason, "finished_at": finished_at}
    guarded = update(Run).where(which, may_become(Run.status, RUN, to))
    run_id: int | None = connection.scalar(guarded.values(values).returning(Run.id))
    return run_id


def abandon(connection: sa.Connection, run_id: int, *of: sa.ColumnElement[bool]) -> bool:
    """Abandon those open iterations of a run; whether there was any."""
    abandoned = (
        update(Iteration)
        .where(Iteration.run_id == run_id, *of)
        .where(may_become(Iteration.status, ITERATION, IterationStatus.ABANDONED))
        .values(status=IterationStatus.ABANDONED)
    )
    return connection.execute(abandoned).rowcount > 0


STARTING_SECONDS = 10.0
"""How long a new run waits for the master that created it to acquire its lease."""


class RunQueries(Database):
    def create_run(self, new: Run, *, replacing: int | None = None) -> Run:
        """Create a run, and delete the run `replacing`, which has not opened an iteration.

        Raises IllegalTransition: a run of this name exists.
        """
        with self._write() as connection:
            if replacing is not None and connection.scalar(_unopened(replacing).with_for_update()):
                connection.execute(delete(Event).where(Event.run_id == replacing))
                connection.execute(delete(Run).where(Run.id == replacing))
            begun = {"start_theta": new.theta, "lease_expires_at": time_from_now(STARTING_SECONDS)}
            run_id = add(connection, new, **begun)
            detail = {"seed": new.seed, **(new.settings.get("origin") or {})}
            write_event(connection, run_id, "start", "master", detail)
            return rows(connection, select(Run).where(Run.id == run_id))[0]

    def keep_files(self, files: Mapping[str, bytes]) -> None:
        """Keep archives, books and side files by their hashes, unless they are there."""
        with self._write() as connection:
            for sha256, content in sorted(files.items()):  # others may lock the same rows
                execute(connection, "keep_file", sha256=sha256, content=content)

    def is_unopened(self, run_id: int) -> bool:
        """Whether a run has no iteration, and no master that may be about to open one."""
        with self._read() as connection:
            return connection.scalar(_unopened(run_id)) is not None

    def pause(self, name: str, actor: str, reason: str) -> None:
        """Hand out no more batches of a run until it is resumed; games being played still count."""
        with self._write() as connection:
            set_run_status(connection, name, RunStatus.PAUSED, actor, reason)

    def resume(self, name: str, actor: str) -> None:
        """Continue a paused run; its failed batches may be tried again."""
        with self._write() as connection:
            run_id = set_run_status(
                connection, name, RunStatus.RUNNING, actor, leaving=RunStatus.PAUSED
            )
            retried = execute(connection, "resume", run_id=run_id).scalars().all()
            connection.execute(delete(FailureRow).where(FailureRow.batch_id.in_(retried)))

    def stop(self, name: str, actor: str, reason: str) -> None:
        """End a run early: its open iterations are abandoned, theta keeps what was applied."""
        with self._write() as connection:
            run_id = set_run_status(connection, name, RunStatus.STOPPED, actor, reason)
            abandon(connection, run_id)

    def extend(self, name: str, actor: str, max_iterations: int) -> None:
        """Change the number of iterations of a run; one that is finished goes on.

        Raises IllegalTransition: the run is stopped, or has already opened more iterations.
        """
        with self._write() as connection:
            run = _locked(connection, name)  # its master opens iterations under the same lock
            if not run.tunes:
                raise IllegalTransition(f"run {name} has no parameters: it cannot be extended")
            if run.status is RunStatus.STOPPED:
                raise IllegalTransition(
                    f"run {name} is stopped: it cannot be extended, as its open iterations were "
                    "abandoned; `spsa-master run --from` starts another run from it"
                )
            largest = select(func.max(Iteration.k)).where(Iteration.run_id == run.id)
            if (opened := connection.scalar(largest) or 0) > max_iterations:
                raise IllegalTransition(
                    f"run {name} has already opened {plural(opened, 'iteration')}"
                )
            _change(connection, run, "extend", actor, {"max_iterations": max_iterations})
            if run.status is RunStatus.FINISHED and max_iterations > run.applied:
                set_run_status(connection, name, RunStatus.RUNNING, actor)

    def prioritize(
        self, name: str, actor: str, *, priority: int | None = None, share: float | None = None
    ) -> None:
        """Change a run's priority or share, from the next claim on; None leaves a value as it is.

        A run that has ended may still have a validation to be played.
        """
        given = {"priority": priority, "share": share}
        changed = {key: value for key, value in given.items() if value is not None}
        with self._write() as connection:
            _change(connection, _locked(connection, name), "prioritize", actor, changed)


def _locked(connection: sa.Connection, name: str) -> Run:
    for run in rows(connection, select(Run).where(Run.name == name).with_for_update()):
        return run
    raise IllegalTransition(f"there is no run named {name!r}")


def _change(
    connection: sa.Connection, run: Run, kind: str, actor: str, columns: Mapping[str, Any]
) -> None:
    if new := {name: value for name, value in columns.items() if value != getattr(run, name)}:
        connection.execute(update(Run).where(Run.id == run.id).values(new))
        write_event(connection, run.id, kind, actor, new)


def _unopened(run_id: int) -> sa.Select[Any]:
    is_empty = ~select(Iteration.id).where(Iteration.run_id == Run.id).exists()
    is_free = or_(Run.lease_expires_at.is_(None), Run.lease_expires_at < time_from_now())
    return select(Run.id).where(Run.id == run_id, is_empty, is_free)
