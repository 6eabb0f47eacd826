"""Who plays."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, insert, update

from spsa.schema import seconds_from_now, workers
from spsa.store.claims import Given
from spsa.store.database import Database
from spsa.store.entries import WorkerInfo

FACTS = ("host", "platform", "cores", "concurrency", "version", "confinement")
"""What a worker says of itself besides its name."""


def known_again(name: Given, facts: Mapping[str, Any]) -> sa.Update:
    """Bring the row of a worker up to date; answers with its id."""
    seen = {"last_seen_at": seconds_from_now(0), **facts}
    return update(workers).where(workers.c.name == name).values(seen).returning(workers.c.id)


def new_here(name: Given, facts: Mapping[str, Any]) -> sa.Insert:
    """Write the row of a worker; answers with its id."""
    seen = {"last_seen_at": seconds_from_now(0), **facts}
    return insert(workers).values(name=name, **seen).returning(workers.c.id)


def alive(worker_id: Given, nps: Given) -> sa.Update:
    """A worker was heard of; where it has nothing to say of its speed, what it said last holds."""
    known = {"last_seen_at": seconds_from_now(0), "nps": func.coalesce(nps, workers.c.nps)}
    return update(workers).where(workers.c.id == worker_id).values(known)


class Roster(Database):
    """Where a worker says that it is there."""

    def register_worker(self, info: WorkerInfo) -> int:
        """Write the worker's row, or bring it up to date; its id."""
        name, facts = sa.literal(info.name), {fact: getattr(info, fact) for fact in FACTS}
        with self._write() as connection:
            known = connection.scalar(known_again(name, facts))
            return int(known or connection.scalar(new_here(name, facts)) or 0)

    def touch_worker(self, worker_id: int, nps: float | None = None) -> None:
        """Say that the worker lives, and how many nodes a second an engine makes on it."""
        with self._write() as connection:
            connection.execute(alive(sa.literal(worker_id), sa.literal(nps, sa.Double)))
