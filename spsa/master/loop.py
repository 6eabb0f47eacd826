"""The loop that moves a run: look, decide, act; everything it knows is in the database.

Killed at any line and started again it goes on where the run stands: the decision is made from the
run's rows alone, and every act is one transaction that is either done or not. What follows from an
act (telling, writing params.toml, removing binaries) is done when the run is seen to hold it.
"""

import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass, field

from spsa.algorithms.tuning import Tuning, Update
from spsa.db.store import Iteration, MasterLease, NewIteration, NewStep, Run, RunView, Store
from spsa.errors import TuningError
from spsa.history.replay import games_of
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.build_queue import BuildQueue, QueuedBuild
from spsa.master.build_threads import BuildThreads
from spsa.master.decide import (
    Apply,
    Decision,
    Finish,
    Idle,
    OpenIteration,
    StartBuild,
    Stop,
    machines_to_set_aside,
    next_decision,
)
from spsa.master.delivery import Delivery
from spsa.master.pacing import Pacer
from spsa.master.session import LEASE_SECONDS, TICK_SECONDS, MasterSession, Watcher, log, show
from spsa.master.settings import RunSettings
from spsa.security.signing import Sign
from spsa.text import FAILURE_LENGTH, printable

__all__ = ["KEPT_ITERATIONS", "LEASE_SECONDS", "Master", "Watcher"]

KEPT_ITERATIONS = 50
"""Binaries of older results are removed; every one can be built again from its row."""


