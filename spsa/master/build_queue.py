"""The queue of builds: threads that build engines, and the iterations that wait for them."""

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Self

from spsa.algorithms.tuning import Proposal
from spsa.core.run_columns import Builds
from spsa.db.master_queries import Sides
from spsa.db.run_view import RunView
from spsa.db.tables import Values
from spsa.master.decide import BuildProgress
from spsa.master.delivery import Delivery


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """The engines of a proposal that are being built, and the run that it was computed from."""

    proposal: Proposal
    opened_on: int
    purges: int
    sides: Future[Sides]


class BuildQueue:
    """The next iterations, first in, first out."""

    def __init__(self) -> None:
        self._builds: deque[QueuedBuild] = deque()

    def __len__(self) -> int:
        return len(self._builds)

    @property
    def first(self) -> QueuedBuild:
        return self._builds[0]

    @property
    def progress(self) -> BuildProgress:
        built = bool(self._builds) and self.first.sides.done()
        return BuildProgress(count=len(self._builds), built=built)

    def add(self, building: QueuedBuild) -> None:
        self._builds.append(building)

    def remove_first(self) -> None:
        """Remove the first build, whose iteration was opened."""
        self._builds.popleft()

    def drop_outdated(self, view: RunView) -> None:
        """Remove builds whose iteration is open, and those that the run no longer fits."""
        while self._builds and self.first.proposal.k <= view.opened:
            self._builds.popleft()
        fitting = sum(1 for _ in takewhile(partial(_fits, view), enumerate(self._builds)))
        while len(self._builds) > fitting:
            self._builds.pop().sides.cancel()


def _fits(view: RunView, placed: tuple[int, QueuedBuild]) -> bool:
    """Whether a build is for the k of its place, and was computed on results that still count."""
    (place, building), run = placed, view.run
    is_next = building.proposal.k == view.opened + place + 1 <= run.max_iterations
    return is_next and building.purges == run.purges and building.opened_on <= run.applied


ASSUMED_SECONDS = 30.0
"""The assumed time of a build before the first one has been measured."""

_MEASURED = 8


class BuildThreads:
    """Runs as many builds at a time as the delivery allows.

    A context manager: its end cancels the builds that are not finished.
    """

    def __init__(self, delivery: Delivery, usual: float | None = None) -> None:
        """`usual` is what builds of this run took before, in seconds."""
        self._delivery = delivery
        self._threads = ThreadPoolExecutor(delivery.at_once, "build")
        self._assumed = 0.0 if delivery.source_sha256 is None else ASSUMED_SECONDS
        self._seconds = deque([] if usual is None else [usual], maxlen=_MEASURED)
        self._begun: dict[int, float] = {}

    @property
    def builders(self) -> int:
        """How many iterations are built at a time."""
        return self._delivery.at_once

    @property
    def seconds(self) -> float:
        """The seconds that the slowest of the last few builds took."""
        return max(self._seconds, default=self._assumed)

    @property
    def is_measured(self) -> bool:
        """Whether `seconds` was measured, not assumed."""
        return bool(self._seconds)

    def builds(self) -> Builds | None:
        """What is being built; None where nothing ever is."""
        if self._delivery.source_sha256 is None:
            return None
        begun = dict(self._begun)
        return Builds(
            iterations=tuple(sorted(begun)),
            sides=self._delivery.sides if begun else (),
            seconds=time.monotonic() - min(begun.values()) if begun else 0.0,
            usual=self.seconds if self.is_measured else None,
        )

    def start(self, plus: Values, minus: Values, k: int = 0) -> Future[Sides]:
        """Start to build two engines with these values, for iteration k or for a match."""
        return self._threads.submit(self._prepared, k, plus, minus)

    def _prepared(self, k: int, plus: Values, minus: Values) -> Sides:
        began = self._begun[k] = time.monotonic()
        try:
            sides = self._delivery.prepare(plus, minus)
        finally:
            del self._begun[k]
        self._seconds.append(time.monotonic() - began - sides.waited)
        return sides

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._delivery.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
