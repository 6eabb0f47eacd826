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
    """The engines of a proposal in the making, and the run that it was made from."""

    proposal: Proposal
    opened_on: int
    purges: int
    sides: Future[Sides]


class BuildQueue:
    """What is to become iterations, first in, first out."""

    def __init__(self) -> None:
        self._line: deque[QueuedBuild] = deque()

    def __len__(self) -> int:
        return len(self._line)

    @property
    def first(self) -> QueuedBuild:
        return self._line[0]

    @property
    def in_build(self) -> BuildProgress:
        built = bool(self._line) and self.first.sides.done()
        return BuildProgress(count=len(self._line), built=built)

    def add(self, building: QueuedBuild) -> None:
        self._line.append(building)

    def leave(self) -> None:
        """The first of them has been opened."""
        self._line.popleft()

    def drop_outdated(self, view: RunView) -> None:
        """Forget what is open by now, and what the run has changed under."""
        while self._line and self.first.proposal.k <= view.opened:
            self._line.popleft()
        fitting = sum(1 for _ in takewhile(partial(_fits, view), enumerate(self._line)))
        while len(self._line) > fitting:
            self._line.pop().sides.cancel()


def _fits(view: RunView, placed: tuple[int, QueuedBuild]) -> bool:
    """Whether a build is for the k of its place, and on results that the run still holds."""
    (place, building), run = placed, view.run
    in_turn = building.proposal.k == view.opened + place + 1 <= run.max_iterations
    return in_turn and building.purges == run.purges and building.opened_on <= run.applied
