"""Computes the pacing of iterations from the active slots and the times of games and builds."""

from dataclasses import dataclass

from spsa.algorithms import rule_entry
from spsa.core.uci_options import whole_option
from spsa.db.run_view import RunView
from spsa.master.decide import AsNeeded, InOrder, Pacing
from spsa.master.delivery import BuildThreads
from spsa.master.session import AUTO, RunSettings
from spsa.planning.games_needed import (
    GamesNeeded,
    cut,
    evenly,
    in_flight_after,
    in_flight_limit,
)
from spsa.planning.plan_inputs import USUAL_PLIES, game_seconds

_ASSUMED_NPS = 1e6
_ASSUMED_SECONDS = 10.0  # of a game to a fixed depth, until some have been played


@dataclass(frozen=True, slots=True)
class Pacer:
    """The pacing of a run: a fixed number in flight, or as many as the fleet needs."""

    settings: RunSettings
    build_threads: BuildThreads

    def pacing(self, view: RunView) -> Pacing:
        """The pacing for this view of the run."""
        fixed = self.settings.iterations_in_flight
        if fixed != AUTO:
            return InOrder(fixed)
        return AsNeeded(
            in_flight=min(self._in_flight_limit(view), in_flight_after(view.run.applied)),
            wanted=self._games_needed(view, self._busy_slots(view)).wanted,
            games=self.settings.games_per_iteration,
            builders=self.build_threads.builders,
        )

    def batches(self, view: RunView) -> tuple[int, ...]:
        """The games of each batch of an iteration that is opened now."""
        settings = self.settings
        if settings.iterations_in_flight != AUTO:
            return evenly(settings.games_per_iteration, settings.batch_size)
        return cut(settings.games_per_iteration, settings.batch_size, self._games_at_once(view))

    def in_flight(self, k: int, opened_on: int) -> int:
        """The number of iterations in flight, for the row of iteration k."""
        fixed = self.settings.iterations_in_flight
        return k - opened_on if fixed == AUTO else fixed

    def _busy_slots(self, view: RunView) -> int:
        """Games at a time, or leased batches if they are more because some wait at their worker."""
        return max(self._games_at_once(view), view.leased_batches)

    def _games_at_once(self, view: RunView) -> int:
        """A game takes a slot for each thread of an engine."""
        threads = whole_option(self.settings.game_settings.engine_options, "Threads")
        return view.active_slots // max(1, threads)

    def _games_needed(self, view: RunView, slots: int) -> GamesNeeded:
        settings = self.settings
        return GamesNeeded(
            slots=slots,
            game_seconds=view.game_seconds or self._assumed_seconds(),
            games=settings.games_per_iteration,
            batch_games=settings.batch_size,
            build_seconds=self.build_threads.seconds,
            builders=self.build_threads.builders,
        )

    def _assumed_seconds(self) -> float:
        control = self.settings.game_settings.time_control
        return game_seconds(control, USUAL_PLIES, _ASSUMED_NPS) or _ASSUMED_SECONDS

    def _in_flight_limit(self, view: RunView) -> int:
        needed = rule_entry(view.run.algorithm).iterations_per_one_in_flight
        return in_flight_limit(self.settings.planned_iterations, needed)
