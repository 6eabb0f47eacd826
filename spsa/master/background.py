"""Plays validations while a run goes on: a few games of them beside every iteration.

Theta after every N results is measured against the start, by as many games as its share of the
tuning's games until the next such theta. They are opened as small rounds of one match, each in the
transaction that opens an iteration, so that workers play them in between and no machine has to wait
for them. A round is left out while its engines are being built.
"""

import logging
from concurrent.futures import Future
from dataclasses import dataclass, field
from math import floor

from spsa.core.game_settings import GameSettings
from spsa.core.params import PlayedValues, Space
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.run_view import RunView
from spsa.db.tables import Compared, Run
from spsa.master.build_queue import BuildThreads
from spsa.master.session import MasterSession, RunSettings
from spsa.master.validation import ValidationMatch, close_played, match_round

log = logging.getLogger("spsa.master")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundPlan:
    """Measure theta after every `every` results, by `share` games for each game of the tuning."""

    every: int
    share: float
    game_settings: GameSettings

    def games(self, k: int, per_iteration: int) -> int:
        """The games beside iteration k: whole pairs that add up to the share."""
        return self._games_until(k, per_iteration) - self._games_until(k - 1, per_iteration)

    def _games_until(self, k: int, per_iteration: int) -> int:
        return 2 * floor(self.share * per_iteration * k / 2)

    def measured(self, applied: int) -> int:
        """The result whose theta is measured when so many are applied; 0: none yet."""
        return applied // self.every * self.every


@dataclass(slots=True)
class Background:
    """The background validations of one master; without a plan it plays none."""

    plan: BackgroundPlan | None
    settings: RunSettings
    build_threads: BuildThreads
    _k: int = 0  # the result whose theta is measured now
    _sides: PlayedValues | None = None
    _building: Future[Sides] | None = field(default=None)

    def prepare(self, store: Store, run: Run) -> None:
        """Build the engines of the theta that is to be measured, unless that has begun."""
        k = 0 if self.plan is None else self.plan.measured(run.applied)
        if k == self._k:
            return
        if self._building is not None:
            self._building.cancel()
        theta = store.theta_path(run.id, [k])[0].theta
        space = Space.from_json(run.space)
        self._k = k
        self._sides = PlayedValues(space.playable(theta), space.playable(run.start_theta))
        self._building = self.build_threads.start(self._sides.plus, self._sides.minus)

    def round_beside(self, run: Run, k: int) -> NewIteration | None:
        """The round that is opened together with iteration k, if there is one."""
        if self.plan is None or self._sides is None or self._building is None:
            return None
        games = self.plan.games(k, self.settings.games_per_iteration)
        if not games or not self._building.done():
            return None
        if (error := self._building.exception()) is not None:
            log.warning("theta after %d results is not validated: %s", self._k, error)
            self._building = None
            return None
        match = self._match(self.plan, self._sides, run)
        return match_round(match, run, self._building.result(), games, None)

    def _match(self, plan: BackgroundPlan, sides: PlayedValues, run: Run) -> ValidationMatch:
        own = plan.game_settings.time_control == run.game_settings.time_control
        return ValidationMatch(
            plus=sides.plus,
            minus=sides.minus,
            games=0,  # it ends with the next one
            batch_games=self.settings.batch_size,
            max_attempts=self.settings.max_attempts,
            game_settings=plan.game_settings,
            compared=Compared(
                theta=str(self._k),
                time_control=None if own else str(plan.game_settings.time_control),
                background=True,
            ),
            k=self._k,
        )


def close_rounds(session: MasterSession, view: RunView) -> None:
    """Complete the rounds that are played, and give up those that cannot be played."""
    close_played(session, view)
    for row in view.open:
        failed = [failure for failure in view.failed if failure.iteration_id == row.id]
        if row.is_background and failed:
            session.store.abandon_validation(session.master_lease, row.id)
            log.warning("a round of a validation is given up: %s", failed[0].last_error)
