"""What a worker asks of the database: the statements of protocol.sql in transactions.

A direct worker asks this itself, the server for remote ones. A request is one transaction. After
an unknown outcome it may be sent again, because the worker chooses the id of a claim before it
asks.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import joinedload

from spsa import protocol
from spsa.core.game_settings import GameSettings
from spsa.core.json_values import as_written, checked, to_json
from spsa.db.base import counts_of, execute, not_registered
from spsa.db.build_queries import claim_build, publish_build, renew_build, return_build
from spsa.db.database import Database, rows
from spsa.db.tables import Iteration, Run
from spsa.errors import (
    LeaseLost,
    NameTaken,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    TooManyRequests,
    revoked,
)
from spsa.lifecycle import BatchStatus, IterationStatus
from spsa.text import plural


class WorkerQueries(Database):
    def ask(
        self, request: protocol.Request[protocol.Reply], machine: str | None = None
    ) -> protocol.Reply:
        """Answer a worker in one transaction; the requests say what each of them raises.

        `machine` is the one whose token the worker has; None for a direct worker, whose machine is
        the one with its secret.
        """
        begin = self._read if isinstance(request, protocol.WorkLeft) else self._write
        asked: Any = checked(request)
        with begin() as connection:
            if isinstance(asked, protocol.WorkerInfo):
                reply: Any = _register(connection, asked, machine)
            elif isinstance(asked, protocol.ClaimRequest):
                reply = self._claim(connection, asked)
            else:
                reply = _ANSWERS[type(asked)](connection, asked)
        answer: protocol.Reply = reply
        return answer

    def file(self, sha256: str) -> bytes | None:
        """The bytes of a binary, a book or a side file; None if the database does not hold them."""
        with self._read() as connection:
            content = execute(connection, "file", sha256=sha256).scalar()
            return None if content is None else bytes(content)  # PostgreSQL's is a memoryview

    def _claim(
        self, connection: sa.Connection, request: protocol.ClaimRequest
    ) -> protocol.Claim | None:
        row = _leased(connection, request) or _claimed_before(connection, request)
        if row is None:
            return None
        if (details := self._details.get(row.iteration_id)) is None:
            details = self._details[row.iteration_id] = shared(connection, row.iteration_id)
            for oldest in list(self._details)[:-_DETAILS_KEPT]:
                self._details.pop(oldest, None)
        return claim_of(details, row, request.worker_id, request.claim_id)


def _register(
    connection: sa.Connection, info: protocol.WorkerInfo, machine: str | None
) -> protocol.RegisteredWorker:
    """Insert or update the worker's row."""
    facts = {**to_json(info), "provides": protocol.provided_text(info.provides)}
    for name in ("only_runs", "not_runs"):  # as keys, which both databases can search
        names = dict.fromkeys(getattr(info, name))
        facts[name] = json.dumps(names) if names else None
    own = machine or _own_machine(connection, info)
    execute(connection, "register.lock", machine=own)
    execute(connection, "register.forget", machine=own, name=info.name)
    active = execute(connection, "register.active", machine=own, name=info.name).one()
    if active.namesakes:  # commands take the name of either
        raise NameTaken(f"there is a machine named {info.name!r}: choose another --name")
    if active.workers >= protocol.MAX_WORKERS:
        raise TooManyRequests(
            f"{protocol.MAX_WORKERS} workers of the machine {own!r} are active already"
        )
    most = min(protocol.MAX_SLOTS, protocol.SLOTS_PER_CORE * info.cores)
    if machine is not None and active.slots + info.concurrency > most:
        raise TooManyRequests(
            f"the machine {own!r} has {plural(info.cores, 'core')}, enough for {most} slots; "
            f"its other workers have {active.slots}, and this one has {info.concurrency}"
        )
    worker_id = execute(connection, "register.worker", machine=own, **facts).scalar()
    if worker_id is None:
        raise NameTaken(f"another machine has a worker named {info.name!r}: choose another --name")
    return protocol.RegisteredWorker(id=worker_id, machine=own)


def _touch(connection: sa.Connection, touch: protocol.Touch) -> str | None:
    row = execute(connection, "touch", **to_json(touch)).one_or_none()
    if row is None:
        raise not_registered(touch.worker_id)
    reason: str | None = row.set_aside
    return reason


def _renew(connection: sa.Connection, request: protocol.RenewRequest) -> tuple[str, ...]:
    return tuple(sorted(execute(connection, "renew", **to_json(request)).scalars()))


