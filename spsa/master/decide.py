"""What a master does next, decided from one look at the run; nothing is done here.

Iteration k of a run with m iterations in flight is opened on the theta that holds the results
through k - m. So the order of moves is fixed, whatever happens in between: after the result k has
been applied, k + m is opened before k + 1 is applied. That makes theta a pure function of the run's
seed and its results, also over any number of restarts.
"""

from dataclasses import dataclass

from spsa.lifecycle import Purpose, RunStatus
from spsa.store import Iteration, RunView


@dataclass(frozen=True, slots=True)
class Open:
    """Build and open iteration k."""

    k: int


@dataclass(frozen=True, slots=True)
class Apply:
    """All games of the oldest open iteration are in: move theta by them."""

    iteration: Iteration


@dataclass(frozen=True, slots=True)
class Finish:
    """All iterations are applied."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Games are being played, or the run is paused."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The run has ended."""


Move = Open | Apply | Finish | Wait | Leave


def next_move(view: RunView, in_flight: int) -> Move:
    """The next move of the run's master, with m = `in_flight`."""
    run = view.run
    if run.status in (RunStatus.FINISHED, RunStatus.STOPPED):
        return Leave()
    k = view.opened + 1
    if k <= run.max_iterations and k - in_flight <= run.applied:
        # a paused run opens nothing, and so may not apply past its opening either
        return Open(k) if run.status is RunStatus.RUNNING else Wait()
    oldest = next((it for it in view.open if it.purpose is Purpose.TUNE), None)
    if oldest is not None:
        return Apply(oldest) if oldest.played_out else Wait()
    return Finish() if run.status is RunStatus.RUNNING else Wait()
