"""A batch between its claim and its report."""

import time
from dataclasses import dataclass, field

from spsa.db.store import BatchResult, Claim
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.database_client import PendingReport
from worker.runner.count import Count
from worker.runner.pool import Ended, JobDone, JobFailed


@dataclass(slots=True)
class ActiveBatch:
    """A claimed batch while its games are played; `started` is of the monotonic clock."""

    claim: Claim
    started: float
    count: Count = field(default_factory=Count)
    slot: int | None = None
    culprit: str = ""  # "plus" or "minus": the engine that made the last pair void

    @property
    def on_last_pair(self) -> bool:
        return self.claim.pairs - self.count.tally.pairs <= 1

    def report(self, end: Ended) -> PendingReport:
        """The report of how the batch ended."""
        if isinstance(end, JobDone):
            seconds = time.monotonic() - self.started
            return PendingReport(claim=self.claim, result=result_of(self.count, seconds, self.slot))
        if isinstance(end, JobFailed):
            engine = {"plus": self.claim.plus, "minus": self.claim.minus}.get(self.culprit)
            return PendingReport(
                claim=self.claim,
                failure=printable(end.reason, FAILURE_LENGTH),
                void_games=self.count.voids.total(),
                sha256=engine.sha256 if engine else None,
            )
        return PendingReport(claim=self.claim)

    def __str__(self) -> str:
        claim = self.claim
        return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"


def result_of(count: Count, seconds: float, slot: int | None) -> BatchResult:
    """The result of a batch that took `seconds` in a slot."""
    return BatchResult(
        tally=count.tally,
        voids=dict(count.voids),
        plus_nodes=count.plus_nodes,
        minus_nodes=count.minus_nodes,
        moves=count.moves,
        plus_time_losses=count.plus_time_losses,
        minus_time_losses=count.minus_time_losses,
        seconds=seconds,
        think_seconds=count.think_seconds,
        slot=slot,
    )
