"""What a master does next, decided from one look at the run; nothing is done here.

Results are applied in the order of k. When the next iteration is built and opened is a matter of
pacing. `InOrder` keeps m in flight: k is opened on the theta that holds the results through k - m,
and before k - m + 1 is applied, whatever happens in between, so that theta is a pure function of
the run's seed and its results. `AsNeeded` opens as late as the fleet lets it, on all results that
there are when its engines begin to be built; which ones that were is in its row, and with that
theta can be computed again just as well.
"""

from dataclasses import dataclass

from spsa.db.store import Iteration, MachineFailures, RunView
from spsa.lifecycle import Purpose, RunStatus


@dataclass(frozen=True, slots=True)
class StartBuild:
    """Begin to build the engines of iteration k."""

    k: int


@dataclass(frozen=True, slots=True)
class OpenIteration:
    """The engines of iteration k, the next one, are built: hand out its games."""

    k: int


@dataclass(frozen=True, slots=True)
class Apply:
    """All games of the oldest open iteration are in: move theta by them."""

    iteration: Iteration


@dataclass(frozen=True, slots=True)
class Finish:
    """All iterations are applied."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Games are being played, engines are being built, or the run is paused."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The run has ended."""


Decision = StartBuild | OpenIteration | Apply | Finish | Idle | Stop


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMachineAside:
    """Give a machine no more batches: of one binary, or of any where `sha256` is None."""

    machine: str
    sha256: str | None
    reason: str


FAILURE_BUDGET = 3
"""Batches that a machine may fail before it is set aside, while others play such batches."""

BINARY_BUDGET = 3
"""Binaries that a machine is set aside for; with the last of them it is set aside for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """Iterations whose engines are being built, those after the newest open one.

    `built` is whether the engines of the first of them are ready.
    """

    count: int = 0
    built: bool = False


@dataclass(frozen=True, slots=True)
class InOrder:
    """`depth` iterations in flight, always."""

    depth: int

    waits_for_builds = True

    def due(self, view: RunView, in_build: int) -> bool:
        """Whether the iteration after those in the making may be begun."""
        return view.opened + in_build + 1 - self.depth <= view.run.applied


@dataclass(frozen=True, slots=True, kw_only=True)
class AsNeeded:
    """As many iterations in flight as keep all slots at play, at most `depth`.

    The next one is due when fewer than `wanted` games lie ready or are in the making, where an
    iteration has `games`; `builders` are as many as can be built at a time.
    """

    depth: int
    wanted: float
    games: int
    builders: int = 1

    waits_for_builds = False

    def due(self, view: RunView, in_build: int) -> bool:
        """Whether the iteration after those in the making is to be begun."""
        bearable = view.opened + in_build + 1 - self.depth <= view.run.applied
        return bearable and in_build < self.builders and self.short(view, in_build)

    def short(self, view: RunView, in_build: int) -> bool:
        """Whether there will not be games enough."""
        return view.ready_games + in_build * self.games < self.wanted


Pacing = InOrder | AsNeeded


def next_decision(view: RunView, pacing: Pacing, in_build: BuildProgress | None = None) -> Decision:
    """The next move of the run's master."""
    run, in_build = view.run, in_build or BuildProgress()
    if run.status in (RunStatus.FINISHED, RunStatus.STOPPED):
        return Stop()
    running = run.status is RunStatus.RUNNING
    if in_build.built and running:
        return OpenIteration(view.opened + 1)
    k = view.opened + in_build.count + 1
    due = k <= run.max_iterations and pacing.due(view, in_build.count)
    if due and running:
        return StartBuild(k)
    if pacing.waits_for_builds and (due or in_build.count):
        return Idle()  # a paused run opens nothing, and so may not apply past its opening either
    return _after_opening(view, in_build, running=running)


def _after_opening(view: RunView, in_build: BuildProgress, *, running: bool) -> Decision:
    oldest = next((it for it in view.open if it.purpose is Purpose.TUNE), None)
    if oldest is not None:
        return Apply(oldest) if oldest.is_played else Idle()
    return Finish() if running and not in_build.count else Idle()


def machines_to_set_aside(view: RunView) -> list[SetMachineAside]:
    """The machines that fail what others can play.

    Where nobody plays it, it is not the machine's fault: the batch is tried by others until it is
    given up.
    """
    return [_set_aside(failed) for failed in view.machine_failures if _is_to_blame(failed)]


def _is_to_blame(failed: MachineFailures) -> bool:
    known = failed.is_set_aside or failed.sha256 in failed.binaries_set_aside
    often = failed.batches >= FAILURE_BUDGET and failed.batches > failed.played
    return often and not known and failed.played_by_others > 0


def _set_aside(failed: MachineFailures) -> SetMachineAside:
    only_one = failed.sha256 if len(failed.binaries_set_aside) + 1 < BINARY_BUDGET else None
    return SetMachineAside(
        machine=failed.machine,
        sha256=only_one,
        reason=f"failed {failed.batches} batches that other machines can play: {failed.reason}",
    )
