"""The queue of builds: threads that build engines, and the iterations that wait for them."""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from types import TracebackType
from typing import Self

from spsa.algorithms.tuning import Proposal
from spsa.db.store import RunView, Values
from spsa.master.decide import BuildProgress
from spsa.master.delivery import Delivery, Sides


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """The engines of a proposal that are being built, and the run that it was computed from."""

    proposal: Proposal
    opened_on: int
    purges: int
    sides: Future[Sides]
    since: float = field(default_factory=time.monotonic)

    @property
    def under_way(self) -> "BuildUnderWay":
        return BuildUnderWay(f"k = {self.proposal.k}", self.since, state_of(self.sides))


@dataclass(frozen=True, slots=True)
class BuildUnderWay:
    """A build as people are told of it: whose engines, since when (monotonic), and its state."""

    what: str
    since: float
    state: str


def state_of(build: Future[Sides]) -> str:
    """`waiting` for a thread, `building`, or `ready`."""
    if build.done():
        return "ready"
    return "building" if build.running() else "waiting"


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

    @property
    def under_way(self) -> Sequence[BuildUnderWay]:
        return [build.under_way for build in self._builds]

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

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._threads = ThreadPoolExecutor(delivery.at_once, "build")
        self._assumed = 0.0 if delivery.source_sha256 is None else ASSUMED_SECONDS
        self._seconds = deque[float](maxlen=_MEASURED)

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

    def start(self, plus: Values, minus: Values) -> Future[Sides]:
        """Start to build two engines with these values."""
        return self._threads.submit(self._prepared, plus, minus)

    def _prepared(self, plus: Values, minus: Values) -> Sides:
        began = time.monotonic()
        sides = self._delivery.prepare(plus, minus)
        self._seconds.append(time.monotonic() - began)
        return sides

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._delivery.cancel()
        self._threads.shutdown(wait=True, cancel_futures=True)
