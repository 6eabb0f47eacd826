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

from spsa.algorithms.tuning import Answer, Proposal
from spsa.db.store import Iteration, Mastership, RunView, Store
from spsa.errors import DatabaseUnreachable, IllegalTransition

LEASE_SECONDS = 30.0
TICK_SECONDS = 0.5
PATIENCE_SECONDS = 10.0

log = logging.getLogger("spsa.master")
Said = ParamSpec("Said")


class Watcher(Protocol):
    """Somebody who is shown what the master sees."""

    def saw(self, view: RunView) -> None: ...
    def opened(self, number: int, proposal: Proposal) -> None: ...
    def applied(self, iteration: Iteration, answer: Answer) -> None: ...


def show(tell: Callable[Said, None], *args: Said.args, **kwargs: Said.kwargs) -> None:
    """Tell a watcher, who may be gone."""
    with suppress(OSError):
        tell(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Sitting:
    """One master at one run, until it is told to stop; it looks at it every `tick` seconds."""

    store: Store
    mastership: Mastership
    stopping: threading.Event
    tick: float = TICK_SECONDS

    def look(self) -> RunView:
        """The run as it stands, the mastership renewed.

        Raises:
            MastershipLost: another master moves the run now.
        """
        return self.store.tick(self.mastership, LEASE_SECONDS)

    def rest(self) -> None:
        """Wait until it is time for the next look."""
        self.stopping.wait(self.tick)

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Outlast a database that does not answer, and a decision that came too late.

        Whether it did what it was asked for is unknown then; the next look at the run tells.
        """
        try:
            yield
        except DatabaseUnreachable as error:
            log.warning("the database does not answer, waiting: %s", error)
            self.stopping.wait(PATIENCE_SECONDS)
        except IllegalTransition as error:
            log.warning("the run has changed meanwhile, looking again: %s", error)
            self.rest()
