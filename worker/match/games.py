"""A match of two engines: its settings, its pairs and their counts."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from spsa.core.scoring import Model, Sprt, Tally, sprt
from spsa.openings.book import BookOrder, OpeningBook
from spsa.openings.positions import Opening, drawn_time
from spsa.uci.engine import EngineSpec
from worker.runner.count import GameTotals, Speeds
from worker.runner.game import Conditions, Pair, Pairing
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Job, JobFailed, PairPlayed, PairVoid, Pool

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
        return None if self.bounds is None else sprt(tally, *self.bounds, model=Model.NORMALISED)

    def decided(self, tally: Tally) -> bool:
        test = self.test(tally)
        return test is not None and test.accepted is not None

    def opening(self, number: int) -> Opening:
        place = self.start + number
        if self.order is BookOrder.SEQUENTIAL:
            return self.book.in_turn(place)
        return self.book.opening(self.seed, place)

    def job(self, number: int) -> Job:
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

    count: GameTotals = field(default_factory=GameTotals)
    speeds: Speeds = field(default_factory=Speeds)
    seconds: float = 0.0
    failure: str | None = None
    interrupted: bool = False


def play_match(
    match: Match,
    pool: Pool,
    interrupts: Interrupts,
    *,
    on_pair: Callable[[Pair, GameTotals], None],
    on_void: Callable[[PairVoid], None],
) -> PlayedMatch:
    """Play it. The first interrupt breaks off the pairs that are being played; the others count."""
    return _MatchLoop(match, pool, interrupts, on_pair, on_void).run()


class _MatchLoop:
    """A match while it is played: the pairs in the pool, and the counts of those that ended."""

    def __init__(
        self,
        match: Match,
        pool: Pool,
        interrupts: Interrupts,
        on_pair: Callable[[Pair, GameTotals], None],
        on_void: Callable[[PairVoid], None],
    ) -> None:
        self._match = match
        self._pool = pool
        self._interrupts = interrupts
        self._on_pair = on_pair
        self._on_void = on_void
        self._next = 0
        self._active: set[str] = set()
        self._played = PlayedMatch()

    def run(self) -> PlayedMatch:
        self._interrupts.on_each(self._pool.wake)
        began = time.monotonic()
        self._submit_pairs()
        while self._active:
            self._handle_event()
            self._played.interrupted = bool(self._interrupts.count)
            decided = self._match.decided(self._played.count.tally)
            if self._played.interrupted or self._played.failure or decided:
                self._stop_pairs()
            else:
                self._submit_pairs()
        self._played.seconds = time.monotonic() - began
        return self._played

    def _submit_pairs(self) -> None:
        """Keep one pair more in the pool than slots, so that no slot waits for this thread."""
        while len(self._active) <= len(self._pool) and self._next < self._match.pairs:
            job = self._match.job(self._next)
            self._next += 1
            self._active.add(job.key)
            self._pool.submit(job)

    def _stop_pairs(self) -> None:
        for key in self._active:
            self._pool.stop(key)

    def _handle_event(self) -> None:
        match event := self._pool.next_event(_LONG_WAIT):
            case None:
                return
            case PairPlayed(pair=pair, slot=slot):
                self._played.count.add(pair)
                self._played.speeds.add(slot, pair)
                self._on_pair(pair, self._played.count)
            case PairVoid():
                self._played.count.add_void(f"{event.culprit}: {event.reason}")
                self._on_void(event)
            case JobFailed(reason=reason):
                self._played.failure = reason
                self._active.discard(event.key)
            case _:
                self._active.discard(event.key)
