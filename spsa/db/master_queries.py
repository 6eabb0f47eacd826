"""The queries with which a master changes its run: open, apply, finish.

Every write checks the master lease, and that the run is still as it was when the master decided. A
check that fails raises an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, insert, select, update

from spsa.db.base import time_from_now
from spsa.db.database import may_become
from spsa.db.engine_tables import EngineFile
from spsa.db.entries import NewIteration, NewStep
from spsa.db.iteration_rows import joined, number_of, open_one
from spsa.db.master_lease import MasterLease, MasterLeaseQueries, locked_run
from spsa.db.run_status import ALARM, ALARM_OVER, set_run_status, write_event
from spsa.db.run_tables import IS_OPEN, IS_VALIDATION, Iteration, Run, Step, estimate_columns
from spsa.db.run_view import pause_if_miscounted
from spsa.errors import IllegalTransition
from spsa.lifecycle import ITERATION, IterationStatus, Purpose, RunStatus


class MasterQueries(MasterLeaseQueries):
    """What a master may do with its run."""

    def open_iteration(
        self,
        master_lease: MasterLease,
        new: NewIteration,
        *,
        beside: NewIteration | None = None,
    ) -> int:
        """Write an iteration with its engines and all its batches; returns its number.

        Repeated after an unknown outcome, it finds the row by its k and changes nothing.

        Args:
            beside: a round of a background validation, which gets the number before it.

        Raises:
            MasterLeaseLost: another master holds this run.
            IllegalTransition: the run is not running, or ends before this iteration, or its
                results have changed since the master decided.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            known = number_of(connection, run.id, new.k)
            if known is not None:
                return known
            if new.purpose is Purpose.TUNE:
                _refuse_outdated(run, new)
            if beside is not None:
                beside = joined(connection, run.id, beside)
                open_one(connection, run, master_lease.epoch, beside)
            return open_one(connection, run, master_lease.epoch, new)

    def apply(self, master_lease: MasterLease, iteration_id: int, step: NewStep) -> None:
        """Complete an iteration and move theta by it, in one transaction.

        Raises:
            MasterLeaseLost: another master holds this run.
            IllegalTransition: it is not the run's next iteration, or games are missing, or its
                counts are not the sums over its batches, and the run is paused for that.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            if run.applied != step.k - 1 or run.theta != dict(step.theta_before):
                raise IllegalTransition(f"k={step.k} is not the next result of run {run.name}")
            _refuse_purged(run, step.purges)
            wrong = pause_if_miscounted(connection, iteration_id)
            if wrong is None:
                _complete(connection, master_lease, iteration_id, step.k, step.gradient, step.elo)
                _write_step(connection, master_lease, iteration_id, step)
        if wrong is not None:  # the pause is kept
            raise IllegalTransition(wrong)

    def complete_validation(
        self, master_lease: MasterLease, iteration_id: int, elo: float, purges: int = 0
    ) -> None:
        """Close a validation that has all its games; theta does not move.

        `purges` is how many the run had when its games were counted.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            _refuse_purged(run, purges)
            wrong = pause_if_miscounted(connection, iteration_id)
            if wrong is None:
                _complete(connection, master_lease, iteration_id, None, None, elo)
        if wrong is not None:
            raise IllegalTransition(wrong)

    def abandon_validation(self, master_lease: MasterLease, iteration_id: int) -> None:
        """Give up a validation that cannot be played; another one may be opened.

        Raises:
            IllegalTransition: it is not a validation, or has ended.
        """
        with self._write() as connection:
            locked_run(connection, master_lease)
            abandoned = connection.scalar(
                update(Iteration)
                .where(
                    Iteration.id == iteration_id,
                    Iteration.run_id == master_lease.run_id,
                    Iteration.purpose == Purpose.VALIDATE,
                    may_become(Iteration.status, ITERATION, IterationStatus.ABANDONED),
                )
                .values(status=IterationStatus.ABANDONED)
                .returning(Iteration.id)
            )
            if abandoned is None:
                raise IllegalTransition(f"iteration row {iteration_id} cannot be abandoned now")

    def finish(self, master_lease: MasterLease) -> None:
        """End a run that has applied all its iterations."""
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            if run.applied != run.max_iterations:
                raise IllegalTransition(f"run {run.name} has iterations left")
            set_run_status(connection, run.name, RunStatus.FINISHED, "master")

    def shorten(
        self, master_lease: MasterLease, seen: Run, max_iterations: int, reason: str
    ) -> None:
        """Let a run end with the iterations that it has opened.

        Args:
            seen: the run when that was decided.
            max_iterations: the last k that it has opened.

        Raises:
            MasterLeaseLost: another master holds this run.
            IllegalTransition: the run has changed since.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            _refuse_purged(run, seen.purges)
            opened = select(func.max(Iteration.k)).where(Iteration.run_id == run.id)
            now = (run.status, run.applied, run.max_iterations, connection.scalar(opened))
            if now != (RunStatus.RUNNING, seen.applied, seen.max_iterations, max_iterations):
                raise IllegalTransition(f"run {run.name} has changed since it was to be shortened")
            changing = update(Run).where(Run.id == run.id)
            connection.execute(changing.values(max_iterations=max_iterations))
            detail = {"applied": run.applied, "max_iterations": max_iterations, "reason": reason}
            write_event(connection, run.id, "stop_when", "master", detail)

    def record_alarms(
        self,
        master_lease: MasterLease,
        begun: Sequence[Mapping[str, str]],
        over: Sequence[Mapping[str, str]],
    ) -> None:
        """Write an event for each alarm that has begun, and for each that is over.

        Raises:
            MasterLeaseLost: another master holds this run.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            for kind, alarms in ((ALARM, begun), (ALARM_OVER, over)):
                for alarm in alarms:
                    write_event(connection, run.id, kind, "master", alarm)

    def retire_engines(self, master_lease: MasterLease, k: int) -> list[str]:
        """Delete the bytes of the binaries of iteration k that no later or open iteration uses.

        Returns their build keys, so that the caller can delete the files.
        """
        with self._write() as connection:
            run = locked_run(connection, master_lease)
            mine = Iteration.run_id == run.id
            number = select(Iteration.iteration_number).where(mine, Iteration.k == k)
            at = number.scalar_subquery()
            # the round of a validation that was opened with it has the number before it
            beside = sa.and_(IS_VALIDATION, Iteration.iteration_number == at - 1)
            retired = sa.and_(mine, sa.or_(Iteration.k == k, beside))
            later = sa.and_(mine, Iteration.iteration_number > at)
            unused = _variants_of(connection, retired)
            if unused:
                unused -= _variants_of(connection, later, IS_OPEN)
            rows = connection.execute(
                update(EngineFile)
                .where(
                    sa.or_(
                        EngineFile.sha256.in_(_binaries_of(retired)), EngineFile.sha256.in_(unused)
                    ),
                    EngineFile.sha256.not_in(_binaries_of(later, IS_OPEN)),
                )
                .values(content=None)
                .returning(EngineFile.build_key)
            )
            return list(rows.scalars())


