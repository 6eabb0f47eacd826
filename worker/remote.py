"""What a worker may ask, over HTTP; the other way is the database.

`RemoteStore` raises what the queries of the database raise, so that a worker does not care which of
the two it has.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

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
    Measured,
    OpenWork,
    RegisteredWorker,
    RenewRequest,
    ReportOutcome,
    Touch,
    WorkerInfo,
)
from worker.server_requests import TRANSFER, ServerRequests

Published = Literal["accepted", "already", "lost"]

_MAX_WORKER = 2**26
_BYTES = "application/octet-stream"


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
        found = self._requests.file("/worker.pyz", _MAX_WORKER, lambda: None, private=False)
        return found or b""

    def register_worker(self, info: WorkerInfo) -> RegisteredWorker:
        found: RegisteredWorker = self._ask("register", replace(info, secret=""), RegisteredWorker)
        return found

    def touch_worker(self, worker: RegisteredWorker, measured: Measured) -> str | None:
        touch = Touch(worker_id=worker.id, **asdict(measured))
        set_aside: str | None = self._ask("touch", touch, str | None, "set_aside")
        return set_aside

    def claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Claim | None:
        asked = ClaimRequest(worker_id=worker.id, claim_id=claim_id, lease_seconds=lease_seconds)
        claim: Claim | None = self._ask("claim", asked, Claim | None, "claim")
        return claim

    def renew(
        self, worker: RegisteredWorker, claim_ids: Sequence[str], lease_seconds: float
    ) -> frozenset[str]:
        if not claim_ids:
            return frozenset()
        ids = tuple(claim_ids)
        asked = RenewRequest(worker_id=worker.id, claim_ids=ids, lease_seconds=lease_seconds)
        return frozenset(self._ask("renew", asked, tuple[str, ...], "held"))

    def report(self, claim: Claim, result: BatchResult) -> ReportOutcome:
        report = BatchReport(held=HeldClaim.of(claim), result=result)
        outcome: ReportOutcome = self._ask("report", report, ReportOutcome, "outcome")
        return outcome

    def release(self, claim: Claim) -> None:
        self._post("release", HeldClaim.of(claim))

    def fail(self, claim: Claim, failure: Failure) -> None:
        self._post("fail", BatchFailure(held=HeldClaim.of(claim), failure=failure))

    def file(self, sha256: str) -> bytes | None:
        """The bytes; None also if no live claim of this machine names them any more."""
        return self._requests.file(f"/worker/files/{sha256}", MAX_BYTES, self.meanwhile)

    def work_left(self) -> list[OpenWork]:
        found = self._requests.json("GET", "/worker/work")
        return list(self._value("work", found, tuple[OpenWork, ...], "work"))

    def claim_build(
        self, claim_id: str, worker: RegisteredWorker, lease_seconds: float
    ) -> LeasedBuild | None:
        asked = ClaimRequest(worker_id=worker.id, claim_id=claim_id, lease_seconds=lease_seconds)
        build: LeasedBuild | None = self._ask("builds/claim", asked, LeasedBuild | None, "build")
        return build

    def renew_build(self, build: LeasedBuild, lease_seconds: float) -> bool:
        held = replace(_held(build), lease_seconds=lease_seconds)
        return bool(self._ask("builds/renew", held, bool, "held"))

    def publish_build(self, result: BuildResult, plus: bytes, minus: bytes) -> Published:
        place = f"/worker/builds/{result.build_id}/{result.claim_id}"
        for side, data, file in (("plus", plus, result.plus), ("minus", minus, result.minus)):
            with suppress(LeaseLost):  # the last request says whether it was published before
                self._upload(f"{place}/{side}", data, file.sha256)
        outcome: Published = self._ask("builds/publish", result, Published, "outcome")
        return outcome

    def fail_build(self, build: LeasedBuild, reason: str | None) -> None:
        self._post("builds/fail", replace(_held(build), reason=reason))

    def _upload(self, path: str, data: bytes, sha256: str) -> None:
        found = self._requests.json("PUT", path, data, content_type=_BYTES, timeout=TRANSFER)
        if found.get("sha256") != sha256:
            raise DatabaseUnreachable(f"an engine was damaged on its way to {self.where}")

    def _post(self, path: str, body: Any) -> Mapping[str, Any]:
        return self._requests.json("POST", f"/worker/{path}", json.dumps(to_json(body)).encode())

    def _ask(self, path: str, body: Any, kind: Any, field: str | None = None) -> Any:
        return self._value(path, self._post(path, body), kind, field)

    def _value(self, path: str, found: Mapping[str, Any], kind: Any, field: str | None) -> Any:
        """The value of this kind in a field of the response, or as the whole response."""
        try:
            return from_json(kind, found if field is None else found[field], field or "response")
        except (TuningError, KeyError) as error:
            raise self._requests.not_understood(f"/worker/{path}", str(error)) from error


def _held(build: LeasedBuild) -> HeldBuild:
    return HeldBuild(worker_id=build.worker_id, build_id=build.id, claim_id=build.claim_id)
