"""Scales times, so that every machine searches as many nodes as the target machine of its run.

A worker has the two engines of a batch, but not the one with the unperturbed theta. So each slot
lets both search the same positions in turn, in all slots at once. As far as speed is linear in the
parameters, the mean of the two is the speed at theta, whichever iteration they are of.
"""

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from statistics import median

from spsa.core.game_settings import Book, Scale, TimeControl, TimeKind
from spsa.errors import EngineFault, TuningError
from spsa.openings.book import Opening, load
from spsa.protocol import Claim
from spsa.uci.engine import SearchReply
from spsa.uci.process import Stopped, StopSignal
from worker.runner.clock import game_clock
from worker.runner.engine_pair import EnginePair
from worker.runner.pool import Job, Pool
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


class OutsideScale(TuningError):
    """This machine is too slow or too fast for a run: others play it."""


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


class MachineSpeed:
    """This machine's speed in each run that scales times."""

    def __init__(self, pool: Pool, is_stopping: Callable[[], bool]) -> None:
        self._pool = pool
        self._is_stopping = is_stopping
        self._by_run: dict[int, Speed] = {}

    def is_due(self, claim: Claim) -> bool:
        """Whether the speed has to be measured before a batch of this run is played."""
        known = self._by_run.get(claim.run_id)
        return _wanted(claim) is not None and (known is None or known.is_old)

    def played(self, claim: Claim, nps: float | None) -> None:
        """Note the speed in the games of a batch of this run, where the engines tell it."""
        if nps is not None and (known := self._by_run.get(claim.run_id)) is not None:
            known.in_games.append(nps)

    def scale(self, claim: Claim, job: Job) -> float:
        """By what the times of a batch are multiplied here; 1 where its run does not scale them.

        The speed is measured first if that is due, for some seconds in which no slot may play.

        Raises:
            EngineFault: an engine does not search, or does not count its nodes.
            OutsideScale: this machine is too slow or too fast for the run.
            Stopped: the worker has to stop.
        """
        if (wanted := _wanted(claim)) is None:
            return 1.0
        if self.is_due(claim):
            self._measure(claim, job, wanted)
        nps = self._by_run[claim.run_id].nps
        scale = wanted.target_nps / nps
        if not wanted.least <= scale <= wanted.most:
            raise OutsideScale(
                f"an engine searches {nps:,.0f} nodes a second here, so the scale is {scale:.3g}; "
                f"the run allows {wanted.least:g} to {wanted.most:g}"
            )
        return scale

    def _measure(self, claim: Claim, job: Job, wanted: Scale) -> None:
        before = self._by_run.get(claim.run_id)
        nps = measured(self._pool, job, self._is_stopping)
        self._by_run[claim.run_id] = Speed(nps, time.monotonic())
        log.info(
            "%s: an engine searches %.0f nodes a second here, so times are multiplied by %.3g",
            *(claim.run_name, nps, wanted.target_nps / nps),
        )
        if before is not None and abs(nps / before.nps - 1) > DRIFT:
            log.warning("%s: it was %.0f before", claim.run_name, before.nps)


def _wanted(claim: Claim) -> Scale | None:
    """How the run scales the times of this batch; None where every machine plays by the same."""
    settings = claim.game_settings
    return None if settings.time_control.reproducible else settings.scale


def measured(pool: Pool, job: Job, is_stopping: Callable[[], bool]) -> float:
    """Nodes a second of the engines of this job while as many search as in games.

    EngineFault where they do not count their nodes; Stopped when the worker has to stop.
    """
    games = len(pool) // job.slots
    with ThreadPoolExecutor(games) as threads:
        parts = threads.map(
            lambda slot: list(_searches(pool, slot, job, is_stopping)), range(games)
        )
        replies = [reply for part in parts for reply in part]
    nodes, seconds = (sum(r.nodes for r in replies), sum(r.seconds for r in replies))
    if not nodes:
        raise EngineFault("no nodes", "it does not say how many nodes it searches")
    return nodes / seconds


def _searches(
    pool: Pool, slot: int, job: Job, is_stopping: Callable[[], bool]
) -> Iterator[SearchReply]:
    """What both engines find in each position, one after the other as in a game.

    The positions are the same on every machine, from all over the built-in book.
    """
    book, kind = load(Book()).openings, job.conditions.time_control.kind
    control = TimeControl(kind=kind, low=_SECONDS[kind], high=_SECONDS[kind])
    chess960 = job.pairings[0].opening.chess960
    with (
        closing(StopSignal()) as stop_signal,
        EnginePair(stop_signal, pool.timeouts, pool.limits.of_slot(slot)) as pair,
    ):
        engines = pair.engines(job.plus, job.minus)
        for opening in book[:: len(book) // _POSITIONS][:_POSITIONS]:
            position = Position(Opening.of(replace(opening, chess960=chess960).board()))
            for engine in engines:
                if is_stopping():
                    raise Stopped
                engine.prepare()
                engine.await_ready()
                clock = game_clock(control, control.low, pool.timeouts)
                yield engine.search(position.command, clock.limit(position.turn))
