"""A batch between its claim and the report that tells how it ended."""

import time
from dataclasses import dataclass, field

from spsa.db.store import Claim
from spsa.text import FAILURE_LENGTH, printable
from worker.batches.database_client import PendingReport
from worker.batches.job import result_of
from worker.runner.count import Count
from worker.runner.pool import Ended, JobDone, JobFailed


@dataclass(slots=True)
class ActiveBatch:
    """A claimed batch while its games are played."""

    claim: Claim
    started: float
    count: Count = field(default_factory=Count)
    slot: int | None = None
    culprit: str = ""  # "plus" or "minus": which engine made the last pair void

    @property
    def on_last_pair(self) -> bool:
        return self.claim.pairs - self.count.tally.pairs <= 1

    def report(self, end: Ended) -> PendingReport:
        """What the database has to know of how it ended."""
        if isinstance(end, JobDone):
            seconds = time.monotonic() - self.started
            return PendingReport(claim=self.claim, result=result_of(self.count, seconds, self.slot))
        if isinstance(end, JobFailed):
            voids = self.count.voids.total()
            return PendingReport(
                claim=self.claim,
                failure=printable(end.reason, FAILURE_LENGTH),
                void_games=voids,
                sha256=self._blamed(),
            )
        return PendingReport(claim=self.claim)

    def _blamed(self) -> str | None:
        sides = {"plus": self.claim.plus.sha256, "minus": self.claim.minus.sha256}
        return sides.get(self.culprit)

    def __str__(self) -> str:
        claim = self.claim
        return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"
