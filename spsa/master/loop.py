"""The master's loop: view the run, decide, act. All its knowledge is in the database.

A master that is killed at any line continues after a restart: the decision depends on the run's
rows only, and every action is one transaction. What follows from an action (logging, writing
params.toml, deleting binaries) happens when the next view shows that it was done.

Here is also how a process becomes the master of a run: it waits for another one, or replaces a dead
one. Only the database decides who is: whatever this process believes of another master, that one's
next write finds another epoch.
"""

import fcntl
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf

from spsa.algorithms.tuning import Tuning
from spsa.config.document import refused
from spsa.config.settings import Config
from spsa.core import Update
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import Iteration, Run
from spsa.errors import BuildFailed, DatabaseUnreachable, MasterLeaseLost, TuningError
from spsa.files import WORK, lock_text
from spsa.history.replay import updated
from spsa.lifecycle import RunStatus
from spsa.master.decide import Decision, next_decision, oldest
from spsa.master.session import MASTER_LEASE_SECONDS, MasterSession, RunSettings, log
from spsa.master.validation import Background
from spsa.output import echo
from spsa.text import FAILURE_LENGTH, printable, without_passwords
from spsa.uci import system

KEPT_ITERATIONS = 50
"""Binaries of older iterations are deleted; each can be built again from its row."""

POLL_SECONDS = 1.0
LEASE_WAIT_SECONDS = MASTER_LEASE_SECONDS + 2 * POLL_SECONDS
"""Seconds after which the lease of a master that died has run out."""

_AT_ONCE = 0.05
_REMEDY = "stop it first (Ctrl-C), or let it measure while it tunes, by [validation] every"


@dataclass(frozen=True, slots=True)
class QueuedBuild:
    """Iteration k, and its engines, which are being built."""

    k: int
    row: Iteration
    sides: Future[Sides]


@dataclass(slots=True, kw_only=True)
class Master(MasterSession[RunStatus]):
    """Moves one run until it ends; `run` returns its status then.

    `project` writes theta to params.toml. It is called at the start and after every commit that
    moved theta. Raises BuildFailed where an iteration's engines cannot be built; the run is paused
    with the reason.
    """

    tuning: Tuning
    settings: RunSettings
    project: Callable[[Run], None]
    background: Background | None = None
    _builds: deque[QueuedBuild] = field(init=False, default_factory=deque)
    _last_update: tuple[Iteration, Update] | None = field(init=False, default=None)
    # results and purges of the theta that was last written to params.toml
    _projected: tuple[int, int] | None = field(init=False, default=None)

    def look(self, view: RunView) -> None:
        run = view.run
        if (run.applied, run.purges) != self._projected:
            self._follow_up(run)
        if self.background is not None:
            self.background.prepare(self.store, run, self.delivery)
        self._drop_outdated(view)

    def advance(self, view: RunView) -> RunStatus | None:
        in_build, pacing = len(self._builds), self.settings.pacing(view, self.delivery)
        is_built = in_build > 0 and self._builds[0].sides.done()
        match next_decision(view, pacing, in_build, is_built=is_built):
            case Decision.BUILD:
                self._start_build(view.run, view.opened + in_build + 1)
            case Decision.OPEN:
                self._open(view)
            case Decision.APPLY:
                self._apply(view)
            case Decision.FINISH:
                self.store.finish(self.master_lease)
            case Decision.IDLE:
                self._wait(view.run)
            case Decision.STOP:
                return view.run.status
        return None

    def _drop_outdated(self, view: RunView) -> None:
        """Remove builds whose iteration is open, and those that the run no longer fits."""
        run = view.run
        for build in list(self._builds):
            is_wanted = view.opened < build.k <= run.max_iterations
            if not is_wanted or build.row.opened_purges != run.purges:
                self._builds.remove(build)
                build.sides.cancel()

    def _wait(self, run: Run) -> None:
        """Wait until it is time for the next view, or a build ends."""
        if self._builds and run.status is RunStatus.RUNNING:
            wait([self._builds[0].sides], timeout=self.tick)
        else:
            self.stopping.wait(self.tick)

    def _start_build(self, run: Run, k: int) -> None:
        proposal, settings = self.tuning.propose(run.state, run.theta, k), self.settings
        row = Iteration(
            k=k,
            opened_on=run.applied,
            opened_purges=run.purges,
            in_flight=settings.in_flight(k, run.applied),
            a_k=proposal.a_k,
            c_k=proposal.c_k,
            game_settings=settings.game_settings,
            target_games=settings.games_per_iteration,
            base_parameters=proposal.base,
            plus_parameters=proposal.played.plus,
            minus_parameters=proposal.played.minus,
            perturbation_signs=proposal.signs,
        )
        self._builds.append(QueuedBuild(k, row, self.delivery.start(proposal.played, k)))

    def _open(self, view: RunView) -> None:
        """Open the iteration of the first build; pause the run if its engines cannot be built."""
        build, settings = self._builds[0], self.settings
        try:
            sides = build.sides.result()
        except BuildFailed as error:
            found = f"iteration k={build.k} cannot be built: {error.summary}"
            reasons = [printable(found, FAILURE_LENGTH)]
            self.store.pause_at_obstacles(self.master_lease, view, reasons, ())
            raise
        batches, attempts = settings.batches(view), settings.max_attempts
        new = NewIteration(row=build.row, sides=sides, batches=batches, max_attempts=attempts)
        beside = self.background.round_beside(view.run, build.k) if self.background else None
        number = self.store.open_iteration(self.master_lease, new, beside=beside)
        self._builds.popleft()
        self.watcher.opened(number, build.row)

    def _apply(self, view: RunView) -> None:
        run, iteration = view.run, oldest(view)
        assert iteration is not None
        parts = self.store.games_by_time_control(run, iteration.id).get(iteration.id, ())
        update = updated(self.tuning, run.state, run.theta, iteration, parts)
        self._last_update = (iteration, update)
        self.store.apply(self.master_lease, iteration.id, run, update)

    def _follow_up(self, run: Run) -> None:
        """Project a theta that has moved, perhaps by an earlier master, and delete old binaries."""
        if self._last_update is not None and self._last_update[0].k == run.applied:
            self.watcher.applied(*self._last_update)
        self._last_update = None
        self._survive("theta is in the database but not in params.toml", partial(self.project, run))
        if run.applied > KEPT_ITERATIONS:
            keys = self.store.retire_engines(self.master_lease, run.applied - KEPT_ITERATIONS)
            self._survive("old binaries could not be deleted", partial(self.delivery.discard, keys))
        self._projected = (run.applied, run.purges)

    def _survive(self, failure: str, action: Callable[[], None]) -> None:
        """Log an error of this machine instead of ending the run."""
        try:
            action()
        except (TuningError, OSError) as error:
            log.warning("%s: %s", failure, error)


