"""All that a worker tells the database and asks of it, again and again until there is a response.

A question whose response was lost is asked again with the same identifiers, so nothing is claimed
or counted twice. Nothing here waits: games go on while the database is silent.
"""

import logging
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol
from uuid import uuid4

from spsa.db.store import BatchResult, Claim, RegisteredWorker, WorkerInfo
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    LeaseLost,
    NotPermitted,
    SchemaMismatch,
    TuningError,
)
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.backoff import Backoff, BackoffTimes

log = logging.getLogger(__name__)


class WorkerStore(Protocol):
    """What a worker asks of the store; see spsa.db.worker_queries for what each may raise."""

    def register_worker(self, info: WorkerInfo) -> RegisteredWorker: ...

    def touch_worker(self, worker: RegisteredWorker, nps: float | None) -> str | None: ...

    def claim(
        self, claim_id: str, worker: RegisteredWorker, lease_seconds: float
    ) -> Claim | None: ...

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]: ...

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]: ...

    def release(self, claim: Claim) -> None: ...

    def fail(
        self, claim: Claim, reason: str, void_games: int = 0, sha256: str | None = None
    ) -> None: ...

    def work_left(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReport:
    """What the database does not know of a claim yet: its result, why it failed, or neither.

    `sha256` is the binary that is to blame for a failure, where that is known.
    """

    claim: Claim
    result: BatchResult | None = None
    failure: str | None = None
    void_games: int = 0
    sha256: str | None = None


class DatabaseClient:
    """One worker's side of the conversation; times are of the monotonic clock."""

    def __init__(
        self, store: WorkerStore, info: WorkerInfo, lease: float, reconnect: BackoffTimes
    ) -> None:
        self._store = store
        self._info = info
        self._lease = lease
        self._reports: deque[PendingReport] = deque()
        self._retries = Backoff(reconnect, Random())
        self._worker: RegisteredWorker | None = None
        self._claim_id = uuid4().hex
        self._set_aside: str | None = None
        self.trouble: DatabaseUnreachable | None = None
        self._silent_until = self._renew_at = time.monotonic()

    @property
    def unreported(self) -> int:
        """How many batches the database does not know the end of."""
        return len(self._reports)

    @property
    def silent(self) -> bool:
        return time.monotonic() < self._silent_until

    @property
    def next_duty(self) -> float:
        """When it has something to say again."""
        if self.silent:
            return self._silent_until
        return time.monotonic() if self._reports else self._renew_at

    @contextmanager
    def retrying(self) -> Iterator[None]:
        """Where the database does not answer, break off and be silent for a while."""
        try:
            yield
        except DatabaseUnreachable as error:
            self.trouble = error
            pause = self._retries.next()
            self._silent_until = time.monotonic() + pause
            log.warning("%s; asking again in %.1f s", error, pause)
        else:
            self.trouble = None
            self._retries.reset()

    def enqueue(self, report: PendingReport) -> None:
        """Keep a report until it is delivered."""
        self._reports.append(report)

    def renew(self, claim_ids: Collection[str], nps: float | None) -> frozenset[str]:
        """When it is time, say that the worker lives and lengthen its leases; those lost."""
        now = time.monotonic()
        if now < self._renew_at:
            return frozenset()
        self._say_if_set_aside(self._store.touch_worker(self._registered(), nps))
        held = self._store.renew(list(claim_ids), self._lease)
        self._renew_at = now + self._lease / 4
        return frozenset(claim_ids) - held

    def _say_if_set_aside(self, reason: str | None) -> None:
        if reason is not None and reason != self._set_aside:
            log.warning(
                "this machine is given no batches: %s; `spsa-master workers release %s` ends that",
                reason,
                self._registered().machine,
            )
        self._set_aside = reason

    def deliver(self) -> None:
        """Deliver all reports; each is forgotten when the database has answered, not before."""
        while self._reports:
            self._deliver(self._reports[0])
            self._reports.popleft()

    def claim(self) -> Claim | None:
        """One free batch; None when there is none.

        A claim whose response was lost is asked for again by the same id, so that it is made once.
        """
        try:
            claim = self._ask()
        except IllegalTransition:
            # a server that crashed may have forgotten this worker's row: it had not waited for the
            # disk either
            self._worker = None
            claim = self._ask()
        if claim is not None:
            self._claim_id = uuid4().hex
        return claim

    def work_left(self) -> bool:
        return self._store.work_left()

    def _ask(self) -> Claim | None:
        try:
            return self._store.claim(self._claim_id, self._registered(), self._lease)
        except LeaseLost:  # of an id that was used up, which another try never gets past
            self._claim_id = uuid4().hex
            return None

    def _deliver(self, report: PendingReport) -> None:
        """What the database refuses for good costs one batch, and never the worker."""
        try:
            self._tell(report)
        except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
            raise
        except LeaseLost as error:
            log.warning("games dropped: %s", error)
        except TuningError as error:
            log.error("games dropped, the database refused them: %s", error)
            self._give_back(report, error)

    def _tell(self, report: PendingReport) -> None:
        claim = report.claim
        if report.result is not None:
            self._report(claim, report.result)
        elif report.failure is not None:
            self._store.fail(claim, report.failure, report.void_games, report.sha256)
        else:
            self._store.release(claim)

    def _report(self, claim: Claim, result: BatchResult) -> None:
        try:
            self._store.report(claim, result)
        except IllegalTransition:
            # the iteration was abandoned in between, or the first of two questions was answered
            # only now: the next response says which
            self._store.report(claim, result)

    def _give_back(self, report: PendingReport, refusal: TuningError) -> None:
        if report.result is None:
            return  # the lease runs out by itself
        try:
            reason = printable(f"the database refused the result: {refusal}", FAILURE_LENGTH)
            self._store.fail(report.claim, reason)
        except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
            raise
        except TuningError as error:
            log.error("the batch is left to its lease: %s", error)

    def _registered(self) -> RegisteredWorker:
        if self._worker is None:
            self._worker = self._store.register_worker(self._info)
        return self._worker
