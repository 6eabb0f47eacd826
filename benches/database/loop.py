"""Closed loops through the store, as workers run it: some processes, with threads in each."""

import multiprocessing
import threading
import time
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

import sqlalchemy as sa

from benches.database.scene import BARE_POLL, BARE_REPORT, LEASE, RESULT
from spsa.connection import create_engine, parse_url
from spsa.store import Claim, Store, open_store

PROCESSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Cycles a second, and the milliseconds that half of them, and all but a hundredth, took."""

    rate: float
    p50: float
    p99: float


def measured(milliseconds: list[float], seconds: float) -> Measured:
    """What the times of all cycles of so many seconds say."""
    ordered = sorted(milliseconds) or [float("nan")]
    last = len(ordered) - 1
    return Measured(
        rate=len(milliseconds) / seconds,
        p50=ordered[last // 2],
        p99=ordered[round(last * 0.99)],
    )


class Ours:
    """Hand in the last batches and take out as many."""

    def __init__(self, url: str, worker_id: int, slots: int) -> None:
        self._store: Store = open_store(url, durable=False)
        self._worker_id, self._slots = worker_id, slots
        self._held: tuple[Claim, ...] = ()

    def cycle(self) -> None:
        played = [(claim, RESULT) for claim in self._held]
        wanted = [uuid4().hex for _ in range(self._slots)]
        self._held = self._store.exchange(played, wanted, self._worker_id, LEASE).claims
        if len(self._held) < self._slots:
            raise RuntimeError("the bench has no batch left: it was made with too few")


class Bare:
    """Look for an iteration that lacks games, and add some to it."""

    def __init__(self, url: str, worker_id: int, slots: int) -> None:
        self._engine = create_engine(parse_url(url), durable=True)

    def cycle(self) -> None:
        with self._engine.execution_options(reads_only=True).begin() as connection:
            connection.execute(sa.text(BARE_POLL)).one()
        with self._engine.begin() as connection:
            connection.execute(sa.text(BARE_REPORT))


SCHEMES: dict[str, type[Ours] | type[Bare]] = {"ours": Ours, "bare increment": Bare}


def play(url: str, scheme: str, connections: int, slots: int, seconds: float) -> Measured:
    """As many cycles as `connections` make in so many seconds; each has its own store.

    `slots` is how many batches one call of ours hands in and takes out.
    """
    processes = min(PROCESSES, connections)
    shares = [range(1 + n, connections + 1, processes) for n in range(processes)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_meet, initargs=(context.Barrier(processes),)) as pool:
        times = pool.map(partial(_process, url, scheme, slots, seconds), shares, chunksize=1)
    found = measured([each for many in times for each in many], seconds)
    return found if scheme != "ours" else replace(found, rate=found.rate * slots)


class _Meeting:
    barrier: threading.Barrier


def _meet(barrier: threading.Barrier) -> None:
    _Meeting.barrier = barrier


def _process(url: str, scheme: str, slots: int, seconds: float, worker_ids: range) -> list[float]:
    """One process of several connections; the milliseconds of each call."""
    players = [SCHEMES[scheme](url, worker_id, slots) for worker_id in worker_ids]
    times: list[float] = []
    for player in players:
        player.cycle()
    _Meeting.barrier.wait()
    end = time.perf_counter() + seconds
    threads = [threading.Thread(target=_play, args=(player, end, times)) for player in players]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _play(player: Ours | Bare, end: float, times: list[float]) -> None:
    began = time.perf_counter()
    while began < end:
        player.cycle()
        now = time.perf_counter()
        times.append(1000 * (now - began))
        began = now
