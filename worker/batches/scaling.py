"""Scales times, so that every machine searches as many nodes as the target machine of its run.

A worker has the two engines of a batch, but not the one with the unperturbed theta. So each slot
lets both search the same positions in turn, in all slots at once. As far as speed is linear in the
parameters, the mean of the two is the speed at theta, whichever iteration they are of.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from statistics import median

from spsa.core.game_settings import Book, Scale, TimeControl, TimeKind
from spsa.errors import EngineFault, TuningError
from spsa.openings.book import load
from spsa.openings.positions import Opening
from spsa.protocol import Claim
from spsa.uci.engine import UciEngine
from spsa.uci.process import Stopped, StopSignal
from spsa.uci.search_reply import SearchReply
from worker.batches.active_batch import ActiveBatch
from worker.runner.clock import game_clock
from worker.runner.engine_pair import EnginePair
from worker.runner.game import Conditions
from worker.runner.pool import Job, JobStopped, Pool, objection_to
from worker.runner.position import Position

log = logging.getLogger(__name__)

KEPT_SECONDS = 7_200.0
"""A speed is measured again after so long: a machine gets hot, or gets other work."""

DRIFT = 0.1
"""A change of the speed from one measurement to the next that is worth a warning."""

_BATCHES, _CHANGE = 8, 0.2
"""Of so many batches the median has to differ by so much to measure again at once."""

_POSITIONS = 6
_SECONDS = {TimeKind.MOVETIME: 0.25, TimeKind.CLOCK: 8.0}
"""Of a measured search, or of its clock, of which engines use a thirtieth or so."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Nodes a second of one engine; `measured_at` is of the monotonic clock.

    `in_games` are those of the batches since then, which tell whether it has changed.
    """

    nps: float
    measured_at: float
    in_games: list[float] = field(default_factory=list)

    @property
    def is_old(self) -> bool:
        first, last = self.in_games[:_BATCHES], self.in_games[-_BATCHES:]
        has_changed = len(self.in_games) >= 2 * _BATCHES and (
            abs(median(last) / median(first) - 1) > _CHANGE
        )
        return has_changed or time.monotonic() - self.measured_at > KEPT_SECONDS


class OutsideScale(TuningError):
    """This machine is too slow or too fast for a run: others play it."""


class MeasuredSpeeds:
    """This machine's speed in each run that scales times, measured with all slots busy."""

    def __init__(self, pool: Pool, is_stopping: Callable[[], bool]) -> None:
        self._pool = pool
        self._is_stopping = is_stopping
        self._by_run: dict[int, Speed] = {}

    def is_due(self, claim: Claim) -> bool:
        """Whether the speed has to be measured before a batch of this run is played."""
        if _wanted(claim) is None:
            return False
        known = self._by_run.get(claim.run_id)
        return known is None or known.is_old

    def played(self, claim: Claim, nps: float | None) -> None:
        """Note the speed in the games of a batch of this run, where the engines tell it."""
        if nps is not None and (known := self._by_run.get(claim.run_id)) is not None:
            known.in_games.append(nps)

    def measure(self, claim: Claim, job: Job) -> None:
        """Measure with the engines of this job, for some seconds. No slot may play at that time.

        Raises:
            EngineFault: an engine does not search, or does not count its nodes.
            Stopped: the worker has to stop.
        """
        games = len(self._pool) // job.slots
        openings = _openings(chess960=job.pairings[0].opening.chess960)
        with ThreadPoolExecutor(games) as threads:
            parts = list(
                threads.map(lambda slot: self._searches(slot, job, openings), range(games))
            )
        replies = [reply for part in parts for reply in part]
        nodes, seconds = (sum(r.nodes for r in replies), sum(r.seconds for r in replies))
        if not nodes:
            raise EngineFault("no nodes", "it does not say how many nodes it searches")
        self._keep(claim, Speed(nodes / seconds, time.monotonic()))

    def scale(self, claim: Claim) -> float:
        """By what its times are multiplied here; 1 where the run does not scale them.

        Raises:
            OutsideScale: this machine is too slow or too fast for the run.
        """
        wanted, known = _wanted(claim), self._by_run.get(claim.run_id)
        if wanted is None or known is None:
            return 1.0
        scale = wanted.target_nps / known.nps
        if not wanted.least <= scale <= wanted.most:
            raise OutsideScale(
                f"an engine searches {known.nps:,.0f} nodes a second here, so the scale is "
                f"{scale:.3g}; the run allows {wanted.least:g} to {wanted.most:g}"
            )
        return scale

    def _keep(self, claim: Claim, speed: Speed) -> None:
        before = self._by_run.get(claim.run_id)
        self._by_run[claim.run_id] = speed
        wanted = _wanted(claim)
        scale = 1.0 if wanted is None else wanted.target_nps / speed.nps
        log.info(
            "%s: an engine searches %.0f nodes a second here, so times are multiplied by %.3g",
            *(claim.run_name, speed.nps, scale),
        )
        if before is not None and abs(speed.nps / before.nps - 1) > DRIFT:
            log.warning("%s: it was %.0f before", claim.run_name, before.nps)

    def _searches(self, slot: int, job: Job, openings: Sequence[Opening]) -> Sequence[SearchReply]:
        """What both engines find in each position, one after the other as in a game."""
        limits = self._pool.limits.of_slot(slot)
        with (
            closing(StopSignal()) as stop_signal,
            EnginePair(stop_signal, self._pool.timeouts, limits) as pair,
        ):
            engines = pair.engines(job.plus, job.minus)
            return [
                self._search(engine, opening, job.conditions)
                for opening in openings
                for engine in engines
            ]

    def _search(self, engine: UciEngine, opening: Opening, conditions: Conditions) -> SearchReply:
        if self._is_stopping():
            raise Stopped
        engine.prepare()
        engine.await_ready()
        position = Position(opening)
        seconds = _SECONDS[conditions.time_control.kind]
        control = TimeControl(kind=conditions.time_control.kind, low=seconds, high=seconds)
        clock = game_clock(control, seconds, conditions.timeouts)
        return engine.search(position.command, clock.limit(position.turn))


