"""Who plays."""

from typing import Any

from sqlalchemy import update

from spsa.schema import seconds_from_now, workers
from spsa.store.database import Database
from spsa.store.entries import WorkerInfo


class Roster(Database):
    """Where a worker says that it is there."""

    def register_worker(self, info: WorkerInfo) -> int:
        """Write the worker's row, or bring it up to date; its id."""
        facts = {
            "host": info.host,
            "platform": info.platform,
            "cores": info.cores,
            "concurrency": info.concurrency,
            "version": info.version,
            "confinement": info.confinement,
            "last_seen_at": seconds_from_now(0),
        }
        with self._write() as connection:
            changed = update(workers).where(workers.c.name == info.name).values(facts)
            known = connection.scalar(changed.returning(workers.c.id))
            if known is None:
                insert = workers.insert().values(name=info.name, **facts)
                known = connection.scalar(insert.returning(workers.c.id))
            return int(known or 0)

    def touch_worker(self, worker_id: int, nps: float | None = None) -> None:
        """Say that the worker lives, and how many nodes a second an engine makes on it."""
        facts: dict[str, Any] = {"last_seen_at": seconds_from_now(0)}
        if nps is not None:
            facts["nps"] = nps
        with self._write() as connection:
            connection.execute(update(workers).where(workers.c.id == worker_id).values(facts))
