"""A process full of workers: the very loop and client of `compete --spsa`, on slots that sleep."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from random import Random
from typing import cast

from benches.fleet.pool import NoEngines, SleepingPool
from benches.fleet.scene import SLOTS, Scene, Span, overlap
from spsa import __version__
from spsa.db import Store
from spsa.protocol import WorkerInfo
from worker.batches.database_client import POLL, RECONNECT, DatabaseClient
from worker.batches.loop import Worker
from worker.runner.loop import Interrupts
from worker.runner.pool import Pool
from worker.settings import Settings

PROCESSES = 2
_LEASE = 120.0

Play = Callable[[str, Scene, int, list[SleepingPool]], None]
"""Plays as worker n of a scene at this database for good; appends the pool that it plays in."""


def work(url: str, scene: Scene, number: int, pools: list[SleepingPool]) -> None:
    """One worker of ours, for good."""
    pool = SleepingPool(SLOTS, scene, Random(number))
    pools.append(pool)
    poll = replace(POLL, first=scene.wait(POLL.first), cap=scene.wait(POLL.cap))
    info = WorkerInfo(
        name=f"machine-{number}",
        host=f"machine-{number}",
        platform="simulated",
        cores=SLOTS,
        concurrency=SLOTS,
        version=__version__,
        secret=f"machine-{number}",
    )
    with Store(url, durable=False) as store:
        Worker(
            DatabaseClient(store, info, _LEASE, RECONNECT),
            cast(Pool, pool),
            NoEngines(),
            Settings(),
            Interrupts(),
            poll=poll,
        ).run()


@contextmanager
def fleet(url: str, scene: Scene, play: Play = work) -> Iterator["Fleet"]:
    """All workers of a scene, in a few processes, gone at the end."""
    context = get_context("spawn")
    members, wires = [], []
    for part in range(min(PROCESSES, scene.workers)):
        ours, theirs = context.Pipe()
        numbers = range(part, scene.workers, PROCESSES)
        members.append(
            context.Process(target=_play_in_process, args=(url, scene, numbers, theirs, play))
        )
        wires.append(ours)
        members[-1].start()
    try:
        yield Fleet(members, wires)
    finally:
        for member in members:
            member.kill()
            member.join()


class Fleet:
    """The processes, which say that all play, and at the end of a window what slots did in it."""

    def __init__(self, members: list[SpawnProcess], wires: list["Connection[Span, float]"]) -> None:
        self.pids = [member.pid or 0 for member in members]
        self._wires = wires

    def await_play(self) -> None:
        """Wait until every worker has had something to play; that takes as long as to load it."""
        for wire in self._wires:
            wire.recv()

    def played(self, window: Span) -> float:
        """Seconds of all slots in which there was a game."""
        for wire in self._wires:
            wire.send(window)
        return sum(wire.recv() for wire in self._wires)


def _play_in_process(
    url: str, scene: Scene, numbers: range, wire: "Connection[float, Span]", play: Play
) -> None:
    """Lets workers play until it is asked what they did; says when all have begun."""
    logging.disable(logging.WARNING)
    pools: list[SleepingPool] = []
    for number in numbers:
        threading.Thread(target=play, args=(url, scene, number, pools), daemon=True).start()
        time.sleep(0.005)  # a fleet does not come up in one moment either
    while not (len(pools) == len(numbers) and all(pool.spans for pool in pools)):
        time.sleep(0.005)
    wire.send(0.0)
    window = wire.recv()
    wire.send(sum(overlap(pool.spans, window) for pool in pools))
    os._exit(0)
