"""Plays a validation: a match of one theta against another by the workers of the tuning.

A match of a fixed length is one iteration. A sequential test is played in rounds, each an iteration
with the same engines; two are open at a time, so that no worker waits for the end of a round. The
test looks at the rounds that are complete, and ends when it accepts a hypothesis.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from itertools import takewhile

from spsa.core.game_settings import GameSettings
from spsa.core.scoring import Model, Sprt, Tally, elo, sprt
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import Compared, Iteration, Run, Values
from spsa.errors import NothingToDo, TuningError
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.build_queue import BuildThreads
from spsa.master.delivery import Delivery
from spsa.master.session import TICK_SECONDS, MasterSession, Watcher, notify
from spsa.planning.games_needed import evenly

_ROUNDS_OPEN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationMatch:
    """The match to play: plus against minus.

    `games` are its games; of a sequential test the most that it may take. Plus is a theta that
    holds the results through `k`; None: all that are applied.
    """

    plus: Values
    minus: Values
    games: int
    batch_games: int
    max_attempts: int
    game_settings: GameSettings
    compared: Compared = field(default_factory=Compared)
    k: int | None = None

    def test(self, tally: Tally) -> Sprt | None:
        """The state of its sequential test; None without one."""
        return sprt_of(self.compared, tally)

    def is_decided(self, rounds: Sequence[Iteration]) -> bool:
        """Whether these complete rounds are enough."""
        test = self.test(sum((one.tally for one in rounds), Tally()))
        accepted = test is not None and test.accepted is not None
        return accepted or sum(one.target_games for one in rounds) >= self.games

    def is_of(self, row: Iteration) -> bool:
        """Whether an iteration is a round of this match, or of the same one asked before."""
        sides = (dict(row.plus_parameters), dict(row.minus_parameters))
        return row.compared == self.compared and sides == (dict(self.plus), dict(self.minus))


def sprt_of(compared: Compared, tally: Tally) -> Sprt | None:
    """The state of a validation's sequential test; None if it has a fixed length."""
    if compared.sprt is None:
        return None
    return sprt(tally, *compared.sprt, model=Model.NORMALISED)


def validate(
    store: Store,
    master_lease: MasterLease,
    delivery: Delivery,
    match: ValidationMatch,
    watcher: Watcher,
    stopping: threading.Event,
) -> Iteration | None:
    """Play the match, or go on with the same one that was left; its sums when it is complete.

    Returns None if stopped before the end: the games played so far count, and the next call
    continues the match.

    Raises:
        BuildFailed: its engines cannot be built.
        NothingToDo: the run is paused, so workers get none of its games.
        TuningError: a batch cannot be played, the validation was abandoned, or an iteration has
            other counts than its batches.
    """
    session = MasterSession(store, master_lease, stopping)
    with BuildThreads(delivery) as build_threads:
        return _Validation(session, build_threads, match, watcher).play()


