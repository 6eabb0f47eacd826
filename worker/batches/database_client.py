"""A worker's calls to the database or the server, repeated after growing waits until it responds.

A call whose response was lost is repeated with the same identifiers, so nothing is claimed or
counted twice. No call sleeps: games go on while nothing can be reached.
"""

import logging
import random
import time
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import uuid4

from spsa.builds.requirements import lacking
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    LeaseLost,
    NotPermitted,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import (
    RENEWALS,
    Claim,
    ClaimRequest,
    Measured,
    OpenWork,
    RegisteredWorker,
    RenewRequest,
    Request,
    Touch,
    WorkerInfo,
    WorkerStore,
    WorkLeft,
)
from spsa.text import plural, printable


@dataclass(slots=True, kw_only=True)
class Backoff:
    """The waits between the attempts at one thing, in seconds; each user has a copy.

    The n-th wait is min(first * growth^n, cap), times 1 - jitter to 1 + jitter.
    """

    first: float
    growth: float
    cap: float
    jitter: float
    attempts: int = field(default=0, init=False)

    def next(self, error: TuningError | None = None) -> float:
        """The next wait; at least as long as the error asks for."""
        wait = min(self.cap, self.first * self.growth**self.attempts)
        if wait < self.cap:
            self.attempts += 1
        wait *= random.uniform(1 - self.jitter, 1 + self.jitter)
        return max(wait, getattr(error, "retry_after", None) or 0.0)

    def reset(self) -> None:
        self.attempts = 0


POLL = Backoff(first=0.25, growth=1.5, cap=2.0, jitter=0.2)
"""Between two claims while the database has no free batch."""

FAILURE = Backoff(first=1.0, growth=2.0, cap=60.0, jitter=0.2)
"""After a batch that could not be played."""

RECONNECT = Backoff(first=0.5, growth=2.0, cap=20.0, jitter=0.5)
"""Between two attempts to reach the database; 30 s at most."""

_MAX_REASON = 1_000

log = logging.getLogger(__name__)


