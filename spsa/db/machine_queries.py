"""Invites and revokes machines, sets them aside, and takes back what they hold."""

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import delete, func, insert, or_, select, update
from sqlalchemy.orm import contains_eager

from spsa.core.json_values import Text, checked
from spsa.db.base import execute, time_from_now
from spsa.db.build_queries import Build
from spsa.db.database import Database, rows
from spsa.db.run_queries import write_event
from spsa.db.tables import (
    IS_LEASED,
    IS_OPEN,
    Batch,
    FailureRow,
    Iteration,
    Machine,
    Run,
    SetAsideRow,
    Worker,
)
from spsa.errors import NameTaken, NothingToDo, OutOfRange
from spsa.lifecycle import BatchStatus, MachineRole
from spsa.protocol import Failure
from spsa.text import NAME_LENGTH

# built once, because each request of a remote worker needs it
_OWNER = select(Worker.host).where(Worker.id == sa.bindparam("worker_id")).scalar_subquery()
_OF_TOKEN = select(*Machine.__table__.c, _OWNER.label("owner")).where(
    Machine.secret_sha256 == sa.bindparam("sha256"), Machine.invited_by.is_not(None)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEngines:
    """Plus and minus of the iterations from `first` to `last` of which a worker played games."""

    plus_sha256: str
    minus_sha256: str
    first: int
    last: int
    games: int


class MachineQueries(Database):
    """What people do with machines, and what the server asks about a token.

    A machine is named by its name or that of one of its workers; NothingToDo if there is none. An
    event of a machine belongs to no run, and is among the events of each.
    """

    def invite_machine(self, name: str, role: MachineRole, actor: str) -> str:
        """Record a machine; returns the token of its workers, of which only the hash is kept.

        A machine that was revoked gets a new token. Raises NameTaken: a machine or a worker has
        this name.
        """
        if (refusal := Text(1, NAME_LENGTH).refusal(name)) is not None:
            raise OutOfRange(f"the machine's name {refusal}")
        token = f"spsa_{secrets.token_urlsafe(32)}"
        facts = {"role": role, "invited_by": actor, "revoked_at": None}
        facts |= {"secret_sha256": hashlib.sha256(token.encode()).hexdigest()}
        is_revoked = sa.and_(Machine.name == name, Machine.revoked_at.is_not(None))
        with self._write() as connection:
            again = connection.execute(update(Machine).where(is_revoked).values(facts))
            if not again.rowcount:
                _refuse_taken(connection, name)
                connection.execute(insert(Machine).values(name=name, **facts))
        return token

    def revoke_machine(self, machine: str, actor: str) -> int:
        """End a machine's token or secret, and take back all that it holds; how many batches."""
        with self._write() as connection:
            name = _machine(connection, machine)
            count = withdraw_leases(connection, Batch.worker_id.in_(_workers_of(name)))
            valid = update(Machine).where(Machine.name == name, Machine.revoked_at.is_(None))
            ended = connection.execute(valid.values(revoked_at=time_from_now())).rowcount
            if ended:
                write_event(connection, None, "revoke", actor, {"machine": name, "batches": count})
            built = (Build.id.label("build_id"), Build.claim_id, Build.worker_id)
            held = select(*built).where(Build.worker_id.in_(_workers_of(name)))
            for row in connection.execute(held.where(Build.claim_id.is_not(None))).all():
                execute(connection, "fail_build", **row._mapping, attempts=1)
            return count

    def machines(self) -> list[Machine]:
        """Every machine that was invited or has registered itself."""
        return self._rows(select(Machine).order_by(Machine.name))

    def machine_of_token(
        self, sha256: str, worker_id: int | None = None
    ) -> tuple[Machine, str | None] | None:
        """The machine whose token has this hash, and the name of the machine of this worker.

        None if no invited machine has this token. The machine may be revoked.
        """
        asked = {"sha256": sha256, "worker_id": worker_id}
        with self._read() as connection:
            found = connection.execute(_OF_TOKEN, asked).one_or_none()
        if found is None:
            return None
        *columns, owner = found
        return Machine(**dict(zip(Machine.__table__.c.keys(), columns, strict=True))), owner

    def place_of(self, machine: str, sha256: str) -> str | None:
        """Where the master keeps the file with this hash, empty if only in the database.

        None if no batch or build that the machine holds needs the file.
        """
        its = _workers_of(machine)
        held = select(Batch.iteration_id).where(IS_LEASED, Batch.worker_id.in_(its))
        played = select(Iteration).where(Iteration.id.in_(held), IS_OPEN)
        is_built = sa.and_(Build.status == BatchStatus.LEASED, Build.worker_id.in_(its))
        archive = select(Build.id).where(is_built, Build.archive_sha256 == sha256)
        with self._read() as connection:
            if connection.scalar(archive) is not None:
                return ""
            needed = (file for one in rows(connection, played) for file in _files(one))
            return next((place for found, place in needed if found == sha256), None)

    def set_aside(
        self, machine: str, reason: str, actor: str, *, sha256: str | None = None
    ) -> bool:
        """Stop giving batches to a machine; False if it was set aside already.

        `sha256` is the binary whose batches it no longer gets; None for all batches.
        """
        checked(Failure(reason=reason, sha256=sha256))
        with self._write() as connection:
            name = _machine(connection, machine)
            same = sa.and_(
                SetAsideRow.machine == name, SetAsideRow.sha256.is_not_distinct_from(sha256)
            )
            if connection.scalar(select(SetAsideRow.id).where(same)) is not None:
                return False
            detail = {"machine": name, "sha256": sha256, "reason": reason}
            connection.execute(insert(SetAsideRow).values(**detail, actor=actor))
            write_event(connection, None, "set_aside", actor, detail)
            return True

    def withdraw_batches(self, machine: str, actor: str) -> int:
        """Take back the batches that a machine holds, for others to play; returns how many."""
        with self._write() as connection:
            name = _machine(connection, machine)
            count = withdraw_leases(connection, Batch.worker_id.in_(_workers_of(name)))
            if count:
                detail = {"machine": name, "batches": count}
                write_event(connection, None, "withdraw", actor, detail)
            return count

    def release_machine(self, machine: str, actor: str) -> bool:
        """Give a machine batches again, and delete its failures; whether it was set aside."""
        with self._write() as connection:
            name = _machine(connection, machine)
            connection.execute(delete(FailureRow).where(FailureRow.machine == name))
            its = update(Worker).where(Worker.host == name)
            connection.execute(its.values(failed_void_games=0))
            released = connection.execute(delete(SetAsideRow).where(SetAsideRow.machine == name))
            if released.rowcount:
                write_event(connection, None, "release", actor, {"machine": name})
            return released.rowcount > 0

    def machines_set_aside(self) -> list[SetAsideRow]:
        """Every machine that gets no batches of some binary, or none at all."""
        return self._rows(select(SetAsideRow).order_by(SetAsideRow.machine, SetAsideRow.id))

    def machine_named(self, name: str) -> str:
        """The machine of this name, or that of the worker of this name."""
        with self._read() as connection:
            return _machine(connection, name)

    def failed_batches(self, run_id: int | None = None) -> dict[str, int]:
        """How many batches each machine has failed, of a run or of all, as far as is recorded."""
        failed = select(FailureRow.machine, func.count()).where(FailureRow.failures > 0)
        if run_id is not None:
            failed = failed.join(Batch).join(Iteration).where(Iteration.run_id == run_id)
        with self._read() as connection:
            found = connection.execute(failed.group_by(FailureRow.machine))
            return {row[0]: row[1] for row in found}

    def failures_of(self, machine: str, last: int) -> list[FailureRow]:
        """The batches that a machine failed last, of all runs, the newest first; with their run."""
        its = select(FailureRow).join(FailureRow.batch).join(Batch.iteration).join(Iteration.run)
        batch = contains_eager(FailureRow.batch).load_only(Batch.seq)
        iteration = batch.contains_eager(Batch.iteration).load_only(Iteration.iteration_number)
        its = its.options(iteration.contains_eager(Iteration.run).load_only(Run.name))
        newest = its.order_by(FailureRow.at.desc(), Batch.id).limit(last)
        return self._rows(newest.where(FailureRow.machine == machine))

    def engines_played(self, run_id: int, worker: str, last: int) -> list[PlayedEngines]:
        """What a worker played of a run, the newest engines first."""
        sides, at = (Iteration.plus_sha256, Iteration.minus_sha256), Iteration.iteration_number
        span = (func.min(at).label("first"), func.max(at).label("last"))
        sums = select(*sides, *span, func.sum(Batch.games).label("games"))
        found = sums.join_from(Batch, Iteration).join(Worker, Worker.id == Batch.worker_id)
        its = (Iteration.run_id == run_id, Worker.name == worker, Batch.status == BatchStatus.DONE)
        newest = found.where(*its).group_by(*sides).order_by(func.max(at).desc())
        return self._values(PlayedEngines, newest.limit(last))

    def engines_built(self, worker: str, last: int) -> list[Build]:
        """What a worker has built, for any run, the newest first."""
        done = (Worker.name == worker, Build.status == BatchStatus.DONE)
        its = select(Build).join(Worker, Worker.id == Build.worker_id).where(*done)
        return self._rows(its.order_by(Build.id.desc()).limit(last))

    def lost_leases(self, run_id: int, after: int = 0) -> dict[str, datetime]:
        """When each machine lost a lease last, in open iterations or those after k = `after`."""
        mine = (Iteration.run_id == run_id, or_(IS_OPEN, Iteration.k > after))
        lost = select(FailureRow.machine, FailureRow.at).join(Batch).join(Iteration)
        its = Batch.worker_id == Worker.id
        held = select(Worker.host, Batch.lease_expires_at).join_from(Batch, Worker, its)
        expired = (IS_LEASED, IS_OPEN, Batch.lease_expires_at < time_from_now())
        parts = (
            lost.where(*mine, FailureRow.lost_leases > 0),
            held.join(Iteration).where(*mine, *expired),
        )
        with self._read() as connection:
            found = [(host, at) for one in parts for host, at in connection.execute(one) if at]
            return dict(sorted(found))


def withdraw_leases(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    """Make leased batches of open iterations ready again, without an attempt; how many.

    `conditions` are over batches joined with their iterations.
    """
    leased = select(Batch.id).join(Iteration, Iteration.id == Batch.iteration_id)
    leased = leased.where(IS_LEASED, IS_OPEN, *conditions).order_by(Batch.id)
    found = connection.scalars(leased.with_for_update(of=Batch)).all()
    if found:
        execute(connection, "withdraw", batch_ids=found)
    return len(found)


def _workers_of(machine: str) -> sa.Select[int]:
    return select(Worker.id).where(Worker.host == machine)


def _files(iteration: Iteration) -> Iterator[tuple[str, str]]:
    """The hashes and places of all that a machine needs to play an iteration.

    The book and the side files lie beside the binaries, whatever became of those a person named.
    """
    yield from iteration.files.items()
    settings, binary = iteration.game_settings, Path(iteration.plus_engine_path)
    shared = (settings.book.sha256, *(one.sha256 for one in settings.engine_files.values()))
    yield from ((sha256, str(binary.with_name(sha256))) for sha256 in filter(None, shared))


def _refuse_taken(connection: sa.Connection, name: str) -> None:
    """A machine's name must be no other machine's or worker's: commands take either."""
    if connection.scalar(select(Machine.name).where(Machine.name == name)) is not None:
        raise NameTaken(
            f"there is a machine named {name!r}: choose another name, or revoke that one before "
            "you invite it again"
        )
    other = connection.scalar(select(Worker.host).where(Worker.name == name))
    if other is not None:
        raise NameTaken(f"a worker of the machine {other!r} is named {name!r}: choose another")


def _machine(connection: sa.Connection, name: str) -> str:
    found: str | None = connection.scalar(select(Machine.name).where(Machine.name == name))
    found = found or connection.scalar(select(Worker.host).where(Worker.name == name))
    if found is None:
        known = connection.scalars(select(Machine.name).order_by(Machine.name)).all()
        names = ", ".join(known[:20]) or "none has ever been registered"
        raise NothingToDo(f"there is no machine or worker named {name!r}; machines: {names}")
    return found
