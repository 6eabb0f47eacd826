"""The queries of a worker, as statements for SQLite; `worker_functions` has them for PostgreSQL.

A method is one transaction. After an unknown outcome it may be called again with the same
arguments, because the worker chooses the id of a claim before it asks. Every value that a worker
sends is compared with `limits` first; the database checks the same limits.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal

import sqlalchemy as sa

from spsa.core import limits
from spsa.db.database import Database
from spsa.db.entries import BatchResult, KeptVoid, WorkerInfo
from spsa.db.row_values import claim_of, provided_text, result_columns, void_log, words_of
from spsa.db.rows import Claim, RegisteredWorker
from spsa.db.schema import Json
from spsa.db.sql_files import named_statements
from spsa.errors import IllegalTransition, LeaseLost, NameTaken, ReportConflict
from spsa.lifecycle import BatchStatus

Outcome = Literal["accepted", "already", "conflict", "lost"]
"""The response to a report; worker_functions.sql defines the words."""

CLAIMED_TYPES = dict.fromkeys(("terms", "plus_options", "minus_options", "variants"), Json)
"""The columns of `spsa_claimed` that hold JSON."""


def statement(name: str, **types: Any) -> sa.TextClause:
    """A statement of worker_statements.sql by its name."""
    text = sa.text(named_statements("worker_statements.sql")[name])
    return text.columns(**types) if types else text  # type: ignore[return-value]


def random_fraction(claim_id: str) -> float:
    """The random number in [0, 1) that chooses the run of this claim; repeated, it is the same."""
    return Random(claim_id).random()


def _batch_name(claim: Claim) -> str:
    """The batch of a claim, for messages."""
    return f"iteration {claim.iteration_number} batch {claim.seq} of run {claim.run_name}"


class WorkerQueries(Database):
    """Register, claim, renew, report, release and fail."""

    def register_worker(self, info: WorkerInfo) -> RegisteredWorker:
        """Insert or update the worker's row.

        Raises:
            NameTaken: a worker of another machine has this name.
            OutOfRange: a number or a text is outside its limits.
        """
        facts: dict[str, Any] = {name: getattr(info, name) for name in _FACTS}
        facts["provides"] = provided_text(info.provides)
        limits.check_values("spsa_worker", facts)
        for column in ("only_runs", "not_runs"):
            names: tuple[str, ...] = getattr(info, column)
            limits.check_names("spsa_worker", column, names)
            facts[column] = json.dumps(dict.fromkeys(names, True)) if names else None
        limits.check_values("spsa_machine", {"name": info.host})
        worker_id, machine = self._register({**facts, "host": info.host}, info.secret)
        if worker_id is None:
            raise NameTaken(
                f"the worker name {info.name!r} belongs to the machine {machine!r}, and this one "
                "has another secret: choose another --name"
            )
        return RegisteredWorker(id=worker_id, machine=machine, secret=info.secret)

    def touch_worker(
        self, worker: RegisteredWorker, nps: float | None = None, scale: float | None = None
    ) -> str | None:
        """Record that the worker is alive, an engine's nodes per second on it, and its scale.

        Returns why its machine gets no batches; None if it does.
        """
        facts = {"nps": nps, "scale": scale}
        limits.check_values("spsa_worker", facts)
        return self._touch(worker, facts)

    def claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Claim | None:
        """Lease one ready batch; None when there is no work now.

        A claim that already has a batch, as after an unknown outcome, gets the same one.

        Raises:
            LeaseLost: the batch of this claim was already reported.
            IllegalTransition: this worker is not registered.
        """
        limits.check_lease(lease_seconds)
        limits.check_values("spsa_batch", {"claim_id": claim_id})
        row = self._claim(claim_id, worker, lease_seconds)
        if row is None:
            return None
        if row.status != BatchStatus.LEASED:
            raise LeaseLost(f"claim {claim_id} was already reported; new work needs a new claim")
        return claim_of(row, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """Renew the leases of these claims; returns the claims that are still held.

        A claim that is missing is lost: the worker has to drop its games.
        """
        limits.check_lease(lease_seconds)
        limits.check_renewed(len(claim_ids))
        return frozenset(self._renew(claim_ids, lease_seconds)) if claim_ids else frozenset()

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        """Report the result of a batch: it counts in its batch and its iteration, or in neither.

        Raises:
            LeaseLost: another claim has the batch, or it is abandoned; the games do not count.
            ReportConflict: this claim was already reported with other counts.
            OutOfRange: a number of the result is outside its limits.
        """
        columns = result_columns(result)
        limits.check_values("spsa_batch", columns)
        for games in result.voids.values():
            limits.check_values("spsa_batch", {"void_games": games})
        outcome = self._report(claim, columns)
        if outcome == "lost":
            raise LeaseLost(
                f"{_batch_name(claim)} is no longer held by claim {claim.claim_id}, or abandoned"
            )
        if outcome == "conflict":
            raise ReportConflict(f"{_batch_name(claim)} was already reported with other counts")
        return outcome

    def release(self, claim: Claim) -> None:
        """Return a batch unplayed; the attempt does not count. A lost claim changes nothing."""
        with self._write() as connection:
            connection.execute(_RELEASE, _ids(claim))

    def fail(
        self,
        claim: Claim,
        reason: str,
        void_games: int = 0,
        sha256: str | None = None,
        kept_voids: Sequence[KeptVoid] = (),
    ) -> None:
        """Return a batch that this machine cannot play, with the reason and some void games.

        Other machines may try it. The master decides when it was tried often enough.

        Args:
            sha256: the binary that failed, where that is known.
        """
        values = {"void_games": void_games, "void_log": void_log(kept_voids)}
        limits.check_values("spsa_batch", {"last_error": reason, **values})
        limits.check_values("spsa_failure", {"sha256": sha256})
        self._fail(claim, {"reason": reason, "sha256": sha256, **values})

    def engine_bytes(self, sha256: str) -> bytes | None:
        """The bytes of a binary, a book or a side file; None if the database does not hold them."""
        with self._read() as connection:
            content: bytes | None = connection.scalar(_ENGINE_BYTES, {"sha256": sha256})
            return content

    def work_left(self) -> list[tuple[str, tuple[str, ...]]]:
        """The runs that may still need games, even if no batch is ready now.

        A run is there once for each list of words that its open iterations require of a worker.
        """
        with self._read() as connection:
            return [(row.run, words_of(row.requires)) for row in connection.execute(_WORK_LEFT)]

    def _register(self, facts: Mapping[str, Any], secret: str) -> tuple[int | None, str]:
        hashed = _hashed(secret)
        values = {**facts, "secret_sha256": hashed}
        with self._write() as connection:
            if not connection.scalar(_KNOWN, values):
                machines, workers = connection.execute(_REGISTERED_WITHIN_A_DAY).one()
                limits.check_registrations(machines, workers)
            machine = connection.scalar(_OWN_MACHINE, values)
            if machine is None:  # a new machine; if its name is taken, it gets a longer one
                connection.execute(_NEW_MACHINE, values)
                connection.execute(
                    _NEW_MACHINE, {**values, "host": f"{facts['host']}-{hashed[:8]}"}
                )
                machine = connection.scalar(_OWN_MACHINE, values)
            values["machine"] = machine
            if namesake := connection.scalar(_NAMESAKE, values):
                return None, str(namesake)
            worker_id = connection.scalar(_WORKER, values)
            if worker_id is None:
                machine = connection.scalar(_OWNER, values)
            return worker_id, str(machine)

    def _touch(self, worker: RegisteredWorker, facts: Mapping[str, Any]) -> str | None:
        with self._write() as connection:
            machine = machine_of(connection, worker)
            values = {"worker_id": worker.id, **facts, "machine": machine}
            connection.execute(_TOUCH, values)
            reason: str | None = connection.scalar(_SET_ASIDE, values)
            return reason

    def _claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Any:
        with self._write() as connection:
            machine = machine_of(connection, worker)
            if machine is None:
                raise IllegalTransition(f"worker {worker.id} is not registered by this machine")
            row = connection.execute(_CLAIMED, {"claim_id": claim_id}).one_or_none()
            if row is None and _lease_batch(
                connection, claim_id, machine, worker.id, lease_seconds
            ):
                row = connection.execute(_CLAIMED, {"claim_id": claim_id}).one()
            return row

    def _renew(self, claim_ids: Sequence[str], lease_seconds: float) -> list[str]:
        lease = {"lease_seconds": lease_seconds}
        with self._write() as connection:
            renewed = [
                connection.scalar(_RENEW, {"claim_id": claim_id, **lease}) for claim_id in claim_ids
            ]
            return [claim_id for claim_id in renewed if claim_id is not None]

    def _report(self, claim: Claim, columns: Mapping[str, Any]) -> Outcome:
        values = {**columns, **_ids(claim)}
        with self._write() as connection:
            outcome: Outcome | None = connection.scalar(_REPORT, values)
            return outcome or connection.scalar(_REPORT_AGAIN, values) or "lost"

    def _fail(self, claim: Claim, values: Mapping[str, Any]) -> None:
        values = {**values, **_ids(claim)}
        with self._write() as connection:
            worker_id = connection.scalar(_FAIL, values)
            if worker_id is not None:
                failed = {**values, "worker_id": worker_id}
                _record_failure(connection, failed)
                connection.execute(_FAILED_VOIDS, failed)


_FACTS = ("name", "platform", "cores", "concurrency", "version", "confinement")
_KNOWN, _NAMESAKE = statement("register_worker.known"), statement("register_worker.namesake")
_REGISTERED_WITHIN_A_DAY = statement("check_registrations")
_OWN_MACHINE = statement("register_worker.own_machine")
_NEW_MACHINE = statement("register_worker.new_machine")
_WORKER, _OWNER = statement("register_worker.worker"), statement("register_worker.owner")
_MACHINE_OF = statement("machine_of")
_TOUCH, _SET_ASIDE = statement("touch_worker"), statement("touch_worker.set_aside")
_NEXT_RUN = statement("next_run")
_CLAIMED = statement("claim.claimed", **CLAIMED_TYPES)
_SEVERAL_RUNS = statement("lease_batch.several_runs")
_ITERATIONS, _FREE = statement("lease_batch.iterations"), statement("lease_batch.free")
_LEASE, _BEGIN = statement("lease_batch.lease"), statement("lease_batch.begin")
_RENEW = statement("renew")
_REPORT, _REPORT_AGAIN = statement("report"), statement("report.again")
_RELEASE, _FAIL, _FAILED_VOIDS = map(statement, ("release", "fail", "fail.voids"))
_NOTE_FAILURE, _FAILED_BY = statement("note_failure"), statement("note_failure.machines")
_ENGINE_BYTES, _WORK_LEFT = statement("engine_bytes"), statement("work_left")


def _hashed(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _ids(claim: Claim) -> dict[str, Any]:
    return {"batch_id": claim.batch_id, "claim_id": claim.claim_id}


def machine_of(connection: sa.Connection, worker: RegisteredWorker) -> str | None:
    values = {"worker_id": worker.id, "secret_sha256": _hashed(worker.secret)}
    machine: str | None = connection.scalar(_MACHINE_OF, values)
    return machine


def _lease_batch(
    connection: sa.Connection, claim_id: str, machine: str, worker_id: int, lease_seconds: float
) -> bool:
    """Lease the first free batch to a claim, if there is one."""
    asked = {"worker_id": worker_id, "draw": random_fraction(claim_id)}
    run_id = connection.scalar(_NEXT_RUN, asked) if connection.scalar(_SEVERAL_RUNS) else None
    playable = connection.scalars(_ITERATIONS, {"worker_id": worker_id, "run_id": run_id}).all()
    for iteration_id in playable:
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
        expired = {"batch_id": free.id, "worker_id": free.left_by, "sha256": None, "reason": None}
        _record_failure(connection, expired)
    connection.execute(_LEASE, {**lease, "batch_id": free.id})


def _record_failure(connection: sa.Connection, values: Mapping[str, Any]) -> None:
    connection.execute(_NOTE_FAILURE, values)
    connection.execute(_FAILED_BY, values)
