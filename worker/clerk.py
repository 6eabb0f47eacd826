"""All that a worker says to the database, kept and said again until it is answered.

A question whose answer was lost is asked again with the same identifiers, so nothing is claimed
or counted twice. Nothing here waits: games go on while the database is silent.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Literal, Protocol
from uuid import uuid4

from spsa.errors import DatabaseUnreachable, IllegalTransition, LeaseLost
from spsa.store import BatchResult, Claim, WorkerInfo
from worker.pauses import Pace, Pauses

log = logging.getLogger(__name__)


class Desk(Protocol):
    """What a worker asks of the store; see spsa.store for what each may raise."""

    def register_worker(self, info: WorkerInfo) -> int: ...

    def touch_worker(self, worker_id: int, nps: float | None) -> None: ...

    def claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None: ...

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]: ...

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]: ...

    def release(self, claim: Claim) -> None: ...

    def fail(self, claim: Claim, reason: str, void_games: int = 0) -> None: ...

    def work_left(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """What the database has still to hear of a claim: its result, why it failed, or neither."""

    claim: Claim
    result: BatchResult | None = None
    failure: str | None = None
    void_games: int = 0


class Clerk:
    """One worker's side of the conversation; times are of the monotonic clock."""

    def __init__(self, desk: Desk, info: WorkerInfo, lease: float, reconnect: Pace) -> None:
        self._desk = desk
        self._info = info
        self._lease = lease
        self._outbox: deque[Letter] = deque()
        self._retries = Pauses(reconnect, Random())
        self._worker_id: int | None = None
        self._claim_id: str | None = None
        self.trouble: DatabaseUnreachable | None = None
        self._silent_until = self._renew_at = time.monotonic()

    @property
    def unanswered(self) -> int:
        """How many batches the database has still to hear of."""
        return len(self._outbox)

    @property
    def silent(self) -> bool:
        return time.monotonic() < self._silent_until

    @property
    def next_duty(self) -> float:
        """When it has something to say again."""
        if self.silent:
            return self._silent_until
        return time.monotonic() if self._outbox else self._renew_at

    @contextmanager
    def patiently(self) -> Iterator[None]:
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

    def post(self, letter: Letter) -> None:
        """Leave a letter to be delivered as soon as may be."""
        self._outbox.append(letter)

    def deliver(self) -> None:
        """Deliver all letters in order; ReportConflict is a defect and ends the worker."""
        while self._outbox:
            self._hand_over(self._outbox[0])
            self._outbox.popleft()

    def renew(self, claim_ids: Collection[str], nps: float | None) -> frozenset[str]:
        """When it is time, say that the worker lives and lengthen its leases; those lost."""
        now = time.monotonic()
        if now < self._renew_at:
            return frozenset()
        self._desk.touch_worker(self._registered(), nps)
        held = self._desk.renew(list(claim_ids), self._lease)
        self._renew_at = now + self._lease / 4
        return frozenset(claim_ids) - held

    def claim(self) -> Claim | None:
        """One batch, or None when none is free."""
        self._claim_id = self._claim_id or uuid4().hex
        claim = self._claimed(self._claim_id)
        self._claim_id = None
        return claim

    def _claimed(self, claim_id: str) -> Claim | None:
        try:
            return self._desk.claim(claim_id, self._registered(), self._lease)
        except IllegalTransition:
            # a server that crashed may have forgotten the row of this worker: it did not wait for
            # the disk either
            self._worker_id = None
            return self._desk.claim(claim_id, self._registered(), self._lease)

    def work_left(self) -> bool:
        return self._desk.work_left()

    def _registered(self) -> int:
        if self._worker_id is None:
            self._worker_id = self._desk.register_worker(self._info)
        return self._worker_id

    def _hand_over(self, letter: Letter) -> None:
        try:
            self._telling(letter)()
        except LeaseLost as error:
            log.warning("games dropped: %s", error)

    def _telling(self, letter: Letter) -> Callable[[], object]:
        claim = letter.claim
        if letter.result is not None:
            result = letter.result
            return lambda: self._desk.report(claim, result)
        if letter.failure is not None:
            failure = letter.failure
            return lambda: self._desk.fail(claim, failure, letter.void_games)
        return lambda: self._desk.release(claim)
