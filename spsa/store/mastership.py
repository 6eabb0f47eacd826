"""The verbs of a master: acquire, tick, open, apply, finish.

Every write is guarded by the mastership (a lease row with an epoch) and by compare-and-set on what
it was decided on; a guard that matches no row is an error, never silence.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select, update

from spsa.errors import IllegalTransition, MastershipLost
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus
from spsa.schema import batches, engines, iterations, runs, seconds_from_now, steps, workers
from spsa.store.database import Database, may_become, tally_of
from spsa.store.opening import insert_iteration, keep_engine, number_of
from spsa.store.rows import Iteration, Mastership, NewIteration, NewStep, RunView
from spsa.store.runs import move_run, run_of
from spsa.store.work import pause_for_failure

SEEN_LATELY_SECONDS = 120
"""A worker that has not been heard of for this long is not counted as playing."""


class MasterDesk(Database):
    """What a master may do with the run it moves."""

    def acquire(self, run_id: int, master_id: str, lease_seconds: float) -> Mastership:
        """Become the master of a run.

        Raises:
            MastershipLost: another master's lease is live.
        """
        with self._write() as connection:
            epoch = connection.scalar(
                update(runs)
                .where(
                    runs.c.id == run_id,
                    sa.or_(
                        runs.c.master_id.is_(None),
                        runs.c.master_id == master_id,
                        runs.c.lease_expires_at < seconds_from_now(0),
                    ),
                )
                .values(
                    epoch=runs.c.epoch + 1,
                    master_id=master_id,
                    lease_expires_at=seconds_from_now(lease_seconds),
                )
                .returning(runs.c.epoch)
            )
            if epoch is None:
                holder = connection.scalar(select(runs.c.master_id).where(runs.c.id == run_id))
                raise MastershipLost(f"the run is moved by the master {holder}")
            return Mastership(run_id=run_id, master_id=master_id, epoch=epoch)

    def resign(self, mastership: Mastership) -> None:
        """Give the mastership up, so that the next master need not wait for the lease to end."""
        with self._write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.id == mastership.run_id, runs.c.epoch == mastership.epoch)
                .values(master_id=None, lease_expires_at=None)
            )

    def tick(self, mastership: Mastership, lease_seconds: float) -> RunView:
        """Renew the mastership, give up batches that are out of attempts, and look at the run."""
        with self._write() as connection:
            _lead(connection, mastership, lease_seconds=lease_seconds)
            _fail_exhausted(connection, mastership.run_id)
            return _view(connection, mastership.run_id)

    def open_iteration(self, mastership: Mastership, new: NewIteration) -> int:
        """Write an iteration with its engines and all its batches; its number.

        Doing it again after an unknown outcome finds the row by its k and changes nothing.

        Raises:
            MastershipLost: another master moves this run.
            IllegalTransition: the run is halted, or ends before this iteration, or holds other
                results than it was decided on.
        """
        with self._write() as connection:
            run = _lead(connection, mastership)
            known = number_of(connection, run.id, new.k)
            if known is not None:
                return known
            if new.purpose is Purpose.TUNE:
                _refuse_outdated(run, new)
            for engine in (new.plus, new.minus):
                keep_engine(connection, engine)
            return insert_iteration(connection, run, mastership.epoch, new)

    def apply(self, mastership: Mastership, iteration_id: int, step: NewStep) -> None:
        """Complete an iteration and move theta by it, in one transaction.

        Raises:
            MastershipLost: another master moves this run.
            IllegalTransition: it is not the run's next iteration, or has not all its games.
        """
        with self._write() as connection:
            run = _lead(connection, mastership)
            if run.applied != step.k - 1 or run.theta != dict(step.theta_before):
                raise IllegalTransition(f"k={step.k} is not the next result of run {run.name}")
            _complete(connection, mastership, iteration_id, step.k, step.gradient, step.elo)
            connection.execute(
                steps.insert().values(
                    run_id=run.id,
                    iteration_id=iteration_id,
                    k=step.k,
                    theta_before=dict(step.theta_before),
                    delta=dict(step.delta),
                    theta_after=dict(step.theta_after),
                    bounded=step.bounded,
                    epoch=mastership.epoch,
                )
            )
            connection.execute(
                update(runs)
                .where(runs.c.id == run.id)
                .values(theta=dict(step.theta_after), state=dict(step.state), applied=step.k)
            )

    def complete_validation(self, mastership: Mastership, iteration_id: int, elo: float) -> None:
        """Close a validation that has all its games; theta does not move."""
        with self._write() as connection:
            _lead(connection, mastership)
            _complete(connection, mastership, iteration_id, None, None, elo)

    def abandon_validation(self, mastership: Mastership, iteration_id: int) -> None:
        """Give up a validation that cannot be played; another one may be opened."""
        with self._write() as connection:
            _lead(connection, mastership)
            connection.execute(
                update(iterations)
                .where(
                    iterations.c.id == iteration_id,
                    iterations.c.purpose == Purpose.VALIDATE,
                    may_become(iterations.c.status, ITERATION, IterationStatus.ABANDONED),
                )
                .values(status=IterationStatus.ABANDONED)
            )

    def finish(self, mastership: Mastership) -> None:
        """End a run that has applied all its iterations."""
        with self._write() as connection:
            run = _lead(connection, mastership)
            if run.applied != run.max_iterations:
                raise IllegalTransition(f"run {run.name} has iterations left")
            move_run(connection, run.name, RunStatus.FINISHED, "master")

    def retire_engines(self, mastership: Mastership, k: int) -> list[str]:
        """Give up the binaries of the run's iteration k that nothing younger or open names.

        Their bytes are forgotten here; the answer are their build keys, for who keeps the files.
        """
        with self._write() as connection:
            run = _lead(connection, mastership)
            retired = select(iterations).where(_of(run.id), iterations.c.k == k).subquery()
            rows = connection.execute(
                update(engines)
                .where(
                    sa.or_(
                        engines.c.sha256 == select(retired.c.plus_sha256).scalar_subquery(),
                        engines.c.sha256 == select(retired.c.minus_sha256).scalar_subquery(),
                    ),
                    ~_needed(run.id, k),
                )
                .values(bytes=None)
                .returning(engines.c.build_key)
            )
            return list(rows.scalars())


def iteration_of(row: Any) -> Iteration:
    """The value of a row of `spsa_iteration`."""
    names = set(Iteration.__dataclass_fields__) - {"tally"}
    values = {name: getattr(row, name) for name in names}
    values["status"] = IterationStatus(row.status)
    values["purpose"] = Purpose(row.purpose)
    return Iteration(tally=tally_of(row), **values)


def _needed(run_id: int, k: int) -> sa.ColumnElement[bool]:
    """Whether an engine is named by an open iteration of any run, or a younger one of this run."""
    opened = iterations.c.status.in_([IterationStatus.PENDING, IterationStatus.IN_PROGRESS])
    names = sa.or_(
        iterations.c.plus_sha256 == engines.c.sha256, iterations.c.minus_sha256 == engines.c.sha256
    )
    younger = sa.and_(_of(run_id), iterations.c.k > k)
    return select(iterations.c.id).where(names, sa.or_(opened, younger)).exists()


def _lead(
    connection: sa.Connection, mastership: Mastership, *, lease_seconds: float | None = None
) -> Any:
    """The run's row, locked, if this mastership still holds; else MastershipLost."""
    changed: dict[str, Any] = {"epoch": runs.c.epoch}
    if lease_seconds is not None:
        changed["lease_expires_at"] = seconds_from_now(lease_seconds)
    row = connection.execute(
        update(runs)
        .where(
            runs.c.id == mastership.run_id,
            runs.c.epoch == mastership.epoch,
            runs.c.master_id == mastership.master_id,
        )
        .values(changed)
        .returning(*runs.c)
    ).one_or_none()
    if row is None:
        raise MastershipLost("another master has taken over this run; this one stops")
    return row


