"""What a worker asks of the database, here in the words of SQLite; see `worker_functions` too.

A method is one transaction. It may be called again with the same arguments after an unknown
outcome: a claim has its id, and a report is its claim's. Everything that a worker hands in is
compared with `limits` first, as the database does.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

import sqlalchemy as sa

from spsa.core import limits
from spsa.db.database import Database, counts_of
from spsa.db.entries import BatchResult, WorkerInfo
from spsa.db.row_values import claim_of
from spsa.db.rows import Claim, RegisteredWorker
from spsa.db.schema import Json
from spsa.db.sql_files import named_statements
from spsa.errors import IllegalTransition, LeaseLost, NameTaken, ReportConflict
from spsa.lifecycle import BatchStatus

Outcome = Literal["accepted", "already", "conflict", "lost"]
"""What becomes of a report; worker_functions.sql says when."""

CLAIMED_TYPES = dict.fromkeys(("terms", "plus_options", "minus_options"), Json)
"""The columns of `spsa_claimed` that are not plain."""


def statement(name: str, **types: Any) -> sa.TextClause:
    """A statement of worker_statements.sql by its name."""
    text = sa.text(named_statements("worker_statements.sql")[name])
    return text.columns(**types) if types else text  # type: ignore[return-value]


def lot_of(claim_id: str) -> float:
    """Where in [0, 1) the draw of this claim falls; asked again, it falls there again."""
    return Random(claim_id).random()


def place_of(claim: Claim) -> str:
    """What a person calls the batch of a claim."""
    return f"iteration {claim.iteration_number} batch {claim.seq} of run {claim.run_name}"


class WorkerQueries(Database):
    """Register, claim, renew, report, release and fail."""

    def register_worker(self, info: WorkerInfo) -> RegisteredWorker:
        """Write the worker's row, or bring it up to date.

        Raises:
            NameTaken: a worker of another machine has this name.
            OutOfRange: a number or a text is none of a machine's.
        """
        facts = {name: getattr(info, name) for name in _FACTS}
        limits.check_values("spsa_worker", facts)
        limits.check_values("spsa_machine", {"name": info.host})
        worker_id, machine = self._register({**facts, "host": info.host}, info.secret)
        if worker_id is None:
            raise NameTaken(
                f"the worker name {info.name!r} belongs to the machine {machine!r}, and this one "
                "has another secret: choose another --name"
            )
        return RegisteredWorker(id=worker_id, machine=machine, secret=info.secret)

    def touch_worker(self, worker: RegisteredWorker, nps: float | None = None) -> str | None:
        """Say that the worker lives, and how many nodes a second an engine makes on it.

        Why its machine is given no batches; None where it is.
        """
        limits.check_values("spsa_worker", {"nps": nps})
        return self._touch(worker, nps)

    def claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Claim | None:
        """One free batch; None when there is no work now.

        A claim that has a batch already, as after an unknown outcome, is told of that one.

        Raises:
            LeaseLost: the batch of this claim was reported already.
            IllegalTransition: the database does not know this worker (any more).
        """
        limits.check_lease(lease_seconds)
        limits.check_values("spsa_batch", {"claim_id": claim_id})
        row = self._claim(claim_id, worker, lease_seconds)
        if row is None:
            return None
        if row.status != BatchStatus.LEASED:
            raise LeaseLost(f"claim {claim_id} has been reported; new work takes a new claim")
        return claim_of(row, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """Lengthen the leases of these claims; those that are still held.

        A claim that is missing from the answer is lost: its games have to be dropped.
        """
        limits.check_lease(lease_seconds)
        limits.check_renewed(len(claim_ids))
        return frozenset(self._renew(claim_ids, lease_seconds)) if claim_ids else frozenset()

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        """Hand in the result of a batch: it counts in its batch and its iteration, or nowhere.

        Raises:
            LeaseLost: the batch is another claim's now, or abandoned; the games do not count.
            ReportConflict: this claim was reported before with other counts.
            OutOfRange: a number of the result is none that games can have.
        """
        columns = columns_of(result)
        limits.check_values("spsa_batch", columns)
        outcome = self._report(claim, columns)
        if outcome == "lost":
            raise LeaseLost(
                f"{place_of(claim)} is no longer held by claim {claim.claim_id}, or abandoned"
            )
        if outcome == "conflict":
            raise ReportConflict(f"{place_of(claim)} was reported before with other counts")
        return outcome

    def release(self, claim: Claim) -> None:
        """Give a batch back unplayed; the attempt does not count. Nothing if it is not held."""
        with self._write() as connection:
            connection.execute(_RELEASE, _names(claim))

    def fail(
        self, claim: Claim, reason: str, void_games: int = 0, sha256: str | None = None
    ) -> None:
        """Give a batch back because this machine cannot play it, with the reason.

        Other machines may try. The master decides when that was tried often enough.

        Args:
            sha256: the binary that is to blame, where that is known.
        """
        limits.check_values("spsa_batch", {"last_error": reason, "void_games": void_games})
        limits.check_values("spsa_failure", {"sha256": sha256})
        self._fail(claim, {"reason": reason, "void_games": void_games, "sha256": sha256})

    def engine_bytes(self, sha256: str) -> bytes | None:
        """A binary that is kept in the database; None where only its path is."""
        with self._read() as connection:
            content: bytes | None = connection.scalar(_ENGINE_BYTES, {"sha256": sha256})
            return content

    def work_left(self) -> bool:
        """Whether any run is still to be played, though perhaps nothing of it is free just now."""
        with self._read() as connection:
            return bool(connection.scalar(_WORK_LEFT))

    def _register(self, facts: Mapping[str, Any], secret: str) -> tuple[int | None, str]:
        hashed = _hashed(secret)
        values = {**facts, "secret_sha256": hashed}
        with self._write() as connection:
            machine = connection.scalar(_OWN_MACHINE, values)
            if machine is None:  # a new machine; where its name is taken it gets a longer one
                connection.execute(_NEW_MACHINE, values)
                connection.execute(
                    _NEW_MACHINE, {**values, "host": f"{facts['host']}-{hashed[:8]}"}
                )
                machine = connection.scalar(_OWN_MACHINE, values)
            worker_id = connection.scalar(_WORKER, {**values, "machine": machine})
            if worker_id is None:
                machine = connection.scalar(_OWNER, values)
            return worker_id, str(machine)

    def _touch(self, worker: RegisteredWorker, nps: float | None) -> str | None:
        with self._write() as connection:
            machine = _machine_of(connection, worker)
            values = {"worker_id": worker.id, "nps": nps, "machine": machine}
            connection.execute(_TOUCH, values)
            reason: str | None = connection.scalar(_TOLD_ASIDE, values)
            return reason

    def _claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Any:
        with self._write() as connection:
            machine = _machine_of(connection, worker)
            if machine is None:
                raise IllegalTransition(f"worker {worker.id} is not registered by this machine")
            told = connection.execute(_TOLD, {"claim_id": claim_id}).one_or_none()
            if told is None and _take(connection, claim_id, machine, worker.id, lease_seconds):
                told = connection.execute(_TOLD, {"claim_id": claim_id}).one()
            return told

    def _renew(self, claim_ids: Sequence[str], lease_seconds: float) -> list[str]:
        lease = {"lease_seconds": lease_seconds}
        with self._write() as connection:
            renewed = [
                connection.scalar(_RENEW, {"claim_id": claim_id, **lease}) for claim_id in claim_ids
            ]
            return [claim_id for claim_id in renewed if claim_id is not None]

    def _report(self, claim: Claim, columns: Mapping[str, Any]) -> Outcome:
        values = {**columns, **_names(claim)}
        with self._write() as connection:
            outcome: Outcome | None = connection.scalar(_REPORT, values)
            return outcome or connection.scalar(_REPORT_AGAIN, values) or "lost"

    def _fail(self, claim: Claim, values: Mapping[str, Any]) -> None:
        values = {**values, **_names(claim)}
        with self._write() as connection:
            worker_id = connection.scalar(_FAIL, values)
            if worker_id is not None:
                _note_failure(connection, {**values, "worker_id": worker_id})


def columns_of(result: BatchResult) -> dict[str, Any]:
    """The columns of a batch that a result fills, and the void games that it adds."""
    return {
        **counts_of(result.tally),
        "void_games": sum(result.voids.values()),
        "voids": json.dumps(dict(result.voids)),
        **{name: getattr(result, name) for name in COSTS},
    }


COSTS = (
    *("plus_nodes", "minus_nodes", "moves", "plus_time_losses", "minus_time_losses"),
    *("seconds", "think_seconds", "slot"),
)
"""The columns of a batch that tell what its games have cost."""

_FACTS = ("name", "platform", "cores", "concurrency", "version", "confinement")
_OWN_MACHINE = statement("register_worker.own_machine")
_NEW_MACHINE = statement("register_worker.new_machine")
_WORKER = statement("register_worker.worker")
_OWNER = statement("register_worker.owner")
_MACHINE_OF = statement("machine_of")
_TOUCH, _TOLD_ASIDE = statement("touch_worker"), statement("touch_worker.set_aside")
_NEXT_RUN = statement("next_run")
_TOLD = statement("claim.told", **CLAIMED_TYPES)
_SEVERAL_RUNS = statement("claim.several_runs")
_ITERATIONS = statement("claim.iterations")
_FREE = statement("claim.free")
_LEASE = statement("claim.lease")
_BEGIN = statement("claim.begin")
_RENEW = statement("renew")
_REPORT, _REPORT_AGAIN = statement("report"), statement("report.again")
_RELEASE = statement("release")
_FAIL = statement("fail")
_NOTE_FAILURE, _FAILED_BY = statement("note_failure"), statement("note_failure.machines")
_ENGINE_BYTES = statement("engine_bytes")
_WORK_LEFT = statement("work_left")


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _names(claim: Claim) -> dict[str, Any]:
    return {"batch_id": claim.batch_id, "claim_id": claim.claim_id}


def _machine_of(connection: sa.Connection, worker: RegisteredWorker) -> str | None:
    known = {"worker_id": worker.id, "secret_sha256": _hashed(worker.secret)}
    machine: str | None = connection.scalar(_MACHINE_OF, known)
    return machine


def _take(
    connection: sa.Connection, claim_id: str, machine: str, worker_id: int, lease_seconds: float
) -> bool:
    """Lease the first free batch to a claim, if there is one."""
    several = connection.scalar(_SEVERAL_RUNS)
    run_id = connection.scalar(_NEXT_RUN, {"lot": lot_of(claim_id)}) if several else None
    served = connection.scalars(_ITERATIONS, {"machine": machine, "run_id": run_id}).all()
    for iteration_id in served:
        where = {"iteration_id": iteration_id, "machine": machine}
        free = connection.execute(_FREE, where).one_or_none()
        if free is not None:
            lease = {"claim_id": claim_id, "worker_id": worker_id, "lease_seconds": lease_seconds}
            _lease(connection, free, lease)
            connection.execute(_BEGIN, where)
            return True
    return False


def _lease(connection: sa.Connection, free: Any, lease: Mapping[str, Any]) -> None:
    if free.left_by is not None:
        nothing = {"sha256": None, "reason": None}
        lost = {"batch_id": free.id, "worker_id": free.left_by, **nothing}
        _note_failure(connection, lost)
    connection.execute(_LEASE, {**lease, "batch_id": free.id})


def _note_failure(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    connection.execute(_NOTE_FAILURE, values)
    connection.execute(_FAILED_BY, values)
