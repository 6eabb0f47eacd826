"""Plays validations: matches of one theta against another, by the workers of the tuning.

A match of a fixed length is one iteration. A sequential test is played in rounds, each an iteration
with the same engines; two are open at a time, so that no worker waits for the end of a round. The
test looks at the rounds that are complete, and ends when it accepts a hypothesis.

In the background of a run, theta after every N results is measured against the start, by as many
games as its share of the tuning's games until the next such theta. They are small rounds of one
match, each opened in the transaction that opens an iteration, so that workers play them in between
and no machine has to wait for them. A round is left out while its engines are being built.
"""

from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace
from itertools import takewhile
from math import floor
from shlex import quote

from spsa.core.params import Space
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.run_view import RunView
from spsa.db.tables import NARROW, Iteration, Run
from spsa.errors import NothingToDo, TuningError
from spsa.lifecycle import IterationStatus, RunStatus
from spsa.master.delivery import Delivery
from spsa.master.match import ValidationMatch, sprt_of
from spsa.master.session import MasterSession, log
from spsa.text import plural

_ROUNDS_OPEN = 2


@dataclass(slots=True, kw_only=True)
class Validation(MasterSession[Iteration]):
    """Plays the match, or goes on with the same one that was left; `run` returns its sums.

    It returns None if stopped before the end: the games played so far count, and the next one
    continues the match. Raises BuildFailed: its engines cannot be built. NothingToDo: the run is
    paused, so workers get none of its games. TuningError: a batch cannot be played, the validation
    was abandoned, or an iteration has other counts than its batches.
    """

    match: ValidationMatch
    # of the match, if its first round is open
    _number: int | None = field(init=False, default=None)
    _building: Future[Sides] | None = field(init=False, default=None)
    _seen_open: set[int] = field(init=False, default_factory=set)  # the numbers of rounds

    def look(self, view: RunView) -> None:
        if self._number is None:  # before its round is closed
            self._number = self._begun(view)

    def advance(self, view: RunView) -> Iteration | None:
        if (wrong := view.obstacles.miscounted) is not None:
            raise TuningError(f"run {view.run.name} cannot go on: {wrong}")
        rounds, gone = self._rounds(view.run)
        done = IterationStatus.COMPLETE
        complete = list(takewhile(lambda one: one.status is done, rounds))
        left = [one for one in rounds[len(complete) :] if one.status is not done]
        if complete and self.match.is_decided(complete):
            for one in left:
                self.store.abandon_validation(self.master_lease, one.id)
            matches = self.store.matches(view.run.id)
            return next(one for one in matches if one.match_number == self._number)
        self._refuse_what_cannot_go_on(view, rounds, gone)
        games = self.match.next_games(rounds, view.active_slots)
        if games and len(left) < _ROUNDS_OPEN:
            self._open(view.run, games)
        self.stopping.wait(self.tick)
        return None

    def _begun(self, view: RunView) -> int | None:
        """The number of the same match, if a round of it is open or its test is not decided."""
        alike = [one for one in self.store.matches(view.run.id) if self.match.is_of(one)]
        if not alike:
            return None
        last = alike[-1]
        test = sprt_of(self.match.compared, last.tally)
        goes_on = last.is_open or (test is not None and test.accepted is None)
        return last.match_number if goes_on else None

    def _rounds(self, run: Run) -> tuple[list[Iteration], list[Iteration]]:
        """The rounds that count or will, and those that another process has abandoned."""
        store, given_up = self.store, IterationStatus.ABANDONED
        needed, own = [*NARROW, Iteration.games_played], self._number
        rounds = store.iterations(run.id, match=own, columns=needed) if own else []
        kept = [one for one in rounds if one.status is not given_up]
        gone = [one for one in rounds if one.status is given_up]
        self._seen_open |= {one.iteration_number for one in kept}
        return kept, [one for one in gone if one.iteration_number in self._seen_open]

    def _refuse_what_cannot_go_on(
        self, view: RunView, rounds: Sequence[Iteration], gone: Sequence[Iteration]
    ) -> None:
        """End the match if a round was abandoned or cannot be played, or the run is paused."""
        run = view.run
        if gone:
            why = f": {run.reason}" if run.reason else ""
            raise TuningError(
                f"the validation was abandoned after {gone[0].games_played} of "
                f"{gone[0].target_games} games; run {run.name} is {run.status}{why}"
            )
        for one in rounds:
            failed = [batch for batch in view.failed if batch.iteration_id == one.id]
            if failed:
                self.store.abandon_validation(self.master_lease, one.id)
                reasons = "; ".join(batch.last_error or "" for batch in failed)
                raise TuningError(f"the validation cannot be played: {reasons}")
        if run.status is RunStatus.PAUSED:
            raise NothingToDo(
                f"run {run.name} is paused: {run.reason}; "
                f"`spsa-master resume --run {quote(run.name)}` continues it"
            )

    def _open(self, run: Run, games: int) -> None:
        if self._building is None:
            self._building = self.delivery.start(self.match.sides)
        wait([self._building], timeout=self.tick)
        if self._building.done():
            new = self.match.new_round(run, self._building.result(), games, self._number)
            opened = self.store.open_iteration(self.master_lease, new)
            self._number = self._number or opened
            self._seen_open.add(opened)


@dataclass(slots=True, kw_only=True)
class Background:
    """Measures theta after every `every` results, by `share` games for each game of the tuning.

    `match` says how and against what. Against a named engine, with which the delivery answers for
    a side without values, the start is measured, too. It is of one master.
    """

    every: int
    share: float
    match: ValidationMatch
    _k: int = field(init=False, default=0)  # the result whose theta is measured now
    _measured: ValidationMatch | None = field(init=False, default=None)
    _building: Future[Sides] | None = field(init=False, default=None)

    def prepare(self, store: Store, run: Run, delivery: Delivery) -> None:
        """Build the engines of the theta that is to be measured, unless that has begun."""
        k, match = run.applied // self.every * self.every, self.match
        if k == self._k and (self._measured is not None or match.sides.minus):
            return
        if self._building is not None:
            self._building.cancel()
        theta = Space.from_json(run.space).playable(store.theta_path(run.id, [k])[0].theta)
        asked = replace(match.asked, theta=str(k), background=True)
        self._measured = replace(match, sides=replace(match.sides, plus=theta), asked=asked, k=k)
        self._k, self._building = k, delivery.start(self._measured.sides)

    def round_beside(self, run: Run, k: int) -> NewIteration | None:
        """The round that is opened together with iteration k, if there is one."""
        games = self.games(k)
        if not games or not self._measured or not self._building or not self._building.done():
            return None
        if (error := self._building.exception()) is not None:
            log.warning("theta after %s is not validated: %s", plural(self._k, "result"), error)
            self._building = None
            return None
        return self._measured.new_round(run, self._building.result(), games, None)

    def games(self, k: int) -> int:
        """The games beside iteration k: whole pairs that add up to the share."""
        each = self.share * self.match.settings.games_per_iteration
        until, before = (2 * floor(each * n / 2) for n in (k, k - 1))
        return until - before
