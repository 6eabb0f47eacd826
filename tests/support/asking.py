"""A store, and a server as a remote worker sees it, with each request of a worker as a call."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import spsa.db
import worker.remote
from spsa import protocol
from spsa.errors import LeaseLost


class Asking:
    """Each call asks once."""

    ask: Callable[..., Any]
    upload_build: Callable[..., Any]

    def register_worker(self, info, *machine):
        return self.ask(info, *machine)

    def touch_worker(self, worker, measured):
        return self.ask(protocol.Touch(worker_id=worker.id, **asdict(measured)))

    def claim(self, claim_id, worker, seconds):
        asked = {"worker_id": worker.id, "claim_id": claim_id, "lease_seconds": seconds}
        return self.ask(protocol.ClaimRequest(**asked))

    def renew(self, worker, ids, seconds):
        asked = {"worker_id": worker.id, "claim_ids": tuple(ids), "lease_seconds": seconds}
        return set(self.ask(protocol.RenewRequest(**asked)))

    def report(self, claim, result):
        return self.ask(protocol.BatchReport(held=protocol.HeldClaim.of(claim), result=result))

    def release(self, claim):
        self.ask(protocol.HeldClaim.of(claim))

    def fail(self, claim, failure):
        self.ask(protocol.BatchFailure(held=protocol.HeldClaim.of(claim), failure=failure))

    def work_left(self):
        return list(self.ask(protocol.WorkLeft()))

    def claim_build(self, claim_id, worker, seconds):
        asked = {"worker_id": worker.id, "claim_id": claim_id, "lease_seconds": seconds}
        return self.ask(protocol.BuildClaim(**asked))

    def renew_build(self, build, seconds):
        return self.ask(protocol.BuildRenewal(**held(build), lease_seconds=seconds))

    def fail_build(self, build, reason):
        self.ask(protocol.BuildReturn(**held(build), reason=reason))

    def publish_build(self, result, plus, minus):
        for side, content in (("plus", plus), ("minus", minus)):
            with suppress(LeaseLost):
                self.upload_build(result, side, content)
        return self.ask(result)


def held(build):
    return {name: getattr(build, name) for name in ("worker_id", "build_id", "claim_id")}


class Store(Asking, spsa.db.Store):
    """The store."""


class RemoteStore(Asking, worker.remote.RemoteStore):
    """The server."""
