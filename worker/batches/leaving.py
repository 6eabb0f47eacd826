"""When a worker claims no more batches: for its options, an interrupt, or another version of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Protocol

from worker.batches.database_client import FAILURE, POLL, BackoffTimes
from worker.runner.interrupts import Interrupts


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """When a worker leaves, and how long it waits. Times in seconds; None is no limit.

    `drain` is how long active batches may go on after the first interrupt. With `once` the worker
    leaves when no run has work left; with `idle_timeout` when it had none for that long. `syzygy`
    are the folders of this machine's tables.
    """

    drain: float = 60.0
    once: bool = False
    idle_timeout: float | None = None
    max_batches: int | None = None
    syzygy: tuple[Path, ...] = ()
    poll: BackoffTimes = POLL
    after_failure: BackoffTimes = FAILURE


class Updates(Protocol):
    """Which version of the worker its server needs; `worker.update` has it for remote workers.

    `due_at` is of the monotonic clock. With `is_needed` this version cannot speak with the server.
    """

    @property
    def due_at(self) -> float: ...

    @property
    def is_due(self) -> bool: ...

    @property
    def is_wanted(self) -> bool: ...

    @property
    def is_needed(self) -> bool: ...

    def check(self) -> None: ...

    def install(self, is_stopping: Callable[[], bool]) -> None: ...


class NoUpdates:
    """The updates of a direct worker, which has no server."""

    due_at = inf
    is_due = is_wanted = is_needed = False

    def check(self) -> None:
        pass

    def install(self, is_stopping: Callable[[], bool]) -> None:
        pass


class Leaving:
    """Whether a worker leaves, and how; times are of the monotonic clock."""

    def __init__(self, options: WorkerOptions, interrupts: Interrupts) -> None:
        self._options = options
        self._interrupts = interrupts
        self._drain_ends_at: float | None = None
        self.claimed = 0
        self.no_work_left = False
        self.idle_since = time.monotonic()

    def begins(self) -> bool:
        """Whether the worker was interrupted since the last call for the first time."""
        if not self._interrupts.count or self._drain_ends_at is not None:
            return False
        self._drain_ends_at = time.monotonic() + self._options.drain
        return True

    def is_interrupted(self) -> bool:
        return self._interrupts.count > 0

    @property
    def has_begun(self) -> bool:
        """Whether the worker claims no more batches."""
        most = self._options.max_batches
        return self.is_interrupted() or (most is not None and self.claimed >= most)

    @property
    def is_at_once(self) -> bool:
        """Whether active batches are stopped: at the second interrupt, or after the drain time."""
        late = self._drain_ends_at is not None and time.monotonic() >= self._drain_ends_at
        return late or self._interrupts.count > 1

    @property
    def is_over(self) -> bool:
        """Whether a worker that holds nothing ends."""
        limit = self._options.idle_timeout
        too_long = limit is not None and time.monotonic() - self.idle_since >= limit
        return self.has_begun or self.no_work_left or too_long

    def deadlines(self, *, playing: bool) -> Iterator[float]:
        """When the answers above may change by themselves."""
        if self._drain_ends_at is not None and not self.is_at_once:
            yield self._drain_ends_at
        if self._options.idle_timeout is not None and not playing:
            yield self.idle_since + self._options.idle_timeout
