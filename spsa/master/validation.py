"""Plays a validation: a match of one theta against another by the workers of the tuning."""

import threading
import time
from concurrent.futures import Future, wait
from dataclasses import dataclass

from spsa.core.game_settings import GameSettings
from spsa.core.scoring import elo
from spsa.db.store import Iteration, MasterLease, NewIteration, Run, RunView, Store, Values
from spsa.errors import NothingToDo, TuningError
from spsa.lab.planning.supply import evenly
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.build_queue import BuildThreads, BuildUnderWay, state_of
from spsa.master.delivery import Delivery, Sides
from spsa.master.session import TICK_SECONDS, MasterSession, Watcher, notify
from spsa.security.signing import Sign


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationMatch:
    """The match to play: plus (the tuned values) against minus (the start values)."""

    plus: Values
    minus: Values
    games: int
    batch_games: int
    max_attempts: int
    terms: GameSettings


def validate(
    store: Store,
    master_lease: MasterLease,
    delivery: Delivery,
    match: ValidationMatch,
    watcher: Watcher,
    stopping: threading.Event,
    sign: Sign | None = None,
) -> Iteration | None:
    """Play the match, or continue one that is open; returns its row when it is complete.

    Returns None if stopped before the end: the games played so far count, and the next call
    continues the match.

    Raises:
        BuildFailed: its engines cannot be built.
        NothingToDo: the run is paused, so workers get none of its games.
        TuningError: a batch cannot be played, or the validation was abandoned.
    """
    session = MasterSession(store, master_lease, stopping)
    with BuildThreads(delivery) as build_threads:
        return _Validation(session, build_threads, match, watcher, sign).play()


@dataclass(slots=True)
class _Validation:
    session: MasterSession
    build_threads: BuildThreads
    match: ValidationMatch
    watcher: Watcher
    sign: Sign | None = None
    number: int | None = None  # of the match's iteration, once it is open
    building: Future[Sides] | None = None
    building_since: float = 0.0

    def play(self) -> Iteration | None:
        while not self.session.stopping.is_set():
            with self.session.surviving_outages():
                view = self.session.view()
                notify(self.watcher.saw, view, self._builds())
                ended = self._advance(view)
                if ended is not None:
                    return ended
                self.session.wait()
        return None

    def _builds(self) -> list[BuildUnderWay]:
        if self.building is None or self.number is not None:
            return []
        state = state_of(self.building)
        return [BuildUnderWay("the match", self.building_since, state)]

    def _advance(self, view: RunView) -> Iteration | None:
        row = next((it for it in view.open if it.purpose is Purpose.VALIDATE), None)
        if row is not None:
            self.number = row.iteration_number
            self._close(view, row)
        elif self.number is not None:
            return self._ended(view.run)
        else:
            self._open(view.run)
        return None

    def _open(self, run: Run) -> None:
        _refuse_paused(run)
        if self.building is None:
            self.building = self.build_threads.start(self.match.plus, self.match.minus)
            self.building_since = time.monotonic()
        wait([self.building], timeout=TICK_SECONDS)
        if self.building.done():
            new = _iteration(self.match, run, self.building.result())
            session = self.session
            self.number = session.store.open_iteration(session.master_lease, new, self.sign)

    def _close(self, view: RunView, row: Iteration) -> None:
        """Complete the match if it is played; abandon it if it cannot be played."""
        store, master_lease = self.session.store, self.session.master_lease
        failures = [failure.error for failure in view.failures if failure.iteration_id == row.id]
        if row.is_played:
            purges = view.run.purges
            store.complete_validation(master_lease, row.id, elo(row.tally).value, purges)
        elif failures:
            store.abandon_validation(master_lease, row.id)
            raise TuningError(f"the validation cannot be played: {'; '.join(failures)}")
        else:
            _refuse_paused(view.run)

    def _ended(self, run: Run) -> Iteration:
        played = self.session.store.iterations(run.id, purpose=Purpose.VALIDATE)
        row = next(it for it in played if it.iteration_number == self.number)
        if row.status is not IterationStatus.COMPLETE:
            raise TuningError(
                f"the validation was abandoned after {row.games_played} of {row.target_games} "
                f"games; run {run.name} is {run.status}" + (f": {run.reason}" if run.reason else "")
            )
        return row


def _refuse_paused(run: Run) -> None:
    if run.status is RunStatus.PAUSED:
        raise NothingToDo(
            f"run {run.name} is paused: {run.reason}; `spsa-master resume` continues it"
        )


def _iteration(match: ValidationMatch, run: Run, sides: Sides) -> NewIteration:
    return NewIteration(
        purpose=Purpose.VALIDATE,
        k=None,
        opened_on=run.applied,
        opened_purges=run.purges,
        in_flight=1,
        a_k=None,
        c_k=None,
        plus=sides.plus,
        minus=sides.minus,
        plus_options=sides.plus_options,
        minus_options=sides.minus_options,
        terms=match.terms,
        target_games=match.games,
        batches=evenly(match.games, match.batch_games),
        max_attempts=match.max_attempts,
        base_parameters=run.theta,
        plus_parameters=match.plus,
        minus_parameters=match.minus,
        perturbation_signs={},
    )
