"""The iterations whose engines are being built, in the order of their k."""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from spsa.algorithms.tuning import Proposal
from spsa.db.store import RunView
from spsa.master.decide import BuildProgress
from spsa.master.delivery import Sides


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
