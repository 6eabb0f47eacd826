"""Decides what the master does next, from one view of the run; this module does nothing itself.

Results are applied in the order of k. The pacing decides when the next iteration is built and
opened. A fixed one keeps m iterations in flight: k is always opened on the theta that holds the
results through k - m, so theta is a pure function of the run's seed and its results. The other
opens an iteration as late as the fleet allows, on all results that are applied when its build
starts. Its row records which results those are, so theta can be computed again in this case too.
"""

from dataclasses import dataclass
from enum import Enum
from math import inf

from spsa.db.run_view import MachineFailures, Obstacles, RunView, TriedBatch
from spsa.db.tables import Iteration
from spsa.lifecycle import Purpose, RunStatus
from spsa.text import plural


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause the run, which cannot go on, and fail the batches that no machine can play.

    Without a batch, an iteration has other counts than its batches.
    """

    reasons: tuple[str, ...]
    batch_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """Give a machine no more batches: of one binary, or of any if `sha256` is None."""

    machine: str
    sha256: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class CloseRound:
    """Complete a round of a validation, which has all its games."""

    iteration: Iteration


@dataclass(frozen=True, slots=True)
class GiveUpRound:
    """Abandon a round of a background validation, which cannot be played."""

    iteration: Iteration
    reason: str | None


Upkeep = Pause | SetAside | CloseRound | GiveUpRound
"""What a run needs from every master of it, whether it tunes or plays a validation."""


class Decision(Enum):
    """What the master of a run does next."""

    BUILD = "start to build the engines of the next iteration"
    OPEN = "open the next iteration, whose engines are built or cannot be built"
    APPLY = "move theta by the oldest open iteration, which has all its games"
    FINISH = "end the run: all iterations are applied"
    IDLE = "wait: games are being played, engines are being built, or the run is paused"
    STOP = "stop: the run has ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """At most `in_flight` iterations in flight; without `wanted` always so many.

    The next one is due when fewer than `wanted` games are ready or being built; an iteration has
    `games`, and `builders` iterations can be built at a time.
    """

    in_flight: int
    wanted: float = inf
    games: int = 0
    builders: float = inf

    def due(self, view: RunView, in_build: int) -> bool:
        """Whether to build the next iteration; `in_build` are being built already."""
        in_flight_wanted = view.opened + in_build + 1 - self.in_flight <= view.run.applied
        games = view.ready_games + in_build * self.games
        return in_flight_wanted and in_build < self.builders and games < self.wanted


FAILURE_BUDGET = 3
"""Batches that a machine may fail while it plays none, before something has to be done."""

BINARY_BUDGET = 3
"""Binaries that a machine is set aside for; with the last of them it is set aside for all."""


def upkeep(view: RunView) -> Upkeep | None:
    """What the run needs before anything else; None if it needs nothing."""
    if (pause := _pause(view)) is not None:
        return pause
    for failed in view.obstacles.failures:
        if _is_at_fault(failed):
            return _set_aside(failed)
    return next((found for row in view.open if (found := _end_of(view, row))), None)


def _pause(view: RunView) -> Pause | None:
    """Why a run cannot go on, if it cannot.

    One that does not run is left as it is, but batches that no machine can play fail all the same.
    """
    seen, is_running = view.obstacles, view.run.status is RunStatus.RUNNING
    given_up = [batch for batch in seen.tried if _is_given_up(batch)]
    reasons, batch_ids = [_told(batch) for batch in given_up], {batch.id for batch in given_up}
    if is_running and seen.miscounted is not None:
        reasons.append(seen.miscounted)
    if is_running and _plays_nothing(seen):
        failed = {batch_id for one in seen.failures for batch_id in one.batch_ids}
        batch_ids |= failed
        reasons.append(
            f"no game counts: {plural(len(seen.failures), 'machine')} failed {len(failed)} batches "
            "and played none; correct the engine, its options or [time_control]: "
            f"{seen.failures[-1].reason}"
        )
    return Pause(tuple(reasons), frozenset(batch_ids)) if reasons else None


def _is_given_up(batch: TriedBatch) -> bool:
    """Whether enough machines have tried a batch, or every one that is there gave it up.

    Claims hand batches out by the same rule, which is `free` in protocol.sql.
    """
    is_tried = batch.machines >= max(2, batch.max_attempts)
    return is_tried or (batch.is_suited and not batch.is_wanted)


def _told(batch: TriedBatch) -> str:
    place = f"iteration {batch.iteration_number} batch {batch.seq}"
    return f"{place}: {batch.reason} (tried by {plural(batch.machines, 'machine')})"


def _plays_nothing(seen: Obstacles) -> bool:
    """Whether every machine there failed several batches, and none of them was played."""
    played = any(one.played or one.played_by_others for one in seen.failures)
    often = all(one.batches >= FAILURE_BUDGET for one in seen.failures)
    return bool(seen.failures) and often and not played and not seen.others_active


def _is_at_fault(failed: MachineFailures) -> bool:
    """Whether a machine fails what others can play.

    If no machine can play a batch, none of them is at fault: the others try it until it fails.
    """
    known = not failed.set_aside.isdisjoint({None, failed.sha256})
    often = failed.batches >= FAILURE_BUDGET and failed.batches > failed.played
    return often and not known and failed.played_by_others > 0


def _set_aside(failed: MachineFailures) -> SetAside:
    only_one = failed.sha256 if len(failed.set_aside) + 1 < BINARY_BUDGET else None
    return SetAside(
        machine=failed.machine,
        sha256=only_one,
        reason=f"failed {plural(failed.batches, 'batch', 'es')} that other machines can play: "
        f"{failed.reason}",
    )


def _end_of(view: RunView, row: Iteration) -> CloseRound | GiveUpRound | None:
    """How an open round of a validation ends now; None if it goes on.

    None is completed while an iteration of the run has other counts than its batches.
    """
    if row.purpose is Purpose.VALIDATE and row.is_played and view.obstacles.miscounted is None:
        return CloseRound(row)
    failed = [batch for batch in view.failed if batch.iteration_id == row.id]
    if row.is_background and failed:
        return GiveUpRound(row, failed[0].last_error)
    return None


def oldest(view: RunView) -> Iteration | None:
    """The open iteration whose result is applied next."""
    return next((it for it in view.open if it.purpose is Purpose.TUNE), None)


def next_decision(
    view: RunView, pacing: Pacing, in_build: int = 0, *, is_built: bool = False
) -> Decision:
    """What the master of a run that needs no upkeep does next.

    `in_build` iterations are being built; the build of the first of them has ended if `is_built`.
    """
    run = view.run
    if run.has_ended:
        return Decision.STOP
    running = run.status is RunStatus.RUNNING
    if is_built and running:
        return Decision.OPEN
    due = view.opened + in_build < run.max_iterations and pacing.due(view, in_build)
    if due and running:
        return Decision.BUILD
    if pacing.wanted == inf and (due or in_build):
        return Decision.IDLE  # a paused run opens nothing, nor applies results past that opening
    if (first := oldest(view)) is not None:
        is_sound = first.is_played and view.obstacles.miscounted is None
        return Decision.APPLY if is_sound else Decision.IDLE
    is_over = run.applied == run.max_iterations  # else games of a match may be ready for the fleet
    if not running or not is_over or any(it.is_background for it in view.open):
        return Decision.IDLE
    return Decision.FINISH
