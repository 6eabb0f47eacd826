"""The loop that moves a run: look, decide, act; everything it knows is in the database.

Killed at any line and started again it goes on where the run stands: the decision is made from the
run's rows alone, and every act is one transaction that is either done or not.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from spsa.errors import DatabaseUnreachable, IllegalTransition
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.decide import Apply, Finish, Leave, Move, Open, Wait, next_move
from spsa.master.delivery import Delivery, Sides
from spsa.master.settings import RunSettings
from spsa.replay import games_of
from spsa.store import (
    Iteration,
    Mastership,
    NewIteration,
    NewStep,
    Run,
    RunView,
    Store,
)
from spsa.tuning import Answer, Proposal, Tuning

LEASE_SECONDS = 30.0
TICK_SECONDS = 0.5
PATIENCE_SECONDS = 10.0
KEPT_ITERATIONS = 50
"""Binaries of older results are removed; every one can be built again from its row."""

log = logging.getLogger("spsa.master")


class Watcher(Protocol):
    """Somebody who is shown what the master sees."""

    def saw(self, view: RunView) -> None: ...
    def opened(self, number: int, proposal: Proposal) -> None: ...
    def applied(self, iteration: Iteration, answer: Answer) -> None: ...


@dataclass(slots=True)
class Master:
    """Moves one run until it ends or `stopping` is set.

    `project` writes theta where the owner reads it; it is called after the commit that moved theta.
    """

    store: Store
    mastership: Mastership
    tuning: Tuning
    settings: RunSettings
    delivery: Delivery
    watcher: Watcher
    project: Callable[[Run], None]
    stopping: threading.Event
    _builds: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "build"))
    _building: tuple[Proposal, int, Future[Sides]] | None = None

    def run(self) -> RunStatus | None:
        """Move the run until it has ended; its status, or None when stopped before that.

        Raises:
            BuildFailed: an iteration's engines cannot be built; the run stays resumable.
            MastershipLost: another master moves the run now.
        """
        try:
            while not self.stopping.is_set():
                view = self._look()
                if view is not None:
                    self.watcher.saw(view)
                    move = next_move(view, self.settings.iterations_in_flight)
                    if isinstance(move, Leave):
                        return view.run.status
                    if self._act(view, move):
                        continue
                self.stopping.wait(TICK_SECONDS)
            return None
        finally:
            self._close()

    def _look(self) -> RunView | None:
        try:
            return self.store.tick(self.mastership, LEASE_SECONDS)
        except DatabaseUnreachable as error:
            log.warning("the database does not answer, waiting: %s", error)
            self.stopping.wait(PATIENCE_SECONDS)
            return None

    def _act(self, view: RunView, move: Move) -> bool:
        """Do a move; whether there may be another one at once."""
        try:
            match move:
                case Open(k):
                    return self._open(view.run, k)
                case Apply(iteration):
                    self._apply(view.run, iteration)
                    return True
                case Finish():
                    self.store.finish(self.mastership)
                    return True
                case Wait() | Leave():
                    return False
        except DatabaseUnreachable as error:
            # the outcome is unknown: the next look at the run tells whether it was done
            log.warning("the database did not answer, looking again: %s", error)
        except IllegalTransition as error:
            log.warning("the run has changed meanwhile, looking again: %s", error)
        return False

    def _open(self, run: Run, k: int) -> bool:
        if self._building is None:
            self._start_building(run, k)
            return False
        proposal, opened_on, future = self._building
        if not future.done():
            return False
        sides = future.result()
        if (proposal.k, opened_on) == (k, run.applied):
            number = self.store.open_iteration(
                self.mastership, self._iteration(proposal, opened_on, sides)
            )
            self.watcher.opened(number, proposal)
        self._building = None
        return True

    def _start_building(self, run: Run, k: int) -> None:
        proposal = self.tuning.propose(run.state, run.theta, k)
        played = proposal.played
        future = self._builds.submit(self.delivery.prepare, played.plus, played.minus)
        self._building = (proposal, run.applied, future)

    def _iteration(self, proposal: Proposal, opened_on: int, sides: Sides) -> NewIteration:
        return NewIteration(
            purpose=Purpose.TUNE,
            k=proposal.k,
            opened_on=opened_on,
            in_flight=self.settings.iterations_in_flight,
            a_k=proposal.a_k,
            c_k=proposal.c_k,
            plus=sides.plus,
            minus=sides.minus,
            plus_options=sides.plus_options,
            minus_options=sides.minus_options,
            terms=self.settings.terms,
            target_games=self.settings.games_per_iteration,
            batch_games=self.settings.batch_size,
            max_attempts=self.settings.max_attempts,
            base_parameters=proposal.base,
            plus_parameters=proposal.played.plus,
            minus_parameters=proposal.played.minus,
            perturbation_signs=proposal.signs,
        )

    def _apply(self, run: Run, iteration: Iteration) -> None:
        answer = self.tuning.answer(run.state, run.theta, games_of(iteration))
        self.store.apply(
            self.mastership,
            iteration.id,
            NewStep(
                k=run.applied + 1,
                theta_before=run.theta,
                delta=answer.delta,
                theta_after=answer.theta,
                state=answer.state,
                gradient=answer.gradient,
                elo=answer.elo,
                bounded=answer.bounded,
            ),
        )
        self.watcher.applied(iteration, answer)
        self.project(self.store.run(run.name))
        if (retired := run.applied + 1 - KEPT_ITERATIONS) > 0:
            self.delivery.discard(self.store.retire_engines(self.mastership, retired))

    def _close(self) -> None:
        self.delivery.cancel()
        self._builds.shutdown(wait=True, cancel_futures=True)