def _refuse_outdated(run: Any, new: NewIteration) -> None:
    """A build takes minutes: the run may not be what it was when the iteration was decided on."""
    name = f"iteration k={new.k}"
    if run.status != RunStatus.RUNNING:
        raise IllegalTransition(f"{name} comes too late: run {run.name} is {run.status}")
    if new.k is None or new.k > run.max_iterations:
        raise IllegalTransition(f"{name} is past the run's {run.max_iterations} iterations")
    if run.applied != new.opened_on:
        raise IllegalTransition(
            f"{name} was decided on {new.opened_on} results, the run holds {run.applied}"
        )


def _fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Batches whose last allowed lease ran out: every worker that tried them died or went away."""
    open_ones = select(iterations.c.id).where(
        iterations.c.run_id == run_id, iterations.c.status == IterationStatus.IN_PROGRESS
    )
    failed = connection.execute(
        update(batches)
        .where(
            batches.c.iteration_id.in_(open_ones),
            batches.c.status == BatchStatus.LEASED,
            batches.c.attempt >= batches.c.max_attempts,
            batches.c.lease_expires_at < seconds_from_now(0),
        )
        .values(
            status=BatchStatus.FAILED,
            claim_id=None,
            lease_expires_at=None,
            last_error=func.coalesce(
                batches.c.last_error, "every worker that claimed it went away without reporting"
            ),
        )
        .returning(batches.c.iteration_id, batches.c.seq, batches.c.attempt)
    ).all()
    for row in failed:
        pause_for_failure(
            connection,
            run_id,
            f"batch {row.seq} of iteration row {row.iteration_id} was claimed {row.attempt} times "
            "and never reported: do the engines bring the worker down?",
        )


def _view(connection: sa.Connection, run_id: int) -> RunView:
    opened = connection.scalar(select(func.max(iterations.c.k)).where(_of(run_id)))
    open_rows = connection.execute(
        select(iterations)
        .where(
            _of(run_id),
            iterations.c.status.in_([IterationStatus.PENDING, IterationStatus.IN_PROGRESS]),
        )
        .order_by(iterations.c.iteration_number)
    ).all()
    ids = [open_row.id for open_row in open_rows]
    failures = connection.scalars(
        select(batches.c.last_error).where(
            batches.c.iteration_id.in_(ids), batches.c.status == BatchStatus.FAILED
        )
    ).all()
    leased = connection.scalar(
        select(func.coalesce(func.sum(batches.c.games), 0)).where(
            batches.c.iteration_id.in_(ids), batches.c.status == BatchStatus.LEASED
        )
    )
    seen = connection.execute(
        select(func.count(), func.coalesce(func.sum(workers.c.concurrency), 0)).where(
            workers.c.last_seen_at > seconds_from_now(-SEEN_LATELY_SECONDS)
        )
    ).one()
    run = run_of(connection.execute(select(runs).where(runs.c.id == run_id)).one())
    return RunView(
        run=run,
        opened=opened or 0,
        open=[iteration_of(open_row) for open_row in open_rows],
        failures=[text or "" for text in failures],
        leased_games=int(leased or 0),
        active_workers=seen[0],
        active_slots=int(seen[1]),
    )


def _of(run_id: int) -> sa.ColumnElement[bool]:
    return iterations.c.run_id == run_id


def _complete(
    connection: sa.Connection,
    mastership: Mastership,
    iteration_id: int,
    k: int | None,
    gradient: Mapping[str, float] | None,
    elo: float,
) -> None:
    row = connection.execute(
        update(iterations)
        .where(
            iterations.c.id == iteration_id,
            iterations.c.run_id == mastership.run_id,
            iterations.c.k.is_not_distinct_from(k),
            iterations.c.games_played == iterations.c.target_games,
            may_become(iterations.c.status, ITERATION, IterationStatus.COMPLETE),
        )
        .values(
            status=IterationStatus.COMPLETE,
            gradient_estimate=None if gradient is None else dict(gradient),
            elo_diff=elo,
            completed_by_epoch=mastership.epoch,
            completed_at=seconds_from_now(0),
        )
        .returning(iterations.c.id)
    ).one_or_none()
    if row is None:
        raise IllegalTransition(f"iteration row {iteration_id} cannot be completed now")
