"""Closed loops through the store, as workers run it: a process for each of them."""

import multiprocessing
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Barrier
from uuid import uuid4

import sqlalchemy as sa

from benches.database.scene import BARE_POLL, BARE_REPORT, LEASE, RESULT, moving, registered
from spsa.db.connection import create_engine, parse_url
from spsa.db.store import open_store


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Cycles a second, and the milliseconds that half of them, and all but a hundredth, took.

    `cycles` is how many there were, those before the measurement began included.
    """

    cycles: int
    rate: float
    p50: float
    p99: float


def measured(milliseconds: list[float], seconds: float, cycles: int) -> Measured:
    """What the times of all cycles of so many seconds say."""
    ordered = sorted(milliseconds) or [float("nan")]
    last = len(ordered) - 1
    return Measured(
        cycles=cycles,
        rate=len(milliseconds) / seconds,
        p50=ordered[last // 2],
        p99=ordered[round(last * 0.99)],
    )


class Ours:
    """Claim a batch and report it."""

    def __init__(self, url: str, number: int) -> None:
        self._store = open_store(url, durable=False)
        self._worker = registered(number)

    def cycle(self) -> None:
        while (claim := self._store.claim(uuid4().hex, self._worker, LEASE)) is None:
            time.sleep(0.001)
        self._store.report(claim, RESULT)


class Bare:
    """Look for an iteration that lacks games, and add some to it."""

    def __init__(self, url: str, number: int) -> None:
        self._engine = create_engine(parse_url(url), durable=True)

    def cycle(self) -> None:
        with self._engine.execution_options(reads_only=True).begin() as connection:
            connection.execute(sa.text(BARE_POLL)).one()
        with self._engine.begin() as connection:
            connection.execute(sa.text(BARE_REPORT))


def play(url: str, bare: bool, processes: int, seconds: float) -> Measured:
    """As many cycles as so many processes make in so many seconds."""
    context = multiprocessing.get_context("spawn")
    meeting = context.Barrier(processes)
    with moving(url), context.Pool(processes, _begin, (meeting,)) as pool:
        cycles = partial(_cycles, url, Bare if bare else Ours, seconds)
        times = pool.map(cycles, range(1, processes + 1), chunksize=1)
    found = [each for many in times for each in many]
    return measured(found, seconds, len(found))


class _Meeting:
    barrier: Barrier


def _begin(barrier: Barrier) -> None:
    _Meeting.barrier = barrier


def _cycles(url: str, kind: type[Ours] | type[Bare], seconds: float, number: int) -> list[float]:
    """One process; the milliseconds of each cycle."""
    player, times = kind(url, number), list[float]()
    player.cycle()
    _Meeting.barrier.wait()
    began = time.perf_counter()
    end = began + seconds
    while began < end:
        player.cycle()
        now = time.perf_counter()
        times.append(1000 * (now - began))
        began = now
    return times