def _report(connection: sa.Connection, report: protocol.BatchReport) -> protocol.ReportOutcome:
    held, result = report.held, report.result
    values = {**to_json(held), **_columns(result), "games": result.tally.games}
    values["iteration_id"] = execute(connection, "report", **values).scalar()
    if values["iteration_id"] is None:
        return _reported_before(connection, held, values)
    if execute(connection, "report.count", **values).scalar() is None:
        # which takes the result out of the batch again
        raise LeaseLost("the match is decided, or its iteration was given up")
    return "accepted"


def _reported_before(
    connection: sa.Connection, held: protocol.HeldClaim, values: Mapping[str, Any]
) -> protocol.ReportOutcome:
    """What became of a result that no leased batch takes."""
    row = execute(connection, "report.again", **values).one_or_none()
    if row is None:
        raise LeaseLost("its lease ran out or was withdrawn, so another worker plays it")
    if row.outcome == "leased":
        raise OutOfRange(
            f"BatchReport.result.tally has {values['games']} games; the batch has {row.games}",
            "BatchReport.result.tally",
        )
    if row.outcome == "conflict":
        raise ReportConflict(f"batch row {held.batch_id} was already reported with other counts")
    return "already"


def _release(connection: sa.Connection, held: protocol.HeldClaim) -> None:
    nothing = {"reason": None, "void_games": 0, "void_log": None}
    execute(connection, "give_back", **to_json(held), **nothing, attempts=1)


def _fail(connection: sa.Connection, failed: protocol.BatchFailure) -> None:
    """The master decides when a batch was tried often enough."""
    held, failure = failed.held, failed.failure
    voids = {"void_games": failure.void_games}
    said = {"reason": failure.reason, "void_log": _void_log(failure.kept_voids), **voids}
    returned = execute(connection, "give_back", **to_json(held), **said, attempts=0)
    if (iteration_id := returned.scalar()) is not None:
        _record_failure(connection, held.batch_id, held.worker_id, failure)
        execute(connection, "fail.voids", **voids, iteration_id=iteration_id)
        execute(connection, "fail.worker", **voids, worker_id=held.worker_id)


def _work_left(connection: sa.Connection, _: protocol.WorkLeft) -> tuple[protocol.OpenWork, ...]:
    return tuple(
        protocol.OpenWork(
            run=row.run, requires=protocol.words_of(row.requires), has_master=bool(row.has_master)
        )
        for row in execute(connection, "work_left")
    )


_ANSWERS: Mapping[type, Callable[[sa.Connection, Any], Any]] = {
    protocol.Touch: _touch,
    protocol.RenewRequest: _renew,
    protocol.BatchReport: _report,
    protocol.HeldClaim: _release,
    protocol.BatchFailure: _fail,
    protocol.WorkLeft: _work_left,
    protocol.BuildClaim: claim_build,
    protocol.BuildRenewal: renew_build,
    protocol.BuildReturn: return_build,
    protocol.BuildResult: publish_build,
}

_DETAILS_KEPT = 64


def _own_machine(connection: sa.Connection, info: protocol.WorkerInfo) -> str:
    """The machine of a direct worker; if the name of a new one is taken, it gets a longer one."""
    hashed = hashlib.sha256(info.secret.encode()).hexdigest()
    for name in ("", info.host, f"{info.host}-{hashed[:8]}"):
        if name:
            execute(connection, "register.new_machine", host=name, secret_sha256=hashed)
        found = execute(connection, "register.machine", secret_sha256=hashed).one_or_none()
        if found is not None and found.is_revoked:
            raise NotPermitted(revoked(found.name))
        if found is not None:
            return str(found.name)
    remedy = "remove machine-secret from the cache folder of this machine, so that it is a new one"
    raise NameTaken(f"the machine names {info.host!r} and {name!r} are taken; {remedy}")


def _columns(result: protocol.BatchResult) -> dict[str, Any]:
    """The values of the columns of a batch for its result, among others."""
    return {
        **to_json(result),
        **counts_of(result.tally),
        "void_games": sum(result.voids.values()),
        "voids": json.dumps(dict(result.voids)),
        "void_log": _void_log(result.kept_voids),
    }


def _void_log(kept: Sequence[protocol.KeptVoid]) -> str | None:
    """As many of these as fit their column, as JSON; None for none."""
    texts = (json.dumps(to_json(tuple(kept[:n]))) for n in range(len(kept), 0, -1))
    return next((text for text in texts if len(text) <= protocol.KEPT_VOIDS_LENGTH), None)


def _leased(connection: sa.Connection, request: protocol.ClaimRequest) -> Any:
    """Lease the first free batch of the iterations in their order; its row, or None."""
    found = execute(connection, "claim.iterations", worker_id=request.worker_id).all()
    if not found:
        raise not_registered(request.worker_id)
    if found[0].held >= 2 * found[0].concurrency + 2:
        if (again := _claimed_before(connection, request)) is not None:
            return again
        raise TooManyRequests(f"worker {request.worker_id} holds {found[0].held} batches already")
    for row in _in_order(connection, [row for row in found if row.id is not None], request):
        for statement in ["claim.tried"] * bool(row.has_tried) + ["claim"]:
            if (batch := _lease(connection, row, statement, request)) is not None:
                return batch
    return None


