"""Closed loops through the store, as workers run it: some processes, with threads in each."""

import multiprocessing
import threading
import time
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import sqlalchemy as sa

from benches.database.scene import BARE_POLL, BARE_REPORT, LEASE, RESULT
from spsa.connection import create_engine, parse_url
from spsa.store import Store, open_store

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
    """Claim a batch and report it."""

    def __init__(self, url: str, worker_id: int) -> None:
        self._store: Store = open_store(url, durable=False)
        self._worker_id = worker_id

    def cycle(self) -> None:
        claim = self._store.claim(uuid4().hex, self._worker_id, LEASE)
        if claim is None:
            raise RuntimeError("the bench has no batch left: it was made with too few")
        self._store.report(claim, RESULT)


class Bare:
    """Look for an iteration that lacks games, and add some to it."""

    def __init__(self, url: str, worker_id: int) -> None:
        self._engine = create_engine(parse_url(url), durable=True)

    def cycle(self) -> None:
        with self._engine.execution_options(reads_only=True).begin() as connection:
            connection.execute(sa.text(BARE_POLL)).one()
        with self._engine.begin() as connection:
            connection.execute(sa.text(BARE_REPORT))


SCHEMES: dict[str, type[Ours] | type[Bare]] = {"ours": Ours, "bare increment": Bare}


def play(url: str, scheme: str, connections: int, seconds: float) -> Measured:
    """As many cycles as `connections` make in so many seconds; each has its own store."""
    processes = min(PROCESSES, connections)
    shares = [range(1 + n, connections + 1, processes) for n in range(processes)]
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, initializer=_meet, initargs=(context.Barrier(processes),)) as pool:
        times = pool.map(partial(_process, url, scheme, seconds), shares, chunksize=1)
    return measured([each for many in times for each in many], seconds)


class _Meeting:
    barrier: threading.Barrier


def _meet(barrier: threading.Barrier) -> None:
    _Meeting.barrier = barrier


def _process(url: str, scheme: str, seconds: float, worker_ids: range) -> list[float]:
    """One process of several connections; the milliseconds of each cycle."""
    players = [SCHEMES[scheme](url, worker_id) for worker_id in worker_ids]
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
