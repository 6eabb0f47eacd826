"""What a worker may ask, over HTTP; the other way is the database.

`RemoteStore` raises what the queries of the database raise, so that a worker does not care which of
the two it has.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from spsa.builds.artifacts import MAX_BYTES
from spsa.core.json_values import from_json, to_json
from spsa.errors import DatabaseUnreachable, LeaseLost, TuningError
from spsa.protocol import (
    BatchFailure,
    BatchReport,
    BatchResult,
    BuildResult,
    Claim,
    ClaimRequest,
    Failure,
    HeldBuild,
    HeldClaim,
    LeasedBuild,
    OpenWork,
    RegisteredWorker,
    RenewRequest,
    Touch,
    WorkerInfo,
)
from worker.server_requests import TRANSFER, ServerRequests

Value = TypeVar("Value")

_MAX_WORKER = 2**26


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerVersion:
    """What a server needs of a worker: `sha256` is the hash of its worker.pyz."""

    version: str
    protocol: int
    sha256: str


class RemoteStore:
    """The server at `url`, a `WorkerStore`; `ServerRequests` says what every call may raise.

    `meanwhile` is called between the parts of a download.
    """

    def __init__(self, url: str, token: str) -> None:
        self.where = url
        self.meanwhile: Callable[[], None] = lambda: None
        self._requests = ServerRequests(url, token)

    def close(self) -> None:
        self._requests.close()

    def server_version(self) -> ServerVersion:
        """What the server needs of a worker, by a request whose form never changes."""
        found = self._requests.json("GET", "/worker/version", private=False)
        version, protocol, sha256 = (found.get(key) for key in ("version", "protocol", "sha256"))
        if not (isinstance(version, str) and isinstance(sha256, str) and type(protocol) is int):
            raise self._requests.not_understood("/worker/version")
        return ServerVersion(version=version, protocol=protocol, sha256=sha256)

    def worker_file(self) -> bytes:
        """The server's worker.pyz, not yet verified; empty if the server has none."""
        found = self._requests.file(
            "/worker.pyz", _MAX_WORKER, meanwhile=lambda: None, private=False
        )
        return found or b""

    def register_worker(self, info: WorkerInfo) -> RegisteredWorker:
        path = "/worker/register"
        found = self._post(path, replace(info, secret=""))
        return self._read(RegisteredWorker, found, path)

    def touch_worker(
        self, worker: RegisteredWorker, nps: float | None = None, scale: float | None = None
    ) -> str | None:
        touch = Touch(worker_id=worker.id, nps=nps, scale=scale)
        return self._asked("/worker/touch", touch, _Touched).set_aside

    def claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Claim | None:
        asked = ClaimRequest(worker_id=worker.id, claim_id=claim_id, lease_seconds=lease_seconds)
        return self._asked("/worker/claim", asked, _Claimed).claim

    def renew(
        self, worker: RegisteredWorker, claim_ids: Sequence[str], lease_seconds: float
    ) -> frozenset[str]:
        if not claim_ids:
            return frozenset()
        asked = RenewRequest(
            worker_id=worker.id, claim_ids=tuple(claim_ids), lease_seconds=lease_seconds
        )
        return frozenset(self._asked("/worker/renew", asked, _Renewed).held)

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        report = BatchReport(held=HeldClaim.of(claim), result=result)
        return self._asked("/worker/report", report, _Reported).outcome

    def release(self, claim: Claim) -> None:
        self._post("/worker/release", HeldClaim.of(claim))

    def fail(self, claim: Claim, failure: Failure) -> None:
        self._post("/worker/fail", BatchFailure(held=HeldClaim.of(claim), failure=failure))

    def file(self, sha256: str) -> bytes | None:
        """The bytes; None also if no live claim of this machine names them any more."""
        path = f"/worker/files/{sha256}"
        return self._requests.file(path, MAX_BYTES, meanwhile=self.meanwhile)

    def work_left(self) -> list[OpenWork]:
        path = "/worker/work"
        return list(self._read(_Work, self._requests.json("GET", path), path).work)

    def claim_build(
        self, claim_id: str, worker: RegisteredWorker, lease_seconds: float
    ) -> LeasedBuild | None:
        asked = ClaimRequest(worker_id=worker.id, claim_id=claim_id, lease_seconds=lease_seconds)
        return self._asked("/worker/builds/claim", asked, _ClaimedBuild).build

    def renew_build(self, build: LeasedBuild, lease_seconds: float) -> bool:
        held = replace(_held(build), lease_seconds=lease_seconds)
        return self._asked("/worker/builds/renew", held, _RenewedBuild).held

    def publish_build(
        self, result: BuildResult, plus: bytes, minus: bytes
    ) -> Literal["accepted", "already", "lost"]:
        place = f"/worker/builds/{result.build_id}/{result.claim_id}"
        for side, data, sha256 in (
            ("plus", plus, result.plus.sha256),
            ("minus", minus, result.minus.sha256),
        ):
            with suppress(LeaseLost):  # the last request says whether it was published before
                self._upload(f"{place}/{side}", data, sha256)
        return self._asked("/worker/builds/publish", result, _Published).outcome

    def fail_build(self, build: LeasedBuild, reason: str | None) -> None:
        self._post("/worker/builds/fail", replace(_held(build), reason=reason))

    def _upload(self, path: str, data: bytes, sha256: str) -> None:
        found = self._requests.json(
            "PUT", path, data, content_type="application/octet-stream", timeout=TRANSFER
        )
        if found.get("sha256") != sha256:
            raise DatabaseUnreachable(f"an engine was damaged on its way to {self.where}")

    def _asked(self, path: str, body: Any, kind: type[Value]) -> Value:
        return self._read(kind, self._post(path, body), path)

    def _read(self, kind: type[Value], data: Any, path: str) -> Value:
        try:
            return from_json(kind, data)
        except TuningError as error:
            raise self._requests.not_understood(path, str(error)) from error

    def _post(self, path: str, body: Any) -> Mapping[str, Any]:
        return self._requests.json("POST", path, json.dumps(to_json(body)).encode())


@dataclass(frozen=True, slots=True)
class _Touched:
    set_aside: str | None


@dataclass(frozen=True, slots=True)
class _Claimed:
    claim: Claim | None


@dataclass(frozen=True, slots=True)
class _Renewed:
    held: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reported:
    outcome: Literal["accepted", "already"]


@dataclass(frozen=True, slots=True)
class _Work:
    work: tuple[OpenWork, ...]


@dataclass(frozen=True, slots=True)
class _ClaimedBuild:
    build: LeasedBuild | None


@dataclass(frozen=True, slots=True)
class _RenewedBuild:
    held: bool


@dataclass(frozen=True, slots=True)
class _Published:
    outcome: Literal["accepted", "already", "lost"]


def _held(build: LeasedBuild) -> HeldBuild:
    return HeldBuild(worker_id=build.worker_id, build_id=build.id, claim_id=build.claim_id)
