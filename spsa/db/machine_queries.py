"""Sets machines aside, releases them, and takes back the batches that they hold."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import delete, func, insert, select, update

from spsa.core import limits
from spsa.db.database import Database, may_become
from spsa.db.rows import SetAside
from spsa.db.run_status import write_event
from spsa.db.schema import (
    IS_LEASED,
    IS_OPEN,
    batches,
    engines,
    failures,
    iterations,
    machines,
    runs,
    set_aside,
    workers,
    written_out,
)
from spsa.errors import NothingToDo
from spsa.lifecycle import BATCH, BatchStatus, RunStatus
from spsa.text import NAME_LENGTH, printable


class MachineQueries(Database):
    """Set machines aside, release them and list them."""

    def set_aside(
        self,
        machine: str,
        reason: str,
        actor: str,
        *,
        sha256: str | None = None,
    ) -> bool:
        """Stop giving batches to a machine; False if it was set aside already.

        Each run that it concerns gets an event.

        Args:
            machine: its name, or the name of one of its workers.
            sha256: the binary whose batches it no longer gets; None for all batches.

        Raises:
            NothingToDo: there is no such machine.
            OutOfRange: the reason is empty or too long.
        """
        limits.check_values("spsa_set_aside", {"reason": reason, "sha256": sha256})
        with self._write() as connection:
            name = _machine(connection, machine)
            same = sa.and_(
                set_aside.c.machine == name, set_aside.c.sha256.is_not_distinct_from(sha256)
            )
            if connection.scalar(select(set_aside.c.id).where(same)) is not None:
                return False
            values = {"machine": name, "sha256": sha256, "reason": reason, "actor": actor}
            connection.execute(insert(set_aside).values(values))
            detail = {"machine": name, "sha256": sha256, "reason": reason}
            for run_id in _concerned(connection):
                write_event(connection, run_id, "set_aside", actor, detail)
            return True

    def withdraw_batches(self, machine: str, actor: str) -> int:
        """Take back the batches that a machine holds, for others to play; returns how many.

        What the machine plays of them counts no more. Each run whose batches they are gets an
        event.

        Raises:
            NothingToDo: there is no such machine.
        """
        with self._write() as connection:
            name = _machine(connection, machine)
            its_workers = select(workers.c.id).where(workers.c.host == name)
            held, counts = batches.c.worker_id.in_(its_workers), []
            for run_id in _concerned(connection):
                of_run = select(iterations.c.id).where(iterations.c.run_id == run_id, IS_OPEN)
                counts.append(withdraw_leases(connection, held, batches.c.iteration_id.in_(of_run)))
                if counts[-1]:
                    detail = {"machine": name, "batches": counts[-1]}
                    write_event(connection, run_id, "withdraw", actor, detail)
            return sum(counts)

    def release_machine(self, machine: str, actor: str) -> bool:
        """Give a machine batches again, and delete its failures; whether it was set aside.

        The void games of its failed attempts are deleted with them.

        Raises:
            NothingToDo: there is no such machine.
        """
        with self._write() as connection:
            name = _machine(connection, machine)
            _delete_failures(connection, name)
            released = connection.execute(delete(set_aside).where(set_aside.c.machine == name))
            if released.rowcount:
                for run_id in _concerned(connection):
                    write_event(connection, run_id, "release", actor, {"machine": name})
            return released.rowcount > 0

    def machines_set_aside(self) -> list[SetAside]:
        """Every machine that gets no batches of some binary, or none at all."""
        statement = select(set_aside).order_by(set_aside.c.machine, set_aside.c.id)
        with self._read() as connection:
            return [
                SetAside(
                    machine=row.machine,
                    sha256=row.sha256,
                    reason=row.reason,
                    actor=row.actor,
                    at=row.at,
                )
                for row in connection.execute(statement)
            ]

    def end_stalled_sessions(self) -> list[str]:
        """End the workers' sessions whose transaction is open for too long; returns their logins.

        Raises:
            NotPermitted: this login may not end them.
        """
        if self.is_file:
            return []
        with self._write() as connection:
            logins = connection.scalars(sa.text("SELECT spsa_end_stalled_sessions()"))
            return [printable(login, NAME_LENGTH) for login in logins]

    def machine_named(self, name: str) -> str:
        """The machine of this name, or that of the worker of this name.

        Raises:
            NothingToDo: neither exists.
        """
        with self._read() as connection:
            return _machine(connection, name)

    def failed_batches(self) -> dict[str, int]:
        """How many batches each machine has failed, as far as that is recorded."""
        statement = (
            select(failures.c.machine, func.count().label("batches"))
            .where(failures.c.failures > 0)
            .group_by(failures.c.machine)
        )
        with self._read() as connection:
            return {row.machine: int(row.batches) for row in connection.execute(statement)}

    def binaries_starting(self, start: str) -> list[str]:
        """The hashes of binaries that begin with `start`."""
        hashes = engines.c.sha256
        begins = func.substr(hashes, 1, len(start)) == start
        with self._read() as connection:
            return list(connection.scalars(select(hashes).where(begins).order_by(hashes)))


def withdraw_leases(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    """Make leased batches ready again, without an attempt; returns how many."""
    withdrawn = connection.execute(
        update(batches)
        .where(IS_LEASED, may_become(batches.c.status, BATCH, BatchStatus.READY), *conditions)
        .values(
            status=BatchStatus.READY,
            attempt=batches.c.attempt - 1,
            claim_id=None,
            lease_expires_at=None,
        )
    )
    return withdrawn.rowcount


def _concerned(connection: sa.Connection) -> Sequence[int]:
    """The runs whose batches a machine may get or hold: those that go on, or have a match open."""
    goes_on = written_out(runs.c.status, RunStatus.RUNNING, RunStatus.PAUSED)
    is_played = runs.c.id.in_(select(iterations.c.run_id).where(IS_OPEN))
    return connection.scalars(select(runs.c.id).where(sa.or_(goes_on, is_played))).all()


def _delete_failures(connection: sa.Connection, machine: str) -> None:
    affected = connection.scalars(
        delete(failures).where(failures.c.machine == machine).returning(failures.c.batch_id)
    ).all()
    left = select(func.count()).where(failures.c.batch_id == batches.c.id).scalar_subquery()
    connection.execute(update(batches).where(batches.c.id.in_(affected)).values(failures=left))
    its_workers = workers.c.host == machine
    # locked in the order of their ids, as in every other transaction
    locked = select(workers.c.id).where(its_workers).order_by(workers.c.id)
    connection.execute(locked.with_for_update(key_share=True))
    connection.execute(update(workers).where(its_workers).values(failed_void_games=0))


def _machine(connection: sa.Connection, name: str) -> str:
    found: str | None = connection.scalar(select(machines.c.name).where(machines.c.name == name))
    found = found or connection.scalar(select(workers.c.host).where(workers.c.name == name))
    if found is None:
        known = connection.scalars(select(machines.c.name).order_by(machines.c.name)).all()
        names = ", ".join(known[:20]) or "none has ever been registered"
        raise NothingToDo(f"there is no machine or worker named {name!r}; machines: {names}")
    return found
