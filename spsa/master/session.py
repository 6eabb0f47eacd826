"""A master session: view the run, survive an unreachable database, notify a watcher.

Only errors of the database and of builds end a run; a closed terminal or a full disk under a log
does not.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ParamSpec, Protocol

from spsa.algorithms.tuning import Proposal, Update
from spsa.core.builds import Builds
from spsa.db.store import Iteration, MasterLease, RunView, Store
from spsa.errors import DatabaseUnreachable, IllegalTransition

LEASE_SECONDS = 30.0
TICK_SECONDS = 0.5
RETRY_SECONDS = 10.0

log = logging.getLogger("spsa.master")
P = ParamSpec("P")


class Watcher(Protocol):
    """Is notified of each view of the run, each opened and each applied iteration."""

    def saw(self, view: RunView) -> None: ...
    def opened(self, number: int, proposal: Proposal) -> None: ...
    def applied(self, iteration: Iteration, update: Update) -> None: ...


def notify(watch: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a method of a watcher, whose output may be closed."""
    with suppress(OSError):
        watch(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class MasterSession:
    """One master of one run until `stopping` is set; it views the run every `tick` seconds."""

    store: Store
    master_lease: MasterLease
    stopping: threading.Event
    tick: float = TICK_SECONDS

    def view(self, builds: Builds | None = None) -> RunView:
        """Renew the master lease, tell what is being built, and view the run.

        Raises:
            MasterLeaseLost: another master holds the run now.
        """
        return self.store.tick(self.master_lease, LEASE_SECONDS, builds)

    def wait(self) -> None:
        """Wait until it is time for the next view."""
        self.stopping.wait(self.tick)

    @contextmanager
    def surviving_outages(self) -> Iterator[None]:
        """Survive an unreachable database, and a decision on a run that has changed.

        The outcome is unknown then; the next view of the run shows it.
        """
        try:
            yield
        except DatabaseUnreachable as error:
            log.warning("the database is not reachable, waiting: %s", error)
            self.stopping.wait(RETRY_SECONDS)
        except IllegalTransition as error:
            log.warning("the run has changed meanwhile, deciding again: %s", error)
            self.wait()
