"""How a process becomes the master of a run: it waits for another one, or replaces a dead one.

Only the database decides who is: whatever this process believes of another master, that one's next
write finds another epoch.
"""

import fcntl
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from math import inf

from spsa.config.document import refused
from spsa.config.settings import Config
from spsa.db import Store
from spsa.db.run_view import MasterLease
from spsa.db.tables import Run
from spsa.errors import DatabaseUnreachable, MasterLeaseLost
from spsa.master.delivery_setup import WORK
from spsa.master.session import MASTER_LEASE_SECONDS
from spsa.output import echo
from spsa.text import without_passwords
from spsa.uci import system

POLL_SECONDS = 1.0
LEASE_WAIT_SECONDS = MASTER_LEASE_SECONDS + 2 * POLL_SECONDS
"""Seconds after which the lease of a master that died has run out."""

_AT_ONCE = 0.05
_REMEDY = "stop it first (Ctrl-C), or let it measure while it tunes, by [validation] every"


class LeaseWatch:
    """Watches whether the master that holds a lease is still there.

    It is gone if its process on this machine has ended, or if it has not renewed its lease for as
    long as one lasts, by this process's own clock.
    """

    def __init__(self) -> None:
        self._end: datetime | None = None
        self._since = time.monotonic()
        self.has_ended = False
        self.ends = 0
        """How many were seen; one that was stopped may have renewed its lease once more."""

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
    path, me = config.run.params.resolve(), without_passwords(f"run {run} in {config.database.url}")
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
