"""All that a worker says to the database, kept and said again until it is answered.

A question whose answer was lost is asked again with the same identifiers, so nothing is claimed
or counted twice. Nothing here waits: games go on while the database is silent.
"""

import logging
import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Protocol
from uuid import uuid4

from spsa.errors import DatabaseUnreachable, IllegalTransition, LeaseLost, ReportConflict
from spsa.store import BatchResult, Claim, Exchanged, WorkerInfo
from worker.pauses import Pace, Pauses

log = logging.getLogger(__name__)


class Desk(Protocol):
    """What a worker asks of the store; see spsa.store for what each may raise."""

    def register_worker(self, info: WorkerInfo) -> int: ...

    def touch_worker(self, worker_id: int, nps: float | None) -> None: ...

    def exchange(
        self,
        reported: Sequence[tuple[Claim, BatchResult]],
        claim_ids: Sequence[str],
        worker_id: int | None,
        lease_seconds: float,
    ) -> Exchanged: ...

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]: ...

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
        self._asked: list[str] = []
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

    def renew(self, claim_ids: Collection[str], nps: float | None) -> frozenset[str]:
        """When it is time, say that the worker lives and lengthen its leases; those lost."""
        now = time.monotonic()
        if now < self._renew_at:
            return frozenset()
        self._desk.touch_worker(self._registered(), nps)
        held = self._desk.renew(list(claim_ids), self._lease)
        self._renew_at = now + self._lease / 4
        return frozenset(claim_ids) - held

    def exchange(self, wanted: int) -> list[Claim]:
        """Deliver all letters and claim so many batches, in one call; those that were free.

        What was asked and not answered is asked again by the same names, so that it is done once.
        ReportConflict is a defect and ends the worker.
        """
        self._hand_back()
        self._asked += [uuid4().hex for _ in range(wanted - len(self._asked))]
        asked, letters = self._asked[:wanted], list(self._outbox)
        if not (asked or letters):
            return []
        reported = [(each.claim, each.result) for each in letters if each.result is not None]
        found = self._answer(reported, asked)
        self._outbox.clear()
        del self._asked[: len(asked)]
        for answer in found.answers:
            if isinstance(answer, ReportConflict):
                raise answer
            if isinstance(answer, LeaseLost):
                log.warning("games dropped: %s", answer)
        return list(found.claims)

    def _hand_back(self) -> None:
        """Deliver the letters that tell of no result."""
        for letter in [letter for letter in self._outbox if letter.result is None]:
            if letter.failure is not None:
                self._desk.fail(letter.claim, letter.failure, letter.void_games)
            else:
                self._desk.release(letter.claim)
            self._outbox.remove(letter)

    def _answer(
        self, reported: Sequence[tuple[Claim, BatchResult]], asked: Sequence[str]
    ) -> Exchanged:
        worker_id = self._registered() if asked else self._worker_id
        try:
            return self._desk.exchange(reported, asked, worker_id, self._lease)
        except IllegalTransition:
            # a server that crashed may have forgotten the row of this worker: it did not wait for
            # the disk either
            self._worker_id = None
            return self._desk.exchange(reported, asked, self._registered(), self._lease)

    def work_left(self) -> bool:
        return self._desk.work_left()

    def _registered(self) -> int:
        if self._worker_id is None:
            self._worker_id = self._desk.register_worker(self._info)
        return self._worker_id
