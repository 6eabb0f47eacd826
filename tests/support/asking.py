"""A store, and a server as a remote worker sees it, with each request of a worker as a call."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import spsa.db
import worker.remote
from spsa.errors import LeaseLost
from spsa.protocol import (
    BatchFailure,
    BatchReport,
    BatchResult,
    BuildClaim,
    BuildRenewal,
    BuildResult,
    BuildReturn,
    Claim,
    ClaimRequest,
    Failure,
    HeldBuild,
    HeldClaim,
    Measured,
    RegisteredWorker,
    RenewRequest,
    Touch,
    WorkerInfo,
    WorkLeft,
)


class Asking:
    """Each call asks once."""

    ask: Callable[..., Any]
    upload_build: Callable[..., Any]

    def register_worker(self, info: WorkerInfo, *machine: str) -> RegisteredWorker:
        return self.ask(info, *machine)

    def touch_worker(self, worker: RegisteredWorker, measured: Measured) -> str | None:
        return self.ask(Touch(worker_id=worker.id, **asdict(measured)))

    def claim(self, claim_id: str, worker: RegisteredWorker, seconds: float) -> Claim | None:
        return self.ask(ClaimRequest(worker_id=worker.id, claim_id=claim_id, lease_seconds=seconds))

    def renew(self, worker: RegisteredWorker, ids: Sequence[str], seconds: float) -> set[str]:
        asked = {"worker_id": worker.id, "claim_ids": tuple(ids), "lease_seconds": seconds}
        return set(self.ask(RenewRequest(**asked)))

    def report(self, claim: Claim, result: BatchResult) -> str:
        return self.ask(BatchReport(held=HeldClaim.of(claim), result=result))

    def release(self, claim: Claim) -> None:
        self.ask(HeldClaim.of(claim))

    def fail(self, claim: Claim, failure: Failure) -> None:
        self.ask(BatchFailure(held=HeldClaim.of(claim), failure=failure))

    def work_left(self) -> list[Any]:
        return list(self.ask(WorkLeft()))

    def claim_build(self, claim_id: str, worker: RegisteredWorker, seconds: float) -> Any:
        return self.ask(BuildClaim(worker_id=worker.id, claim_id=claim_id, lease_seconds=seconds))

    def renew_build(self, build: HeldBuild, seconds: float) -> bool:
        return self.ask(BuildRenewal(**held(build), lease_seconds=seconds))

    def fail_build(self, build: HeldBuild, reason: str | None) -> None:
        self.ask(BuildReturn(**held(build), reason=reason))

    def publish_build(self, result: BuildResult, plus: bytes, minus: bytes) -> str:
        for side, content in (("plus", plus), ("minus", minus)):
            with suppress(LeaseLost):
                self.upload_build(result, side, content)
        return self.ask(result)


def held(build: HeldBuild) -> dict[str, Any]:
    return {name: getattr(build, name) for name in ("worker_id", "build_id", "claim_id")}


class Store(Asking, spsa.db.Store):
    """The store."""


class RemoteStore(Asking, worker.remote.RemoteStore):
    """The server."""