@dataclass(slots=True)
class _Validation:
    session: MasterSession
    build_threads: BuildThreads
    match: ValidationMatch
    watcher: Watcher
    number: int | None = None  # of the match, once its first round is open
    building: Future[Sides] | None = None
    _seen_open: set[int] = field(default_factory=set)  # the numbers of rounds

    def play(self) -> Iteration | None:
        while not self.session.stopping.is_set():
            with self.session.surviving_outages():
                view = self.session.view()
                notify(self.watcher.saw, view)
                if self._advance(view):
                    return self._sums(view.run)
                self.session.wait()
        return None

    def _advance(self, view: RunView) -> bool:
        """Do what is next; whether the match has ended."""
        if view.miscounted is not None:
            raise TuningError(f"run {view.run.name} cannot go on: {view.miscounted}")
        close_played(self.session, view)
        if self.number is None:
            self.number = self._begun(view)
        rounds, gone = self._rounds(view.run)
        complete = list(takewhile(_is_complete, rounds))
        left = [one for one in rounds[len(complete) :] if not _is_complete(one)]
        if complete and self.match.is_decided(complete):
            for one in left:
                self.session.store.abandon_validation(self.session.master_lease, one.id)
            return True
        self._refuse_abandoned(view.run, gone)
        self._refuse_failed(view, rounds)
        _refuse_paused(view.run)
        games = self._next_games(view, rounds)
        if games and len(left) < _ROUNDS_OPEN:
            self._open(view.run, games)
        return False

    def _begun(self, view: RunView) -> int | None:
        """The number of the same match, if a round of it is open or its test is not decided."""
        open_ones = [it for it in view.open if self.match.is_of(it)]
        if open_ones or self.match.compared.sprt is None:
            return open_ones[0].match_number if open_ones else None
        for one in reversed(self.session.store.matches(view.run.id)):
            if self.match.is_of(one):
                test = self.match.test(one.tally)
                return one.match_number if test and test.accepted is None else None
        return None

    def _rounds(self, run: Run) -> tuple[list[Iteration], list[Iteration]]:
        """The rounds that count or will, and those that were abandoned."""
        if self.number is None:
            return [], []
        rounds = self.session.store.rounds(run.id, self.number)
        gone = [one for one in rounds if one.status is IterationStatus.ABANDONED]
        kept = [one for one in rounds if one not in gone]
        self._seen_open |= {one.iteration_number for one in kept}
        return kept, gone

    def _refuse_abandoned(self, run: Run, gone: Sequence[Iteration]) -> None:
        """A round that was open and that another process has abandoned ends the match."""
        for one in gone:
            if one.iteration_number in self._seen_open:
                raise TuningError(
                    f"the validation was abandoned after {one.games_played} of {one.target_games} "
                    f"games; run {run.name} is {run.status}"
                    + (f": {run.reason}" if run.reason else "")
                )

    def _next_games(self, view: RunView, rounds: Sequence[Iteration]) -> int:
        """The games of the next round; 0 if the rounds so far have all games of the match."""
        left = self.match.games - sum(one.target_games for one in rounds)
        if self.match.compared.sprt is None:
            return max(0, left)
        return max(0, min(left, self.match.batch_games * max(1, view.active_slots)))

    def _open(self, run: Run, games: int) -> None:
        if self.building is None:
            self.building = self.build_threads.start(self.match.plus, self.match.minus)
        wait([self.building], timeout=TICK_SECONDS)
        if self.building.done():
            new = match_round(self.match, run, self.building.result(), games, self.number)
            session = self.session
            opened = session.store.open_iteration(session.master_lease, new)
            self.number = self.number or opened
            self._seen_open.add(opened)

    def _refuse_failed(self, view: RunView, rounds: Sequence[Iteration]) -> None:
        """Give up a round with a batch that cannot be played."""
        for one in rounds:
            failures = [
                failed.last_error or "" for failed in view.failed if failed.iteration_id == one.id
            ]
            if failures:
                self.session.store.abandon_validation(self.session.master_lease, one.id)
                raise TuningError(f"the validation cannot be played: {'; '.join(failures)}")

    def _sums(self, run: Run) -> Iteration:
        matches = self.session.store.matches(run.id)
        return next(one for one in matches if one.match_number == self.number)


def close_played(session: MasterSession, view: RunView) -> None:
    """Complete every validation of a run that has all its games, whoever opened it.

    It completes none while an iteration of the run has other counts than its batches.
    """
    for row in view.open if view.miscounted is None else ():
        if row.purpose is Purpose.VALIDATE and row.is_played:
            score = elo(row.tally).value
            session.store.complete_validation(session.master_lease, row.id, score, view.run.purges)


def _is_complete(row: Iteration) -> bool:
    return row.status is IterationStatus.COMPLETE


def _refuse_paused(run: Run) -> None:
    if run.status is RunStatus.PAUSED:
        raise NothingToDo(
            f"run {run.name} is paused: {run.reason}; `spsa-master resume` continues it"
        )


def match_round(
    match: ValidationMatch, run: Run, sides: Sides, games: int, number: int | None
) -> NewIteration:
    """A round of a match; `number` is that of the match, None for its first round."""
    row = Iteration(
        purpose=Purpose.VALIDATE,
        opened_on=run.applied if match.k is None else match.k,
        opened_purges=run.purges,
        in_flight=1,
        game_settings=match.game_settings,
        target_games=games,
        base_parameters=run.theta,
        plus_parameters=match.plus,
        minus_parameters=match.minus,
        match_number=number,
        compared=match.compared,
    )
    batches = evenly(games, min(match.batch_games, games))
    return NewIteration(row=row, sides=sides, batches=batches, max_attempts=match.max_attempts)
