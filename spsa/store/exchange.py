"""Results are handed in and new batches taken out, in one transaction.

A worker whose slot has ended a batch wants another one at once. One call does both, for as many
batches as have ended since the last one: one round trip and one commit. Each report and each claim
is answered for itself, and none that is refused undoes another. All of them may be said again after
an unknown outcome: a claim has its id, and a report is its claim's.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from spsa.errors import IllegalTransition, LeaseLost, TuningError
from spsa.lifecycle import BatchStatus
from spsa.store import claims, reports
from spsa.store.database import Database
from spsa.store.entries import BatchResult
from spsa.store.reading import claim_of
from spsa.store.reports import Answer, Counted
from spsa.store.rows import Claim

Report = tuple[Claim, BatchResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchanged:
    """What was answered: to each report in its order, and what the claims hold now.

    `spent` are claims whose batch was reported before; new work takes new ones.
    """

    answers: tuple[Answer, ...]
    claims: tuple[Claim, ...]
    spent: frozenset[str] = frozenset()


class ExchangeDesk(Database):
    """Where a worker hands in and takes out."""

    def exchange(
        self,
        reported: Sequence[Report],
        claim_ids: Sequence[str] = (),
        worker_id: int | None = None,
        lease_seconds: float = 0.0,
    ) -> Exchanged:
        """Count the batches that are reported, each once, and lease one to each claim.

        A report counts in its batch and in its iteration, or nowhere; one whose lease has run out
        but was not given to anybody else still counts. A claim gets the first free batch for
        `lease_seconds`, or none; one that holds a batch already, as after an unknown outcome, is
        told of that one.
        """
        asked = (reported, claim_ids, worker_id, lease_seconds)
        try:
            return self._exchange(*asked)
        except IllegalTransition:
            # the same question, cut off on its way, was answered only now, and that answer holds;
            # or an iteration was abandoned in between
            return self._exchange(*asked)

    def claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None:
        """One free batch; None when there is no work now.

        Raises:
            LeaseLost: the batch of this claim was reported already.
        """
        found = self.exchange((), (claim_id,), worker_id, lease_seconds)
        if claim_id in found.spent:
            raise LeaseLost(f"claim {claim_id} has been reported; new work takes a new claim")
        return found.claims[0] if found.claims else None

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        """Hand in one batch.

        Raises:
            LeaseLost: the batch is somebody else's now; the games do not count.
            ReportConflict: this claim was reported before with other counts.
        """
        (answer,) = self.exchange([(claim, result)]).answers
        if isinstance(answer, TuningError):
            raise answer
        return answer

    def _exchange(
        self,
        reported: Sequence[Report],
        claim_ids: Sequence[str],
        worker_id: int | None,
        lease_seconds: float,
    ) -> Exchanged:
        with self._write() as connection:
            counted: dict[int, Counted] = defaultdict(Counted)
            answers = [_settled(connection, *report, counted) for report in reported]
            wanted = claims.unanswered(connection, claim_ids)
            begun = claims.take(connection, wanted, worker_id or 0, lease_seconds)
            # the rows that others wait for come last, and in an order of their own
            for iteration_id in sorted(counted):
                reports.count(connection, iteration_id, counted[iteration_id])
            for iteration_id in sorted(begun):
                claims.begin(connection, iteration_id)
            told = claims.tell(connection, claim_ids)
            return exchanged(answers, told, claim_ids, lease_seconds)


def exchanged(
    answers: Iterable[Answer], told: Iterable[Any], claim_ids: Sequence[str], lease_seconds: float
) -> Exchanged:
    """The answer, from the rows that tell of the claims."""
    by_claim = {row.claim_id: row for row in told}
    rows = [by_claim[claim_id] for claim_id in claim_ids if claim_id in by_claim]
    held = [row for row in rows if row.status == BatchStatus.LEASED]
    return Exchanged(
        answers=tuple(answers),
        claims=tuple(claim_of(row, lease_seconds) for row in held),
        spent=frozenset(by_claim) - {row.claim_id for row in held},
    )


def _settled(
    connection: sa.Connection, claim: Claim, result: BatchResult, counted: dict[int, Counted]
) -> Answer:
    iteration_id = reports.settle(connection, claim, result)
    if iteration_id is None:
        return reports.answer_again(claim, result, reports.known(connection, claim))
    counted[iteration_id] += result
    return "accepted"
