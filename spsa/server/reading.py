"""What pages and their JSON show, read from the database: values of `spsa.report`, kept briefly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

import numpy as np

from spsa.db.batch_tables import Batch, BatchFailure
from spsa.db.purge_records import PurgedResult
from spsa.db.rows import WorkerPart, WorkerShare
from spsa.db.run_tables import Event, Iteration, Run
from spsa.db.run_view import RunOverview
from spsa.db.store import Store
from spsa.errors import NothingToDo
from spsa.master.elo_gained import EstimatedGain, gain_of_parameter
from spsa.report.alarms import with_alarms, with_history
from spsa.report.history import (
    COMPARED,
    POINTS,
    ParameterPath,
    Played,
    RunHistory,
    added,
    history,
    worker_parts,
)
from spsa.report.machines import MachineReport, machine_reports
from spsa.report.parameters import ParameterStatus, parameters
from spsa.report.status import Status, status
from spsa.report.workers import FleetMember, fleet

MIN_KEPT_SECONDS = 2.0
KEPT_PER_COST = 10.0
"""A value that took a second to read is kept for ten: reading never takes more than a tenth."""

MAX_VALUES = 50_000
MIN_POINTS = 50
"""Of a path, where many parameters share `MAX_VALUES`."""

PAGE = 50
MAX_PAGE = 500

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _CachedValue(Generic[Value]):
    value: Value
    until: float


class ShortCache(Generic[Value]):
    """Keeps values for a few seconds by key; who asks while one is being read waits for it."""

    def __init__(self, most: int = 100) -> None:
        self._lock = Lock()
        self._locks: dict[object, Lock] = {}
        self._kept: dict[object, _CachedValue[Value]] = {}
        self._most = most

    def get(self, key: object, read: Callable[[], Value]) -> Value:
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            kept = self._kept.get(key)
            if kept is None or kept.until < monotonic():
                kept = self._kept[key] = _timed(read)
                self._forget_the_oldest()
            return kept.value

    def _forget_the_oldest(self) -> None:
        with self._lock:
            if len(self._kept) > self._most:
                del self._kept[min(self._kept, key=lambda key: self._kept[key].until)]


def _timed(read: Callable[[], Value]) -> _CachedValue[Value]:
    began = monotonic()
    value = read()
    now = monotonic()
    return _CachedValue(value, now + max(MIN_KEPT_SECONDS, KEPT_PER_COST * (now - began)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterView:
    """One parameter: as it stands, its path, and its part of the estimated gain.

    `path` is None for a frozen parameter, `effect` where the rule has no estimate.
    """

    tuned: ParameterStatus
    path: ParameterPath | None
    effect: EstimatedGain | None


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker of the fleet and what it has played of a run, if anything."""

    member: FleetMember
    share: WorkerShare | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationView:
    """An iteration with its parameters and its batches."""

    iteration: Iteration
    batches: Sequence[Batch]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """A batch of an iteration, the machines that failed it, and its results that were purged."""

    iteration: Iteration
    batch: Batch
    is_last: bool
    failures: Sequence[BatchFailure]
    purged: Sequence[PurgedResult]

    @property
    def pairs(self) -> range:
        """The numbers of its pairs in the run."""
        first = self.batch.first_pair
        return range(first, first + self.batch.games // 2)


class Reader:
    """Reads one database for any number of requests at a time; writes nothing.

    The methods raise NothingToDo for what is not there.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shares: ShortCache[Sequence[WorkerShare]] = ShortCache()
        self._last: ShortCache[Sequence[WorkerPart]] = ShortCache()
        self._compared: ShortCache[tuple[MachineReport, ...]] = ShortCache()
        self._histories: ShortCache[RunHistory] = ShortCache()
        self._statuses: ShortCache[Status] = ShortCache()
        self._whole_statuses: ShortCache[Status] = ShortCache()

    def runs(self) -> Sequence[RunOverview]:
        return self._store.run_overviews()

    def fleet(self) -> Sequence[FleetMember]:
        return fleet(self._store)

    def run(self, name: str | None) -> Run:
        """The run of this name, or the newest one."""
        return self._store.run(name)

    def status(self, run: Run) -> Status:
        """Without alarms."""
        return self._statuses.get((run.id, run.status), lambda: status(self._store, run))

    def whole_status(self, run: Run) -> Status:
        """With all alarms, those of its history too."""

        def read() -> Status:
            return with_history(with_alarms(self._store, self.status(run)), self.history(run))

        return self._whole_statuses.get((run.id, run.status), read)

    def history(self, run: Run) -> RunHistory:
        points = min(POINTS, max(MIN_POINTS, MAX_VALUES // len(run.theta)))

        def read() -> RunHistory:
            workers = added(part.share for part in self._parts(run))
            known = Played(workers=workers, machines=self._machines(run))
            return history(self._store, run, points, known=known)

        return self._histories.get(run.id, read)

    def parameter(self, run: Run, name: str) -> ParameterView:
        tuned = next((p for p in parameters(run) if p.name == name), None)
        if tuned is None:
            raise NothingToDo(f"run {run.name} has no parameter {name!r}")
        found = self.history(run)
        at = next((i for i, path in enumerate(found.parameters) if path.name == name), None)
        if at is None:
            return ParameterView(tuned=tuned, path=None, effect=None)
        steps = np.array([[v / p.step for v in p.theta] for p in found.parameters]).T
        effect = gain_of_parameter(run, steps, at)
        return ParameterView(tuned=tuned, path=found.parameters[at], effect=effect)

    def workers(self, run: Run) -> Sequence[WorkerView]:
        """Those heard of last first."""
        played = self._shares.get(run.id, lambda: self._store.worker_shares(run.id))
        shares = {share.worker: share for share in played}
        members = fleet(self._store, self._machines(run))
        return [WorkerView(one, shares.get(one.worker.name)) for one in members]

    def _machines(self, run: Run) -> tuple[MachineReport, ...]:
        return self._compared.get(run.id, lambda: machine_reports(self._parts(run)))

    def _parts(self, run: Run) -> Sequence[WorkerPart]:
        return self._last.get(run.id, lambda: worker_parts(self._store, run, COMPARED))

    def iterations(self, run: Run, before: int | None, limit: int) -> Sequence[Iteration]:
        """The newest first."""
        return self._store.iteration_lines(run.id, before=before, last=limit)[::-1]

    def iteration(self, run: Run, number: int) -> IterationView:
        found = self._store.find_iteration(run.id, number)
        if found is None:
            raise NothingToDo(f"run {run.name} has no iteration {number}")
        return IterationView(iteration=found, batches=self._store.batch_lines(found.id))

    def batch(self, run: Run, number: int, seq: int) -> BatchView:
        view = self.iteration(run, number)
        batch = next((batch for batch in view.batches if batch.seq == seq), None)
        if batch is None:
            raise NothingToDo(f"iteration {number} of run {run.name} has no batch {seq}")
        purged = self._store.purged_batches(run.id, view.iteration.id) if run.purges else ()
        return BatchView(
            iteration=view.iteration,
            batch=batch,
            is_last=batch is view.batches[-1],
            failures=self._store.batch_failures(view.iteration.id, seq),
            purged=[one for one in purged if one.seq == seq],
        )

    def events(self, run: Run, limit: int) -> Sequence[Event]:
        """The newest first."""
        return self._store.events(run.id, limit)[::-1]
