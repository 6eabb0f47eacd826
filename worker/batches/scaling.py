"""Scales times, so that every machine searches as many nodes as the target machine of its run.

A worker has the two engines of a batch, but not the one with the unperturbed theta. So each slot
lets both search the same positions in turn, in all slots at once. As far as speed is linear in the
parameters, the mean of the two is the speed at theta, whichever iteration they are of.
"""

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

from spsa.core.game_settings import Book, Scale, TimeControl, TimeKind
from spsa.errors import EngineFault, TuningError
from spsa.openings.book import Opening, load
from spsa.protocol import Claim
from spsa.uci.engine import SearchReply
from spsa.uci.process import StopSignal
from worker.runner.clock import game_clock
from worker.runner.engine_pair import EnginePair
from worker.runner.pool import Job, Pool
from worker.runner.position import Position

log = logging.getLogger(__name__)

KEPT_SECONDS = 7_200.0
"""A speed is measured again after so long: a machine gets hot, or gets other work."""

_POSITIONS = 6
_SECONDS = {TimeKind.MOVETIME: 0.25, TimeKind.CLOCK: 8.0}
"""Of a measured search, or of its clock, of which engines use a thirtieth or so."""


class OutsideScale(TuningError):
    """This machine is too slow or too fast for a run: others play it."""


class MachineSpeed:
    """This machine's speed in each run that scales times: nodes a second, and when measured."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._by_run: dict[int, tuple[float, float]] = {}

    def is_due(self, claim: Claim) -> bool:
        """Whether the speed has to be measured before a batch of this run is played."""
        _, measured_at = self._by_run.get(claim.run_id, (0.0, float("-inf")))
        return _wanted(claim) is not None and time.monotonic() - measured_at > KEPT_SECONDS

    def scale(self, claim: Claim, job: Job) -> float:
        """By what the times of a batch are multiplied here; 1 where its run does not scale them.

        The speed is measured first if that is due, for some seconds in which no slot may play.

        Raises:
            EngineFault: an engine does not search, or does not count its nodes.
            OutsideScale: this machine is too slow or too fast for the run.
        """
        if (wanted := _wanted(claim)) is None:
            return 1.0
        if is_due := self.is_due(claim):
            self._by_run[claim.run_id] = measured(self._pool, job), time.monotonic()
        nps, _ = self._by_run[claim.run_id]
        scale = wanted.target_nps / nps
        found = f"an engine searches {nps:,.0f} nodes a second here"
        if not wanted.least <= scale <= wanted.most:
            raise OutsideScale(
                f"{found}, so the scale is {scale:.3g}; "
                f"the run allows {wanted.least:g} to {wanted.most:g}"
            )
        if is_due:
            log.info("%s: %s, so times are multiplied by %.3g", claim.run_name, found, scale)
        return scale


def _wanted(claim: Claim) -> Scale | None:
    """How the run scales the times of this batch; None where every machine plays by the same."""
    settings = claim.game_settings
    return None if settings.time_control.reproducible else settings.scale


def measured(pool: Pool, job: Job) -> float:
    """Nodes a second of the engines of this job while as many search as in games.

    EngineFault where they do not count their nodes.
    """
    games = len(pool) // job.slots
    with ThreadPoolExecutor(games) as threads:
        parts = threads.map(lambda slot: list(_searches(pool, slot, job)), range(games))
        replies = [reply for part in parts for reply in part]
    nodes, seconds = (sum(r.nodes for r in replies), sum(r.seconds for r in replies))
    if not nodes:
        raise EngineFault("no nodes", "it does not say how many nodes it searches")
    return nodes / seconds


def _searches(pool: Pool, slot: int, job: Job) -> Iterator[SearchReply]:
    """What both engines find in each position, one after the other as in a game.

    The positions are the same on every machine, from all over the built-in book.
    """
    book, kind = load(Book()).openings, job.conditions.time_control.kind
    control = TimeControl(kind=kind, low=_SECONDS[kind], high=_SECONDS[kind])
    chess960 = job.pairings[0].opening.chess960
    with (
        closing(StopSignal()) as stop_signal,
        EnginePair(stop_signal, pool.limits.of_slot(slot)) as pair,
    ):
        engines = pair.engines(job.plus, job.minus)
        for opening in book[:: len(book) // _POSITIONS][:_POSITIONS]:
            position = Position(Opening.of(replace(opening, chess960=chess960).board()))
            for engine in engines:
                engine.prepare()
                engine.await_ready()
                clock = game_clock(control, control.low, pool.limits)
                yield engine.search(position.command, clock.limit(position.turn))
