"""Claims and reports a second: direct workers, and remote ones through the server.

Each connection is a worker of its own that claims a batch and reports it at once. A master applies
the iterations that they finish and opens new ones, as in a run.
"""

import multiprocessing
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal
from uuid import uuid4

from benches.database.scene import (
    LEASE,
    claimed,
    new_iteration,
    new_run,
    reported,
    unmoved,
    worker_info,
)
from spsa.db import Store
from spsa.errors import TooManyRequests
from spsa.lifecycle import MachineRole
from spsa.protocol import WorkerStore
from worker.remote import RemoteStore

Way = Literal["direct", "HTTP"]
IN_FLIGHT = 8
BATCHES = 200
_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """Pairs of a claim and a report a second, and how long a pair takes in milliseconds."""

    rate: float
    p50: float
    p99: float


def measured(url: str, way: Way, connections: int, seconds: float) -> Measured:
    """Play batches of the database at `url` for some seconds."""
    with _moving(url), _address(url, way) as places:
        jobs = [(places[n % len(places)], n, seconds) for n in range(connections)]
        groups = [jobs[i::_PROCESSES] for i in range(min(_PROCESSES, connections))]
        with multiprocessing.get_context("spawn").Pool(len(groups)) as pool:
            times = list(chain.from_iterable(pool.map(_play_together, groups)))
    cuts = statistics.quantiles(times, n=100)
    return Measured(len(times) / seconds, 1000 * cuts[49], 1000 * cuts[98])


Place = tuple[str, str | None]
"""The URL of a database, or that of a server and a token."""


@contextmanager
def _address(url: str, way: Way) -> Iterator[Sequence[Place]]:
    """Where the workers go: a token serves few of them, as on real machines."""
    if way == "direct":
        yield [(url, None)]
        return
    with Store(url) as store:
        tokens = [
            store.invite_machine(f"bench-{uuid4().hex[:8]}", MachineRole.WORKER, "b")
            for _ in range(8)
        ]
    command = [sys.executable, "-m", "spsa.master", "serve", "--port", "0", "--database-url", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = next(line for line in server.stdout if "http://" in line)
        address = address[address.index("http://") :].split()[0].rstrip("/")
        try:
            yield [(address, token) for token in tokens]
        finally:
            server.kill()


@contextmanager
def _moving(url: str) -> Iterator[None]:
    """A master that keeps `IN_FLIGHT` iterations open for as long as this lasts."""
    stopping = threading.Event()
    store = Store(url)
    run = store.create_run(new_run(f"bench-{uuid4().hex[:8]}", 100_000))
    lease = store.acquire_master_lease(run.id, "bench", LEASE)
    for k in range(1, IN_FLIGHT + 1):
        store.open_iteration(lease, new_iteration(k, 0, games=2 * BATCHES))

    def move() -> None:
        while not stopping.wait(0.02):
            view = store.tick(lease, LEASE)
            if view.open and view.open[0].is_played:
                store.apply(lease, view.open[0].id, view.run, unmoved(view.run))
                k = view.opened + 1
                store.open_iteration(
                    lease, new_iteration(k, view.run.applied + 1, games=2 * BATCHES)
                )

    mover = threading.Thread(target=move)
    mover.start()
    try:
        yield
    finally:
        stopping.set()
        mover.join()
        store.stop(run.name, "bench", "the bench is over")
        store.close()


def _play_together(jobs: Sequence[tuple[Place, int, float]]) -> list[float]:
    """The times of all pairs of some workers, each of which is a thread."""
    times: list[list[float]] = [[] for _ in jobs]
    threads = [
        threading.Thread(target=_play, args=(*job, found))
        for job, found in zip(jobs, times, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(chain.from_iterable(times))


def _play(place: Place, number: int, seconds: float, times: list[float]) -> None:
    store = _opened(place)
    name = f"bench-{number}-{uuid4().hex[:8]}"  # of this cell alone
    worker = store.ask(
        replace(worker_info(number), name=name, host=name, secret=name if place[1] is None else "")
    )
    until = time.monotonic() + seconds
    while (began := time.monotonic()) < until:
        try:
            claim = claimed(store, uuid4().hex, worker.id, 60.0)
        except TooManyRequests:
            continue
        if claim is None:
            time.sleep(0.002)
            continue
        reported(store, claim)
        times.append(time.monotonic() - began)


def _opened(place: Place) -> WorkerStore:
    where, token = place
    found: Store | RemoteStore
    found = Store(where, durable=False) if token is None else RemoteStore(where, token)
    return found
