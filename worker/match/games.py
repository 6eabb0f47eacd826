"""A match of two engines: its settings, its pairs and their sums."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from spsa.core.scoring import Sprt, Tally, sprt
from spsa.openings.book import BookOrder, Opening, OpeningBook, drawn_time
from spsa.protocol import BatchResult
from spsa.uci.engine import EngineSpec
from worker.runner.game import (
    NOTHING_PLAYED,
    Conditions,
    Pairing,
    with_pair,
    with_void,
)
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Ended, Event, Job, JobFailed, PairPlayed, PairVoid, Pool

_LONG_WAIT = 3600.0  # seconds; an interrupt ends the wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """`first` is plus in all counts; the openings and times follow from `seed`.

    The first pair plays opening number `start`, counted from 0, of the order. With `bounds` (elo0
    and elo1 in normalised Elo) the match ends when a sequential test accepts one of them.
    """

    first: EngineSpec
    second: EngineSpec
    pairs: int
    seed: int
    book: OpeningBook
    conditions: Conditions
    order: BookOrder = BookOrder.RANDOM
    start: int = 0
    bounds: tuple[float, float] | None = None

    def test(self, tally: Tally) -> Sprt | None:
        """The state of the sequential test, if the match has one."""
        return None if self.bounds is None else sprt(tally, *self.bounds)

    def decided(self, tally: Tally) -> bool:
        test = self.test(tally)
        return test is not None and test.accepted is not None

    def opening(self, number: int) -> Opening:
        place = self.start + number
        if self.order is BookOrder.SEQUENTIAL:
            return self.book.in_turn(place)
        return self.book.opening(self.seed, place)

    def job(self, number: int) -> Job:
        """The job of one pair."""
        pairing = Pairing(
            number=number,
            opening=self.opening(number),
            time=drawn_time(self.conditions.time_control, self.seed, number),
        )
        return Job(
            key=str(number),
            plus=self.first,
            minus=self.second,
            pairings=(pairing,),
            conditions=self.conditions,
        )


@dataclass(slots=True)
class PlayedMatch:
    """A match as far as it was played; `failure` is why it ended early."""

    count: BatchResult = NOTHING_PLAYED
    seconds: float = 0.0
    failure: str | None = None

    def add(self, event: Event) -> None:
        match event:
            case PairPlayed(pair=pair):
                self.count = with_pair(self.count, pair)
            case PairVoid(fault=fault):
                self.count = with_void(self.count, f"{fault.culprit}: {fault.reason}")
            case JobFailed(reason=reason):
                self.failure = reason


def play_jobs(
    jobs: Iterator[Job], pool: Pool, interrupts: Interrupts, handle: Callable[[Event], bool]
) -> None:
    """Have jobs played until there are none, an interrupt comes, or `handle` returns False.

    `handle` gets each event. Games that are still being played in the end are broken off.
    """
    interrupts.on_each(pool.wake)
    active: set[str] = set()
    goes_on = True
    while goes_on or active:
        # One job more in the pool than slots, so that no slot waits for this thread.
        for job in islice(jobs, len(pool) + 1 - len(active)) if goes_on else ():
            active.add(job.key)
            pool.submit(job)
        if not active:
            return
        event = pool.next_event(_LONG_WAIT)
        if isinstance(event, Ended):
            active.discard(event.key)
        goes_on = (event is None or handle(event)) and goes_on and not interrupts.count
        if not goes_on:
            for key in active:
                pool.stop(key)