def _in_order(
    connection: sa.Connection, found: Sequence[Any], request: protocol.ClaimRequest
) -> Iterator[Any]:
    """The iterations by priority, and those of equal priority in the order in which runs are drawn.

    A run whose batches this machine may not have is drawn like the others, and the next draw is
    among the rest.
    """
    chance, slots = Random(request.claim_id), None
    for _, level in groupby(found, key=lambda row: row.priority):
        runs: dict[int, list[Any]] = {}
        for row in level:
            runs.setdefault(row.run_id, []).append(row)
        while runs:
            if slots is None and len(runs) > 1:
                slots = {row.run_id: row.slots for row in execute(connection, "claim.slots")}
            shares = {run: own[0].share for run, own in runs.items()}
            yield from runs.pop(_next_run(shares, slots or {}, chance))


def _next_run(shares: Mapping[int, float], slots: Mapping[int, int], chance: Random) -> int:
    """The run that is served next, drawn at random among those with free batches.

    A run is entitled to its share of all slots in use, of which it uses `slots`; its deficit is its
    weight in the draw, so that no run starves if there are fewer slots than runs.
    """
    used, whole = sum(slots.get(run, 0) for run in shares), sum(shares.values())
    deficits = {
        run: max(0.0, (1 + used) * share / whole - slots.get(run, 0))
        for run, share in sorted(shares.items())
    }
    return chance.choices(list(deficits), list(deficits.values()))[0]


def _lease(
    connection: sa.Connection, iteration: Any, statement: str, request: protocol.ClaimRequest
) -> Any:
    wanted = {**to_json(request), "iteration_id": iteration.id}
    row = execute(connection, statement, **wanted).one_or_none()
    if row is not None and row.expired_worker_id is not None:
        _record_failure(connection, row.id, row.expired_worker_id, None)
    if row is not None and iteration.status == IterationStatus.PENDING:
        execute(connection, "claim.begin", iteration_id=iteration.id)
    return row


def _record_failure(
    connection: sa.Connection, batch_id: int, worker_id: int, failure: protocol.Failure | None
) -> None:
    """Record that a worker's machine failed a batch, or without a failure, lost its lease."""
    said: dict[str, Any] = {"batch_id": batch_id, "worker_id": worker_id}
    said |= {name: getattr(failure, name, None) for name in ("sha256", "reason")}
    execute(connection, "fail.machine", failures=int(failure is not None), **said)


def _claimed_before(connection: sa.Connection, request: protocol.ClaimRequest) -> Any:
    """The row of a claim that was answered before, but the answer was lost; None without one."""
    row = execute(connection, "claim.again", claim_id=request.claim_id).one_or_none()
    its = (BatchStatus.LEASED, request.worker_id)
    if row is not None and (row.status, row.worker_id) != its:
        raise LeaseLost(
            f"claim {request.claim_id} was already reported; new work needs a new claim"
        )
    return row


_OF_ITERATION = ("run_id", "iteration_number", "game_settings", "variants")


def shared(connection: sa.Connection, iteration_id: int) -> Mapping[str, Any]:
    """What all claims of an iteration have in common."""
    run = joinedload(Iteration.run).load_only(Run.name, Run.seed)
    it = rows(connection, sa.select(Iteration).where(Iteration.id == iteration_id).options(run))[0]
    plus, minus = (
        protocol.ClaimedEngine(
            sha256=getattr(it, f"{side}_sha256"),
            path=getattr(it, f"{side}_engine_path"),
            options=getattr(it, f"{side}_options"),
            files=getattr(it, f"{side}_files"),
        )
        for side in ("plus", "minus")
    )
    return {
        "run_name": it.run.name,
        "run_seed": it.run.seed,
        **{name: getattr(it, name) for name in _OF_ITERATION},
        "plus": plus,
        "minus": minus,
    }


def claim_of(
    details: Mapping[str, Any], batch: Any, worker_id: int, claim_id: str
) -> protocol.Claim:
    settings: GameSettings = details["game_settings"]
    with as_written("a column `time_control`"):
        own = {"game_settings": settings.under(settings.played[batch.time_control])}
    return protocol.Claim(
        **{**details, **own},
        worker_id=worker_id,
        claim_id=claim_id,
        batch_id=batch.id,
        seq=batch.seq,
        attempt=batch.attempt,
        first_pair=batch.first_pair,
        pairs=batch.games // 2,
        seed=batch.seed,
    )