def _wanted(claim: Claim) -> Scale | None:
    """How the run scales the times of this batch; None where every machine plays by the same."""
    settings = claim.game_settings
    return None if settings.time_control.reproducible else settings.scale


class WaitingJobs:
    """Claimed jobs that wait until the slots have room for them, the first claimed first.

    A batch whose run scales times waits until this machine's speed is known. That is measured when
    no slot plays, because then as many engines search as in games.
    """

    def __init__(self, pool: Pool, speeds: MeasuredSpeeds) -> None:
        self._pool = pool
        self._speeds = speeds
        self._jobs: deque[tuple[ActiveBatch, Job]] = deque()

    def ended(self, batch: ActiveBatch) -> None:
        """Note the speed of a batch that has been played."""
        self._speeds.played(batch.claim, batch.count.nps())

    def add(self, batch: ActiveBatch, job: Job) -> None:
        """TuningError where its engines have more threads or memory than this machine can give."""
        if (objection := objection_to(job, len(self._pool), self._pool.limits)) is not None:
            raise TuningError(objection)
        self._jobs.append((batch, job))

    def withdraw_queued_jobs(self) -> None:
        """Withdraw all; JobStopped follows for each, as from the pool."""
        while self._jobs:
            self._pool.events.put(JobStopped(self._jobs.popleft()[1].key))

    def wanted(self, active: Mapping[str, ActiveBatch]) -> int:
        """How many batches to claim: one a slot, and a few more while slots play their last pairs.

        So no slot waits for the database, and no claimed batch waits long for a slot. None while
        claimed batches wait for room.
        """
        if self._jobs:
            return 0
        slots, ending = len(self._pool), sum(batch.on_last_pair for batch in active.values())
        busy = sum(batch.slots for batch in active.values())
        return max(0, slots + min(ending, 1 + slots // 4) - busy)

    def submit(
        self, active: Mapping[str, ActiveBatch]
    ) -> Iterator[tuple[ActiveBatch, TuningError]]:
        """Submit those for which there is room; yields those that this machine cannot play.

        `active` are all batches of the worker.
        """
        while self._jobs and self._has_room(*self._jobs[0], active):
            batch, job = self._jobs[0]
            try:
                self._measure(batch, job)
            except Stopped:
                return  # the worker returns it
            except TuningError as error:
                yield batch, error
            else:
                batch.started, batch.slots = time.monotonic(), job.slots
                self._pool.submit(scaled(job, batch.scale))
            self._jobs.popleft()

    def _has_room(self, batch: ActiveBatch, job: Job, active: Mapping[str, ActiveBatch]) -> bool:
        busy = [one.slots for one in active.values() if one.slots]
        if self._speeds.is_due(batch.claim):
            return not busy
        # The pool itself keeps jobs of one slot until one is free, and so no slot waits for this
        # thread between two of them.
        return max(*busy, job.slots, 1) == 1 or sum(busy) + job.slots <= len(self._pool)

    def _measure(self, batch: ActiveBatch, job: Job) -> None:
        if self._speeds.is_due(batch.claim):
            self._speeds.measure(batch.claim, job)
        batch.scale = self._speeds.scale(batch.claim)


def scaled(job: Job, scale: float) -> Job:
    """The job with its times multiplied."""
    conditions = job.conditions
    return replace(
        job,
        pairings=tuple(replace(one, time=scale * one.time) for one in job.pairings),
        conditions=replace(conditions, time_control=conditions.time_control.scaled(scale)),
    )


def _openings(*, chess960: bool) -> Sequence[Opening]:
    """The same ones on every machine, from all over the built-in book."""
    book = load(Book()).openings
    found = book[:: len(book) // _POSITIONS][:_POSITIONS]
    return [Opening.of(replace(one, chess960=chess960).board()) for one in found]
