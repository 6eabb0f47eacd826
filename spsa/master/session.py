"""What everybody who moves a run does: look at it, outlast a silent database, tell a watcher.

Nothing that goes wrong outside the database and the builds ends a run: a terminal that was closed
and a full disk under a log are forgotten.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ParamSpec, Protocol

from spsa.algorithms.tuning import Proposal, Update
from spsa.db.store import Iteration, MasterLease, RunView, Store
from spsa.errors import DatabaseUnreachable, IllegalTransition

LEASE_SECONDS = 30.0
TICK_SECONDS = 0.5
RETRY_SECONDS = 10.0

log = logging.getLogger("spsa.master")
Said = ParamSpec("Said")


class Watcher(Protocol):
    """Somebody who is shown what the master sees."""

    def saw(self, view: RunView) -> None: ...
    def opened(self, number: int, proposal: Proposal) -> None: ...
    def applied(self, iteration: Iteration, answer: Update) -> None: ...


def show(tell: Callable[Said, None], *args: Said.args, **kwargs: Said.kwargs) -> None:
    """Tell a watcher, who may be gone."""
    with suppress(OSError):
        tell(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class MasterSession:
    """One master at one run, until it is told to stop; it looks at it every `tick` seconds."""

    store: Store
    master_lease: MasterLease
    stopping: threading.Event
    tick: float = TICK_SECONDS

    def look(self) -> RunView:
        """The run as it stands, the mastership renewed.

        Raises:
            MasterLeaseLost: another master moves the run now.
        """
        return self.store.tick(self.master_lease, LEASE_SECONDS)

    def rest(self) -> None:
        """Wait until it is time for the next look."""
        self.stopping.wait(self.tick)

    @contextmanager
    def through_outages(self) -> Iterator[None]:
        """Outlast a database that does not answer, and a decision that came too late.

        Whether it did what it was asked for is unknown then; the next look at the run tells.
        """
        try:
            yield
        except DatabaseUnreachable as error:
            log.warning("the database does not answer, waiting: %s", error)
            self.stopping.wait(RETRY_SECONDS)
        except IllegalTransition as error:
            log.warning("the run has changed meanwhile, looking again: %s", error)
            self.rest()