@dataclass(slots=True)
class Master:
    """Moves one run until it ends or `stopping` is set.

    `project` writes theta where the owner reads it; it is called after the commit that moved theta,
    and once at the start.
    """

    store: Store
    master_lease: MasterLease
    tuning: Tuning
    settings: RunSettings
    delivery: Delivery
    watcher: Watcher
    project: Callable[[Run], None]
    stopping: threading.Event
    sign: Sign | None = None
    tick: float = TICK_SECONDS
    _session: MasterSession = field(init=False)
    _build_threads: BuildThreads = field(init=False)
    _pacer: Pacer = field(init=False)
    _builds: BuildQueue = field(init=False, default_factory=BuildQueue)
    _shortage: str | None = field(init=False, default=None)  # what was told of it
    _answered: tuple[Iteration, Update] | None = field(init=False, default=None)
    # results and purges whose consequences are drawn
    _told: tuple[int, int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._session = MasterSession(self.store, self.master_lease, self.stopping, self.tick)
        self._build_threads = BuildThreads(self.delivery)
        self._pacer = Pacer(self.settings, self._build_threads)

    def run(self) -> RunStatus | None:
        """Move the run until it has ended; its status, or None when stopped before that.

        Raises:
            BuildFailed: an iteration's engines cannot be built; the run stays resumable.
            MasterLeaseLost: another master moves the run now.
        """
        with self._build_threads:
            while not self.stopping.is_set():
                with self._session.through_outages():
                    view = self._look()
                    move = next_decision(view, self._pacer.pacing(view), self._builds.in_build)
                    if isinstance(move, Stop):
                        return view.run.status
                    if not self._act(view, move):
                        self._rest(view.run)
        return None

    def _look(self) -> RunView:
        view = self._session.look()
        if (view.run.applied, view.run.purges) != self._told:
            self._draw_consequences(view.run)
        self._builds.drop_outdated(view)
        self._tell_of_shortage(view)
        self._set_machines_aside(view)
        show(self.watcher.saw, view)
        return view

    def _act(self, view: RunView, move: Decision) -> bool:
        """Do a move; whether there may be another one at once."""
        match move:
            case StartBuild(k):
                self._build(view.run, k)
            case OpenIteration():
                self._open(view)
            case Apply(iteration):
                self._apply(view.run, iteration)
            case Finish():
                self.store.finish(self.master_lease)
            case Idle() | Stop():
                return False
        return True

    def _rest(self, run: Run) -> None:
        """Until it is time for the next look, or a build ends."""
        if self._builds and run.status is RunStatus.RUNNING:
            wait([self._builds.first.sides], timeout=self.tick)
        else:
            self._session.rest()

    def _build(self, run: Run, k: int) -> None:
        proposal = self.tuning.propose(run.state, run.theta, k)
        sides = self._build_threads.begin(proposal.played.plus, proposal.played.minus)
        self._builds.add(QueuedBuild(proposal, run.applied, run.purges, sides))

    def _open(self, view: RunView) -> None:
        building = self._builds.first
        new = self._iteration(building, view)
        number = self.store.open_iteration(self.master_lease, new, self.sign)
        self._builds.leave()
        show(self.watcher.opened, number, building.proposal)

    def _iteration(self, building: QueuedBuild, view: RunView) -> NewIteration:
        proposal, sides = building.proposal, building.sides.result()
        return NewIteration(
            purpose=Purpose.TUNE,
            k=proposal.k,
            opened_on=building.opened_on,
            opened_purges=building.purges,
            in_flight=self._pacer.in_flight(proposal.k, building.opened_on),
            a_k=proposal.a_k,
            c_k=proposal.c_k,
            plus=sides.plus,
            minus=sides.minus,
            plus_options=sides.plus_options,
            minus_options=sides.minus_options,
            terms=self.settings.terms,
            target_games=self.settings.games_per_iteration,
            batches=self._pacer.batches(view),
            max_attempts=self.settings.max_attempts,
            base_parameters=proposal.base,
            plus_parameters=proposal.played.plus,
            minus_parameters=proposal.played.minus,
            perturbation_signs=proposal.signs,
        )

    def _apply(self, run: Run, iteration: Iteration) -> None:
        answer = self.tuning.answer(run.state, run.theta, games_of(iteration))
        self._answered = (iteration, answer)
        self.store.apply(
            self.master_lease,
            iteration.id,
            NewStep(
                k=run.applied + 1,
                theta_before=run.theta,
                delta=answer.delta,
                theta_after=answer.theta,
                estimates=answer.estimates,
                state=answer.state,
                gradient=answer.gradient,
                elo=answer.elo,
                bounded=answer.bounded,
                purges=run.purges,
            ),
        )

    def _draw_consequences(self, run: Run) -> None:
        """Of a theta that was moved, perhaps by the master before this one."""
        if self._answered is not None and self._answered[0].k == run.applied:
            show(self.watcher.applied, *self._answered)
        self._answered = None
        self._project(run)
        if run.applied > KEPT_ITERATIONS:
            self._discard(
                self.store.retire_engines(self.master_lease, run.applied - KEPT_ITERATIONS)
            )
        self._told = (run.applied, run.purges)

    def _tell_of_shortage(self, view: RunView) -> None:
        """Slots that will have to wait, once for every reason."""
        shortage = self._pacer.shortage(view)
        if shortage is not None and self._shortage is None:
            log.warning(shortage)
            self._shortage = shortage

    def _set_machines_aside(self, view: RunView) -> None:
        for bad in machines_to_set_aside(view):
            run_id = view.run.id
            if self.store.set_aside(
                bad.machine,
                printable(bad.reason, FAILURE_LENGTH),
                "master",
                sha256=bad.sha256,
                run_id=run_id,
            ):
                which = "every binary" if bad.sha256 is None else f"the binary {bad.sha256[:12]}"
                log.warning("machine %s is set aside for %s: %s", bad.machine, which, bad.reason)

    def _project(self, run: Run) -> None:
        try:
            self.project(run)
        except (TuningError, OSError) as error:
            log.warning("theta is kept in the database, but could not be written out: %s", error)

    def _discard(self, build_keys: list[str]) -> None:
        try:
            self.delivery.discard(build_keys)
        except (TuningError, OSError) as error:
            log.warning("binaries that nobody needs could not be removed: %s", error)