@dataclass(slots=True)
class LeaseWatch:
    """Watches whether the master that holds a lease is still there.

    It is gone if its process on this machine has ended, or if it has not renewed its lease for as
    long as one lasts, by this process's own clock.
    """

    has_ended: bool = False
    ends: int = 0  # that were seen; one that was stopped may have renewed its lease once more
    _end: datetime | None = None
    _since: float = field(default_factory=lambda: time.monotonic())

    def saw(self, lost: MasterLeaseLost) -> None:
        """Another master holds the lease."""
        if lost.lease_end != self._end:
            self._end, self._since, self.ends = lost.lease_end, time.monotonic(), self.ends + 1
        self.has_ended = bool(system.has_ended(lost.holder))

    def abandoned(self) -> datetime | None:
        """The end of a lease whose holder is gone; else None."""
        silent = time.monotonic() - self._since > MASTER_LEASE_SECONDS
        return self._end if self.has_ended or silent else None


def acquired(
    store: Store, run: Run, stopping: threading.Event, longest_wait: float
) -> MasterLease | None:
    """The master lease of a run, for which it waits so many seconds; None when it was stopped."""
    process = system.this_process() or f"{os.uname().nodename}-{os.getpid()}"
    me = f"{process}-{uuid.uuid4().hex[:8]}"
    end = time.monotonic() + longest_wait
    waiting = False
    watch = LeaseWatch()
    while not stopping.is_set():
        try:
            return store.acquire_master_lease(run.id, me, MASTER_LEASE_SECONDS, watch.abandoned())
        except MasterLeaseLost as error:
            watch.saw(error)
            if time.monotonic() > end or (watch.ends > 2 and longest_wait < inf):
                raise MasterLeaseLost(f"{error}; {_REMEDY}") from None
            if watch.has_ended:
                echo(f"{error}, but its process has ended; taking over", err=True)
            elif not waiting:
                limit = "" if longest_wait == inf else f" for up to {longest_wait:.0f} s"
                echo(f"{error}; standing by{limit} to take over if it ends", err=True)
            waiting = True
        except DatabaseUnreachable:
            if not waiting or time.monotonic() > end:
                raise
        stopping.wait(_AT_ONCE if watch.has_ended else POLL_SECONDS)
    return None


@contextmanager
def sole_writer(config: Config, run: str) -> Iterator[None]:
    """Refuse what the master of another run on this machine writes: the same params.toml.

    The kernel drops the lock with its process. Further masters of the run may wait for its end.
    """
    path, me = config.run.params.resolve(), without_passwords(lock_text(run, config.database.url))
    lock = path.parent / WORK / f"{path.name}.lock"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.write_text(me)
        except BlockingIOError:
            if (other := lock.read_text()) != me:
                found = f"{path} is written by the master of {other}"
                remedy = 'give this run a file of its own, params = "other.toml", or wait for it'
                raise refused(config.path, ("run", "params"), found, remedy) from None
        yield