def _write_step(
    connection: sa.Connection, master_lease: MasterLease, iteration_id: int, step: NewStep
) -> None:
    row = {name: getattr(step, name) for name in _STEP}
    row |= {"run_id": master_lease.run_id, "epoch": master_lease.epoch}
    connection.execute(insert(Step).values(row | {"iteration_id": iteration_id}))
    run = update(Run).where(Run.id == master_lease.run_id)
    connection.execute(run.values(_run_columns(step)))


_STEP = ("k", "theta_before", "delta", "theta_after", "bounded")


def _binaries_of(*conditions: sa.ColumnElement[bool]) -> sa.CompoundSelect[Any]:
    """The engines of iterations that meet any condition; one query for each uses its index."""
    sides = (Iteration.plus_sha256, Iteration.minus_sha256)
    return sa.union_all(
        *(select(side).where(condition) for condition in conditions for side in sides)
    )


def _variants_of(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> set[str]:
    """The engines for other levels of the iterations that meet any condition."""
    return {
        side["sha256"]
        for condition in conditions
        for variants in connection.scalars(select(Iteration.variants).where(condition))
        for sides in (variants or {}).values()
        for side in sides.values()
    }


def _refuse_outdated(run: Any, new: NewIteration) -> None:
    """A build takes minutes, in which the run may have changed."""
    name = f"iteration k={new.k}"
    if run.status != RunStatus.RUNNING:
        raise IllegalTransition(f"{name} is too late: run {run.name} is {run.status}")
    if new.k is None or new.k > run.max_iterations:
        raise IllegalTransition(f"{name} is past the run's {run.max_iterations} iterations")
    if not max(0, new.k - new.in_flight) <= new.opened_on <= run.applied:
        raise IllegalTransition(
            f"{name} was decided on {new.opened_on} results, the run has {run.applied}"
        )
    _refuse_purged(run, new.opened_purges)


def _refuse_purged(run: Any, purges: int) -> None:
    """Refuse what was decided on results that were purged since."""
    if run.purges != purges:
        raise IllegalTransition(f"results of run {run.name} have been purged meanwhile")


def _run_columns(step: NewStep) -> dict[str, Any]:
    """The columns of the run's row that a step changes."""
    return estimate_columns(step.estimates) | {
        "theta": dict(step.theta_after),
        "state": dict(step.state),
        "applied": step.k,
    }


def _complete(
    connection: sa.Connection,
    master_lease: MasterLease,
    iteration_id: int,
    k: int | None,
    gradient: Mapping[str, float] | None,
    elo: float,
) -> None:
    row = connection.execute(
        update(Iteration)
        .where(
            Iteration.id == iteration_id,
            Iteration.run_id == master_lease.run_id,
            Iteration.k.is_not_distinct_from(k),
            Iteration.games_played == Iteration.target_games,
            may_become(Iteration.status, ITERATION, IterationStatus.COMPLETE),
        )
        .values(
            status=IterationStatus.COMPLETE,
            gradient_estimate=None if gradient is None else dict(gradient),
            elo_diff=elo,
            completed_by_epoch=master_lease.epoch,
            completed_at=time_from_now(0),
        )
        .returning(Iteration.id)
    ).one_or_none()
    if row is None:
        raise IllegalTransition(f"iteration row {iteration_id} cannot be completed now")