class DatabaseClient:
    """One worker's calls and its unsent reports; times are of the monotonic clock.

    `last_error` is that of the last call if it could not reach anything.
    """

    def __init__(
        self, store: WorkerStore, info: WorkerInfo, lease: float, reconnect: Backoff
    ) -> None:
        self._store = store
        self._info = info
        self._lease = lease
        self._reports: deque[Request[Any]] = deque()
        self._retries = replace(reconnect)
        self._worker: RegisteredWorker | None = None
        self._claim_id = uuid4().hex
        self._warned: dict[str, str | None] = {}
        self._claim_at = 0.0
        self.last_error: DatabaseUnreachable | None = None
        self._retry_at = self._renew_at = time.monotonic()

    @property
    def unreported(self) -> int:
        """The number of reports that wait to be delivered."""
        return len(self._reports)

    @property
    def is_registered(self) -> bool:
        return self._worker is not None

    def attempt(self, calls: Callable[[], None], *, at_once: bool = False) -> None:
        """Make these calls, unless the last attempt failed and the next one is not due yet."""
        if time.monotonic() < self._retry_at and not at_once:
            return
        try:
            calls()
        except DatabaseUnreachable as error:
            self.last_error = error
            pause = self._retries.next(error)
            self._retry_at = time.monotonic() + pause
            log.warning("%s; next attempt in %.1f s", error, pause)
        else:
            self.last_error = None
            self._retries.reset()

    def enqueue(self, report: Request[Any]) -> None:
        """Keep what ends a claim until it is delivered: its result, why it failed, or a return."""
        self._reports.append(report)

    def renew(self, claim_ids: Collection[str], measured: Measured) -> frozenset[str]:
        """Renew these leases and the worker's own row when that is due; the claims that were lost.

        The row gets what the worker has measured.
        """
        now = time.monotonic()
        if now < self._renew_at:
            return frozenset()
        if (reason := self.ask(Touch, **asdict(measured))) is not None:
            machine = self._registered().machine
            reason = (
                f"this machine is set aside and gets no batches: {reason}; "
                f"`spsa-master workers release {machine}` ends that"
            )
        self._warn("set aside", reason)
        held: Collection[str] = ()
        if claim_ids:
            ids = tuple(claim_ids)
            held = self.ask(RenewRequest, claim_ids=ids, lease_seconds=self._lease)
        else:
            self._say_why_idle()
        self._renew_at = now + self._lease / RENEWALS
        return frozenset(claim_ids).difference(held)

    def leave_out(self, run: str) -> None:
        """Take no more batches of a run; the database is told, and gives them to others."""
        if run not in self._info.not_runs:
            self._info = replace(self._info, not_runs=(*self._info.not_runs, run))
            self._worker = None  # it registers again, without this run

    def deliver(self) -> None:
        """Deliver all reports; each is kept until the database has responded.

        One that the database refuses costs the batch, not the worker.
        """
        while self._reports:
            try:
                self._store.ask(self._reports[0])
            except (DatabaseUnreachable, SchemaMismatch, NotPermitted):
                raise
            except LeaseLost as error:
                log.info("the games of a batch are no longer needed: %s", error)
            except TuningError as error:
                log.error("the games of a batch were refused, they are dropped: %s", error)
            self._reports.popleft()

    def drop_reports(self) -> None:
        """Give up the reports that wait; their batches are played again when the leases expire."""
        log.warning("%s cannot be reported any more", plural(len(self._reports), "batch", "es"))
        self._reports.clear()

    def claim(self) -> Claim | None:
        """One free batch; None when there is none.

        A call whose response was lost is repeated with the same id, so that it claims one batch.
        """
        if time.monotonic() < self._claim_at:
            return None
        try:
            claim: Claim | None = self.ask(
                ClaimRequest, claim_id=self._claim_id, lease_seconds=self._lease
            )
        except LeaseLost:  # the id was used up: every other attempt with it fails, too
            self._claim_id = uuid4().hex
            return None
        except TooManyRequests as error:  # reports and renewals go on
            pause = self._retries.next(error)
            log.warning("%s; next claim in %.1f s", error, pause)
            self._claim_at = time.monotonic() + pause
            return None
        if claim is not None:
            self._claim_id = uuid4().hex
            self._warned.clear()
        return claim

    def work_left(self) -> bool:
        """Whether any run may still have games that this worker can play."""
        return any(self._obstacle(left) is None for left in self._store.ask(WorkLeft()))

    def _say_why_idle(self) -> None:
        """Say why there is nothing that this worker may play, or whom it may wait for."""
        found = {left: self._obstacle(left) for left in self._store.ask(WorkLeft())}
        reason = (
            "; ".join(dict.fromkeys(filter(None, found.values())))
            or "no run needs games now: none has begun, its next engines are being built, or it is "
            "paused or over"
        )
        text = f"there is nothing that this worker may play: {printable(reason, _MAX_REASON)}"
        if awaited := [left for left, obstacle in found.items() if obstacle is None]:
            runs = printable(", ".join(dict.fromkeys(left.run for left in awaited)), _MAX_REASON)
            text = f"waiting for {runs}: its games are claimed, or its engines are being built"
            if not any(left.has_master for left in awaited):
                text = (
                    f"no master moves {runs}: `spsa-master run`, `validate`, or `resume` if it is "
                    "paused, goes on with it"
                )
        self._warn("idle", text)

    def _warn(self, about: str, text: str | None) -> None:
        """Say this of a matter, unless it was the last that was said of it."""
        if text and text != self._warned.get(about):
            log.warning("%s", text)
        self._warned[about] = text

    def _obstacle(self, work: OpenWork) -> str | None:
        """Why this worker gets no batch of such an iteration; None if it may get one."""
        info, run = self._info, work.run
        if (info.only_runs and run not in info.only_runs) or run in info.not_runs:
            return f"this worker leaves out the run {run}"
        if missing := lacking(work.requires, info.provides):
            has = ", ".join(info.provides)
            return f"the run {run} requires {', '.join(missing)}, and this worker has only {has}"
        return None

    def ask(self, kind: Callable[..., Request[Any]], **values: Any) -> Any:
        """Ask with the id of this worker's row, which is made again if it is unknown.

        A database that crashed may have lost the row, which was not yet on disk.
        """
        try:
            return self._store.ask(kind(worker_id=self._registered().id, **values))
        except IllegalTransition:
            self._worker = None
            return self._store.ask(kind(worker_id=self._registered().id, **values))

    def _registered(self) -> RegisteredWorker:
        if self._worker is None:
            self._worker = self._store.ask(self._info)
        return self._worker
