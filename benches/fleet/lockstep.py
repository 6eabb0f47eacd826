"""The design that this one grew from, in the same simulation: one iteration at a time.

A master builds two engines, opens an iteration, looks every 30 s whether it has its games, and
begins anew. A worker plays ten games at a time for the iteration that is open and adds up what came
out; where none is open it looks again 10 s later. Nothing is reserved, so that games are played for
an iteration that has enough.
"""

import heapq
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import sqlalchemy as sa

from benches.fleet.pool import SleepingPool
from benches.fleet.scene import BATCH_GAMES, BUILD_SECONDS, SLOTS, Scene
from spsa.db.database import create_engine
from spsa.db.url import parse_url

_MASTER_POLL, _WORKER_POLL = 30.0, 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS lockstep (number INTEGER PRIMARY KEY, target_games INTEGER NOT NULL,
    games_played INTEGER NOT NULL DEFAULT 0, status TEXT NOT NULL DEFAULT 'pending')"""
_OPEN = "INSERT INTO lockstep (number, target_games) VALUES (:number, :games)"
_LOOK = "SELECT games_played >= target_games FROM lockstep WHERE number = :number"
_CLOSE = "UPDATE lockstep SET status = 'complete' WHERE number = :number"
_FIND = """SELECT number FROM lockstep WHERE status IN ('pending', 'in_progress')
    AND games_played < target_games ORDER BY number DESC LIMIT 1"""
_BEGIN = "UPDATE lockstep SET status = 'in_progress' WHERE number = :number AND status = 'pending'"
_ADD = "UPDATE lockstep SET games_played = games_played + :games WHERE number = :number"


class Table:
    """The one table of that design."""

    def __init__(self, url: str) -> None:
        self._engine = create_engine(parse_url(url), durable=True)

    def make(self) -> None:
        self.change(_TABLE)

    def change(self, statement: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement), values)

    def look(self, statement: str, **values: Any) -> Any:
        with self._engine.execution_options(reads_only=True).begin() as connection:
            return connection.scalar(sa.text(statement), values)


def work(url: str, scene: Scene, number: int, pools: list[SleepingPool]) -> None:
    """One worker, for good."""
    pool = SleepingPool(SLOTS, scene, Random(number))
    pools.append(pool)
    table = Table(url)
    while True:
        found = table.look(_FIND)
        if found is None:
            time.sleep(scene.wait(_WORKER_POLL))
            continue
        table.change(_BEGIN, number=found)
        _play(pool, scene, Random())
        table.change(_ADD, games=BATCH_GAMES, number=found)


def _play(pool: SleepingPool, scene: Scene, chance: Random) -> None:
    """A batch on all slots, each of which takes the next game when it falls free."""
    free = [time.monotonic()] * SLOTS
    for _ in range(BATCH_GAMES):
        begin = heapq.heappop(free)
        end = begin + scene.game(chance)
        pool.spans.append((begin, end))
        heapq.heappush(free, end)
    time.sleep(max(0.0, max(free) - time.monotonic()))


@contextmanager
def master(url: str, scene: Scene) -> Iterator[None]:
    """That design's master, as long as this lasts."""
    stopping = threading.Event()
    Table(url).make()
    mover = threading.Thread(target=_move, args=(Table(url), scene, stopping))
    mover.start()
    try:
        yield
    finally:
        stopping.set()
        mover.join()


def _move(table: Table, scene: Scene, stopping: threading.Event) -> None:
    number = 0
    while not stopping.wait(scene.wait(BUILD_SECONDS)):
        number += 1
        table.change(_OPEN, number=number, games=scene.games)
        while not (stopping.is_set() or table.look(_LOOK, number=number)):
            stopping.wait(scene.wait(_MASTER_POLL))
        table.change(_CLOSE, number=number)
