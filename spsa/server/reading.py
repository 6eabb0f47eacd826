"""What is costly to read of a run, for pages and their JSON, kept for a few seconds."""

from collections.abc import Callable, Sequence
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

from spsa.db import Store
from spsa.db.read_queries import WorkerShare
from spsa.db.tables import Run
from spsa.report.alarms import look
from spsa.report.figures import Figure, figures
from spsa.report.report import POINTS, RunHistory, history
from spsa.report.status import Status
from spsa.report.workers import FleetMember, MachineReport, fleet, machine_reports, worker_parts

MIN_KEPT_SECONDS = 5.0
"""As long as a page waits before it asks again."""

KEPT_PER_COST = 10.0
"""A value that took a second to read is kept for ten: reading never takes more than a tenth."""

COMPARED_SECONDS = 30.0
"""For what changes slowly: the machines compared over many iterations."""

MAX_VALUES = 50_000
MIN_POINTS = 50
"""Of a path, where many parameters share `MAX_VALUES`."""

Value = TypeVar("Value")


class ShortCache(Generic[Value]):
    """Keeps values for a few seconds by key; who asks while one is being read waits for it."""

    def __init__(self, seconds: float = MIN_KEPT_SECONDS) -> None:
        self._seconds = seconds
        self._lock = Lock()
        self._kept: dict[object, tuple[float, Value]] = {}
        """Until when each is kept, and the value."""

    def get(self, key: object, read: Callable[[], Value]) -> Value:
        with self._lock:
            began = monotonic()
            self._kept = {one: kept for one, kept in self._kept.items() if kept[0] >= began}
            if key not in self._kept:
                value, now = read(), monotonic()
                until = now + max(self._seconds, KEPT_PER_COST * (now - began))
                self._kept[key] = until, value
            return self._kept[key][1]


class Reader:
    """Reads one database for any number of requests at a time; writes nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._workers: ShortCache[tuple[FleetMember, ...]] = ShortCache()
        self._parts: ShortCache[Sequence[WorkerShare]] = ShortCache(COMPARED_SECONDS)
        self._machines: ShortCache[Sequence[MachineReport]] = ShortCache(COMPARED_SECONDS)
        self._histories: ShortCache[RunHistory] = ShortCache()
        self._figures: ShortCache[dict[str, Figure]] = ShortCache()
        self._statuses: ShortCache[Status] = ShortCache()

    def status(self, run: Run) -> Status:
        """With all alarms."""
        key = run.id, run.status
        return self._statuses.get(key, lambda: look(self._store, run, self.machines(run)))

    def history(self, run: Run) -> RunHistory:
        """Of as many points as a page can show."""
        points = min(POINTS, max(MIN_POINTS, MAX_VALUES // max(1, len(run.theta))))
        return self._histories.get(run.id, lambda: history(self._store, run, points))

    def figures(self, run: Run) -> dict[str, Figure]:
        return self._figures.get(run.id, lambda: figures(self.history(run)))

    def workers(self, run: Run) -> tuple[FleetMember, ...]:
        """All workers, with what each has played of a run."""
        return self._workers.get(
            run.id,
            lambda: fleet(self._store, self._store.worker_shares(run.id), self.machines(run)),
        )

    def machines(self, run: Run) -> Sequence[MachineReport]:
        """By the last iterations."""
        return self._machines.get(run.id, lambda: machine_reports(self.parts(run)))

    def parts(self, run: Run) -> Sequence[WorkerShare]:
        """What workers have played of the last iterations, in groups of them."""
        return self._parts.get(run.id, lambda: worker_parts(self._store, run))
