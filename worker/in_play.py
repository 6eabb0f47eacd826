"""A batch between its claim and the letter that tells how it ended."""

import time
from dataclasses import dataclass, field

from spsa.store import Claim
from spsa.text import FAILURE_LENGTH, printable
from worker.batch import result_of
from worker.clerk import Letter
from worker.count import Count
from worker.pool import Ended, JobDone, JobFailed


@dataclass(slots=True)
class InPlay:
    """A claimed batch while its games are played."""

    claim: Claim
    started: float
    count: Count = field(default_factory=Count)
    slot: int | None = None

    @property
    def on_last_pair(self) -> bool:
        return self.claim.pairs - self.count.tally.pairs <= 1

    def letter(self, end: Ended) -> Letter:
        """What the database has to hear of how it ended."""
        if isinstance(end, JobDone):
            seconds = time.monotonic() - self.started
            return Letter(claim=self.claim, result=result_of(self.count, seconds, self.slot))
        if isinstance(end, JobFailed):
            voids = self.count.voids.total()
            reason = printable(end.reason, FAILURE_LENGTH)
            return Letter(claim=self.claim, failure=reason, void_games=voids)
        return Letter(claim=self.claim)

    def __str__(self) -> str:
        claim = self.claim
        return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"
