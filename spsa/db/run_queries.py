"""What a person tells a run: start, pause, resume, stop, extend."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Select, delete, func, or_, select, update

from spsa.db.database import Database, may_become
from spsa.db.entries import NewRun
from spsa.db.row_values import run_of
from spsa.db.rows import Run
from spsa.db.run_status import move_run, write_event
from spsa.db.schema import batches, events, failures, iterations, runs, seconds_from_now
from spsa.errors import IllegalTransition
from spsa.lifecycle import BATCH, ITERATION, BatchStatus, IterationStatus, RunStatus

STARTING_SECONDS = 10.0
"""How long a run is kept for the master that made it and has not taken it yet."""


class RunQueries(Database):
    """What the person who owns a run may do with it."""

    def create_run(self, new: NewRun, *, replacing: int | None = None) -> Run:
        """Start a run, in place of one that never began.

        Both in one transaction: a worker always sees one of them, and that there is work to come.

        Raises:
            IllegalTransition: a run of this name exists.
        """
        with self._write() as connection:
            if replacing is not None:
                _forget(connection, replacing)
            if connection.scalar(select(runs.c.id).where(runs.c.name == new.name)) is not None:
                raise IllegalTransition(f"there is a run named {new.name} already")
            row = connection.execute(
                runs.insert()
                .values(
                    name=new.name,
                    seed=new.seed,
                    algorithm=new.algorithm,
                    settings=dict(new.settings),
                    space=dict(new.space),
                    terms=new.terms.to_json(),
                    source_sha256=new.source_sha256,
                    max_iterations=new.max_iterations,
                    start_theta=dict(new.theta),
                    theta=dict(new.theta),
                    state=dict(new.state),
                    priority=new.priority,
                    share=new.share,
                    lease_expires_at=seconds_from_now(STARTING_SECONDS),
                )
                .returning(*runs.c)
            ).one()
            write_event(connection, row.id, "start", "master", {"seed": new.seed})
            return run_of(row)

    def never_began(self, run_id: int) -> bool:
        """Whether a run has no iteration, and no master that may be about to open one."""
        with self._read() as connection:
            return connection.scalar(_unbegun(run_id)) is not None

    def pause(self, name: str, actor: str, reason: str) -> None:
        """Hand out nothing more of a run until it is resumed; games in play still count."""
        with self._write() as connection:
            move_run(connection, name, RunStatus.PAUSED, actor, reason)

    def resume(self, name: str, actor: str) -> None:
        """Go on with a paused run; its failed batches may be tried again."""
        with self._write() as connection:
            run_id = move_run(connection, name, RunStatus.RUNNING, actor)
            mine = select(iterations.c.id).where(iterations.c.run_id == run_id)
            again = connection.scalars(
                update(batches)
                .where(
                    batches.c.iteration_id.in_(mine),
                    may_become(batches.c.status, BATCH, BatchStatus.READY),
                    batches.c.status == BatchStatus.FAILED,
                )
                .values(status=BatchStatus.READY, attempt=0, failures=0)
                .returning(batches.c.id)
            ).all()
            connection.execute(delete(failures).where(failures.c.batch_id.in_(again)))

    def stop(self, name: str, actor: str, reason: str) -> None:
        """End a run early: its open iterations are abandoned, what was applied stays."""
        with self._write() as connection:
            run_id = move_run(connection, name, RunStatus.STOPPED, actor, reason)
            connection.execute(
                update(iterations)
                .where(
                    iterations.c.run_id == run_id,
                    may_become(iterations.c.status, ITERATION, IterationStatus.ABANDONED),
                )
                .values(status=IterationStatus.ABANDONED)
            )

    def extend(self, name: str, actor: str, max_iterations: int) -> None:
        """Give a run that has not ended another length.

        Raises:
            IllegalTransition: the run has ended, or has opened more iterations than that.
        """
        with self._write() as connection:
            # the master, too, opens under this lock: what is counted next is all there is
            run = connection.execute(
                select(runs.c.id, runs.c.status).where(runs.c.name == name).with_for_update()
            ).one_or_none()
            if run is None:
                raise IllegalTransition(f"there is no run named {name!r}")
            if run.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
                raise IllegalTransition(f"run {name} is {run.status}: it cannot be extended")
            opened = _opened(connection, run.id)
            if opened > max_iterations:
                raise IllegalTransition(f"run {name} has opened {opened} iterations already")
            connection.execute(
                update(runs).where(runs.c.id == run.id).values(max_iterations=max_iterations)
            )
            write_event(connection, run.id, "extend", actor, {"max_iterations": max_iterations})

    def prioritize(
        self, name: str, actor: str, *, priority: int | None = None, share: float | None = None
    ) -> None:
        """Serve a run sooner or later than others, or another share of it, from the next claim on.

        None leaves a value as it is; one is given at least. A run that has ended may still have a
        validation to be served.
        """
        given = {"priority": priority, "share": share}
        changed = {key: value for key, value in given.items() if value is not None}
        with self._write() as connection:
            mine = update(runs).where(runs.c.name == name).values(changed)
            run_id = connection.scalar(mine.returning(runs.c.id))
            if run_id is None:
                raise IllegalTransition(f"there is no run named {name!r}")
            write_event(connection, run_id, "prioritize", actor, changed)

    def note(self, run_id: int, kind: str, actor: str, detail: Mapping[str, Any]) -> None:
        """Write an event."""
        with self._write() as connection:
            write_event(connection, run_id, kind, actor, detail)


def _opened(connection: Connection, run_id: int) -> int:
    """The largest k of a run."""
    largest = select(func.coalesce(func.max(iterations.c.k), 0))
    return int(connection.scalar(largest.where(iterations.c.run_id == run_id)) or 0)


def _unbegun(run_id: int) -> Select[tuple[int]]:
    unopened = ~select(iterations.c.id).where(iterations.c.run_id == runs.c.id).exists()
    nobodys = or_(runs.c.lease_expires_at.is_(None), runs.c.lease_expires_at < seconds_from_now(0))
    return select(runs.c.id).where(runs.c.id == run_id, unopened, nobodys)


def _forget(connection: Connection, run_id: int) -> None:
    if connection.scalar(_unbegun(run_id).with_for_update()) is not None:
        connection.execute(delete(events).where(events.c.run_id == run_id))
        connection.execute(delete(runs).where(runs.c.id == run_id))
