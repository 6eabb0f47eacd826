"""The table of the workers' requests with JSON in and out, and its description as OpenAPI.

They are the queries that workers with the database's URL run themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal

from spsa import __version__
from spsa.core.json_values import schema
from spsa.core.limits import Hash
from spsa.db.batch_tables import Machine
from spsa.db.store import Store
from spsa.protocol import (
    PROTOCOL,
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
from spsa.server.worker_requests import PROTOCOL_HEADER, not_permitted


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRequest:
    """One request: `carry_out` gets the store, the machine that sent it, and its body.

    `response` is the type of what `carry_out` returns. It is the response if it is a dataclass, and
    its field `name` otherwise.
    """

    path: str
    told: str
    carry_out: Callable[[Store, Machine, Any], Any]
    body: type | None = None
    name: str | None = None
    response: Any = None

    @property
    def method(self) -> str:
        return "GET" if self.body is None else "POST"


def _worker(machine: Machine, worker_id: int) -> RegisteredWorker:
    return RegisteredWorker(id=worker_id, machine=machine.name)


def _register(store: Store, machine: Machine, info: WorkerInfo) -> RegisteredWorker:
    return store.register_worker(info, machine.name)


def _touch(store: Store, machine: Machine, touch: Touch) -> str | None:
    return store.touch_worker(_worker(machine, touch.worker_id), touch.nps, touch.scale)


def _claim(store: Store, machine: Machine, asked: ClaimRequest) -> Claim | None:
    worker = _worker(machine, asked.worker_id)
    return store.claim(asked.claim_id, worker, asked.lease_seconds)


def _renew(store: Store, machine: Machine, asked: RenewRequest) -> tuple[str, ...]:
    worker = _worker(machine, asked.worker_id)
    return tuple(sorted(store.renew(worker, asked.claim_ids, asked.lease_seconds)))


def _claim_build(store: Store, machine: Machine, asked: ClaimRequest) -> LeasedBuild | None:
    if not machine.may_build:
        raise not_permitted(f"the machine {machine.name!r} was invited without --may-build")
    worker = _worker(machine, asked.worker_id)
    return store.claim_build(asked.claim_id, worker, asked.lease_seconds)


REQUESTS: Sequence[JsonRequest] = (
    JsonRequest(
        path="/worker/register",
        told="Register a worker, or register it again.",
        body=WorkerInfo,
        carry_out=_register,
        response=RegisteredWorker,
    ),
    JsonRequest(
        path="/worker/touch",
        told="Say that a worker is alive; hear why its machine gets no batches, if it gets none.",
        body=Touch,
        carry_out=_touch,
        name="set_aside",
        response=str | None,
    ),
    JsonRequest(
        path="/worker/claim",
        told="Lease one free batch; null if there is none now.",
        body=ClaimRequest,
        carry_out=_claim,
        name="claim",
        response=Claim | None,
    ),
    JsonRequest(
        path="/worker/renew",
        told="Renew leases; hear which claims are still held.",
        body=RenewRequest,
        carry_out=_renew,
        name="held",
        response=tuple[str, ...],
    ),
    JsonRequest(
        path="/worker/report",
        told="Report the result of a batch; it counts once.",
        body=BatchReport,
        carry_out=lambda store, _machine, sent: store.report(sent.held, sent.result),
        name="outcome",
        response=Literal["accepted", "already"],
    ),
    JsonRequest(
        path="/worker/release",
        told="Return a batch unplayed.",
        body=HeldClaim,
        carry_out=lambda store, _machine, held: store.release(held),
    ),
    JsonRequest(
        path="/worker/fail",
        told="Return a batch that this machine cannot play.",
        body=BatchFailure,
        carry_out=lambda store, _machine, sent: store.fail(sent.held, sent.failure),
    ),
    JsonRequest(
        path="/worker/work",
        told="Ask which runs may still need games.",
        carry_out=lambda store, _machine, _body: store.work_left(),
        name="work",
        response=tuple[OpenWork, ...],
    ),
    JsonRequest(
        path="/worker/builds/claim",
        told="Lease two engines to be built; null if none are wanted.",
        body=ClaimRequest,
        carry_out=_claim_build,
        name="build",
        response=LeasedBuild | None,
    ),
    JsonRequest(
        path="/worker/builds/renew",
        told="Renew the lease of a build; hear whether it is still held.",
        body=HeldBuild,
        carry_out=lambda store, _machine, held: store.renew_build(held, held.lease_seconds),
        name="held",
        response=bool,
    ),
    JsonRequest(
        path="/worker/builds/fail",
        told="Return a build; without a reason, as if it had not been claimed.",
        body=HeldBuild,
        carry_out=lambda store, _machine, held: store.fail_build(held, held.reason),
    ),
    JsonRequest(
        path="/worker/builds/publish",
        told="Publish the two engines that were sent.",
        body=BuildResult,
        carry_out=lambda store, _machine, result: store.publish_build(result),
        name="outcome",
        response=Literal["accepted", "already", "lost"],
    ),
)


FILE = "/worker/files/{sha256}"
UPLOAD = "/worker/builds/{build_id}/{claim_id}/{side}"

_ERRORS = {
    "400": "the request is cut off or no HTTP",
    "401": "the token is unknown",
    "403": "the machine was revoked, or may not do this",
    "404": "there is no such file",
    "408": "the body did not arrive in time",
    "409": "the claim is lost, or contradicts what is known",
    "413": "the body is too large",
    "422": "a value is of another type than declared, or outside its limits",
    "426": "the worker speaks another version of the protocol",
    "429": "the machine has all that it may have; Retry-After says when to ask again",
    "503": "the server cannot use its database now; Retry-After says when to ask again",
}
_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "field": {"type": ["string", "null"]},
        "kind": {"type": "string"},
    },
    "required": ["error", "field", "kind"],
}
_BYTES: Mapping[str, Any] = {"application/octet-stream": {"schema": {}}}


def openapi() -> Mapping[str, Any]:
    """The requests in the form of OpenAPI 3.1."""
    paths: dict[str, Any] = {asked.path: {asked.method.lower(): _told(asked)} for asked in REQUESTS}
    paths[FILE] = {
        "get": _operation("Get a file that a claim of this machine names.", _BYTES)
        | {"parameters": [_HEADER, _in_path("sha256", {"type": "string", **Hash().schema()})]}
    }
    built = _json({"sha256": str, "size": int})
    paths[UPLOAD] = {
        "put": _operation("Send one engine of a build before it is published.", built)
        | {
            "parameters": [
                _HEADER,
                _in_path("build_id", {"type": "integer", "minimum": 0}),
                _in_path("claim_id", {"type": "string", "minLength": 1, "maxLength": 64}),
                _in_path("side", {"enum": ["plus", "minus"]}),
            ],
            "requestBody": {"content": _BYTES, "required": True},
        }
    }
    version = _json({"version": str, "protocol": int, "sha256": str})
    paths["/worker/version"] = {"get": _public("Ask which worker this server needs.", version)}
    paths["/worker.pyz"] = {"get": _public("Get that worker.", _BYTES)}
    return {
        "openapi": "3.1.0",
        "info": {"title": "spsa-master serve: requests of workers", "version": __version__},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


_HEADER = {
    "name": PROTOCOL_HEADER,
    "in": "header",
    "required": False,
    "schema": {"const": str(PROTOCOL)},
}


def _in_path(name: str, kind: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": kind}


def _told(asked: JsonRequest) -> Mapping[str, Any]:
    response = asked.response if asked.name is None else {asked.name: asked.response}
    operation = _operation(asked.told, _json(response or {})) | {"parameters": [_HEADER]}
    if asked.body is None:
        return operation
    body = {"content": {"application/json": {"schema": schema(asked.body)}}, "required": True}
    return operation | {"requestBody": body}


def _operation(summary: str, content: Mapping[str, Any]) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    refusals = {code: {"description": text, "content": error} for code, text in _ERRORS.items()}
    found = _public(summary, content)
    return {**found, "responses": found["responses"] | refusals, "security": [{"token": []}]}


def _public(summary: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "summary": summary,
        "responses": {"200": {"description": "done", "content": content}},
    }


def _json(response: Any) -> Mapping[str, Any]:
    """The content of a response: a dataclass, or the types of fields by their names."""
    kind = schema(response) if is_dataclass(response) else _fields(response)
    return {"application/json": {"schema": kind}}


def _fields(types: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = {name: schema(kind) for name, kind in types.items()}
    return {"type": "object", "properties": properties, "required": list(types)}
