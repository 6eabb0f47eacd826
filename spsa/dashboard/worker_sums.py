"""What each worker has played of a run, over all its iterations however many there are.

Sums over `SPAN` iterations that are complete stay what they are until a purge, so they are read
once. The first answers of a new server hold the last iterations of a long run; every later one
holds more, until it holds all of them. No answer waits for more than a few spans.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from spsa.db.history_rows import WorkerShare
from spsa.db.store import Run, Store
from spsa.report.history import added

SPAN = 5_000
BUDGET_SECONDS = 0.2
"""After so much time no other span is read for an answer."""


@dataclass(frozen=True, slots=True)
class WorkerSums:
    """The sums over the tuning iterations from `first_k` on, most games first."""

    shares: tuple[WorkerShare, ...]
    first_k: int


@dataclass(slots=True)
class _Spans:
    """Of one run: the sums of whole spans that were read, by their place, 0 for the oldest."""

    purges: int
    read: dict[int, Sequence[WorkerShare]] = field(default_factory=dict)


class WorkerSummer:
    """Sums the batches of runs; a caller asks for one run at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._spans: dict[int, _Spans] = {}

    def sums(self, run: Run) -> WorkerSums:
        """The sums of now, over as much of the run as there was time for."""
        whole = run.applied // SPAN
        newest = self._store.worker_shares(run.id, whole * SPAN)
        spans = self._spans.get(run.id)
        if spans is None or spans.purges != run.purges:
            spans = self._spans[run.id] = _Spans(run.purges)
        first = self._read_more(run, spans, whole)
        older = (share for place in range(first, whole) for share in spans.read[place])
        return WorkerSums(added((*newest, *older)), first * SPAN + 1)

    def _read_more(self, run: Run, spans: _Spans, whole: int) -> int:
        """The place of the oldest span from which on all are read."""
        until = monotonic() + BUDGET_SECONDS
        for place in reversed(range(whole)):
            if place in spans.read:
                continue
            if monotonic() > until:
                return place + 1
            after = place * SPAN
            spans.read[place] = self._store.worker_shares(run.id, after, after + SPAN)
        return 0
