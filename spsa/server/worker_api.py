"""The requests of workers: what each does, and how it is refused.

They are the queries that workers with the database's URL run themselves.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.responses import JSONResponse, Response

from spsa.db import Store
from spsa.db.tables import Machine
from spsa.errors import (
    DatabaseUnreachable,
    NotPermitted,
    OutOfRange,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import (
    CONFLICTS,
    BatchFailure,
    BatchReport,
    BuildResult,
    Claim,
    ClaimRequest,
    HeldBuild,
    HeldClaim,
    LeasedBuild,
    OpenWork,
    RegisteredWorker,
    RenewRequest,
    Touch,
    WorkerInfo,
)

PROTOCOL_HEADER = "X-Spsa-Protocol"
TOO_MANY_SECONDS = 10
"""When a machine that has all it may have should ask again."""

UNREACHABLE_SECONDS = 5

log = logging.getLogger(__name__)


class Refused(Exception):
    """A request that is not carried out; `retry_after` are seconds."""

    def __init__(
        self,
        status: int,
        kind: str,
        sentence: str,
        field: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.body = {"error": sentence, "field": field, "kind": kind}
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        super().__init__(sentence)

    @property
    def response(self) -> Response:
        return JSONResponse(self.body, self.status, self.headers)


def out_of_range(sentence: str, field: str) -> Refused:
    return Refused(422, "out_of_range", sentence, field)


def not_permitted(sentence: str) -> Refused:
    return Refused(403, "not_permitted", sentence)


def refused_by(path: str, error: TuningError) -> Refused:
    """What a client is told of an error of the store.

    A message of the database may name logins and addresses: the log gets it, the client does not.
    """
    for kind, conflict in CONFLICTS.items():
        if isinstance(error, conflict):
            return Refused(409, kind, str(error))
    if isinstance(error, OutOfRange):
        return Refused(422, "out_of_range", str(error), error.field)
    if isinstance(error, TooManyRequests):
        return Refused(429, "too_many", str(error), retry_after=TOO_MANY_SECONDS)
    log.warning("%s: %s", path, error)
    if isinstance(error, DatabaseUnreachable | SchemaMismatch | NotPermitted):
        sentence = "the server cannot use its database now; ask again later"
        return Refused(503, "unreachable", sentence, retry_after=UNREACHABLE_SECONDS)
    return Refused(500, "defect", "the database could not do this; the server's log says why")


CarryOut = Callable[[Store, Machine, Any], Any]


@dataclass(frozen=True, slots=True)
class JsonRequest:
    """One request: `carry_out` gets the store, the machine that sent it, and its body.

    What `carry_out` returns is the field `name` of the response, or without a name all of it.
    """

    path: str
    body: type | None
    name: str | None
    carry_out: CarryOut

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


def _request(
    path: str, body: type | None, name: str | None = None
) -> Callable[[CarryOut], JsonRequest]:
    return partial(JsonRequest, f"/worker/{path}", body, name)


def _worker(machine: Machine, worker_id: int) -> RegisteredWorker:
    return RegisteredWorker(id=worker_id, machine=machine.name)


@_request("claim", ClaimRequest, "claim")
def _claim(store: Store, machine: Machine, asked: ClaimRequest) -> Claim | None:
    """Lease one free batch; null if there is none now."""
    worker = _worker(machine, asked.worker_id)
    return store.claim(asked.claim_id, worker, asked.lease_seconds)


@_request("report", BatchReport, "outcome")
def _report(store: Store, _machine: Machine, sent: BatchReport) -> str:
    """Report the result of a batch; it counts once."""
    return store.report(sent.held, sent.result)


@_request("renew", RenewRequest, "held")
def _renew(store: Store, machine: Machine, asked: RenewRequest) -> tuple[str, ...]:
    """Renew leases; hear which claims are still held."""
    worker = _worker(machine, asked.worker_id)
    return tuple(sorted(store.renew(worker, asked.claim_ids, asked.lease_seconds)))


@_request("touch", Touch, "set_aside")
def _touch(store: Store, machine: Machine, touch: Touch) -> str | None:
    """Say that a worker is alive; hear why its machine gets no batches, if it gets none."""
    return store.touch_worker(_worker(machine, touch.worker_id), touch)


@_request("register", WorkerInfo)
def _register(store: Store, machine: Machine, info: WorkerInfo) -> RegisteredWorker:
    """Register a worker, or register it again."""
    return store.register_worker(info, machine.name)


@_request("release", HeldClaim)
def _release(store: Store, _machine: Machine, held: HeldClaim) -> None:
    """Return a batch unplayed."""
    store.release(held)


@_request("fail", BatchFailure)
def _fail(store: Store, _machine: Machine, sent: BatchFailure) -> None:
    """Return a batch that this machine cannot play."""
    store.fail(sent.held, sent.failure)


@_request("work", None, "work")
def _work(store: Store, _machine: Machine, _body: None) -> list[OpenWork]:
    """Ask which runs may still need games."""
    return store.work_left()


@_request("builds/claim", ClaimRequest, "build")
def _claim_build(store: Store, machine: Machine, asked: ClaimRequest) -> LeasedBuild | None:
    """Lease two engines to be built; null if none are wanted."""
    refuse_unless_builder(machine)
    worker = _worker(machine, asked.worker_id)
    return store.claim_build(asked.claim_id, worker, asked.lease_seconds)


@_request("builds/renew", HeldBuild, "held")
def _renew_build(store: Store, _machine: Machine, held: HeldBuild) -> bool:
    """Renew the lease of a build; hear whether it is still held."""
    return store.renew_build(held, held.lease_seconds)


@_request("builds/fail", HeldBuild)
def _fail_build(store: Store, _machine: Machine, held: HeldBuild) -> None:
    """Return a build; without a reason, as if it had not been claimed."""
    store.fail_build(held, held.reason)


@_request("builds/publish", BuildResult, "outcome")
def _publish_build(store: Store, _machine: Machine, result: BuildResult) -> str:
    """Publish the two engines that were sent."""
    return store.publish_build(result)


REQUESTS = (
    *(_claim, _report, _renew, _touch, _register, _release, _fail, _work),
    *(_claim_build, _renew_build, _fail_build, _publish_build),
)
"""Those first that are sent most often."""


def refuse_unless_builder(machine: Machine) -> None:
    if not machine.may_build:
        raise not_permitted(f"the machine {machine.name!r} was invited without --may-build")
