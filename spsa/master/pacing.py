"""When the next iteration is due, by the slots that are seen, and by what games and builds take."""

from dataclasses import dataclass

from spsa.algorithms import method
from spsa.db.store import RunView
from spsa.lab.planning.question import USUAL_PLIES, game_seconds
from spsa.lab.planning.supply import Demand, bearable_depth, cut, depth_after, evenly
from spsa.master.build_threads import BuildThreads
from spsa.master.decide import AsNeeded, InOrder, Pacing
from spsa.master.settings import AUTO, RunSettings

_PRESUMED_NPS = 1e6
_PRESUMED_SECONDS = 10.0  # of a game by depth, until some have been played


@dataclass(frozen=True, slots=True)
class Pacer:
    """Says for every look at a run how its iterations are to follow each other.

    Where the run's owner fixed the number of iterations in flight it is that and nothing else.
    """

    settings: RunSettings
    build_threads: BuildThreads

    def pacing(self, view: RunView) -> Pacing:
        fixed = self.settings.iterations_in_flight
        if fixed != AUTO:
            return InOrder(fixed)
        return AsNeeded(
            depth=min(self._bearable(view), depth_after(view.run.applied)),
            wanted=self._demand(view, self._hands(view)).wanted,
            games=self.settings.games_per_iteration,
            builders=self.build_threads.places,
        )

    def batches(self, view: RunView) -> tuple[int, ...]:
        """How the games of an iteration are cut that is opened now."""
        settings = self.settings
        if settings.iterations_in_flight != AUTO:
            return evenly(settings.games_per_iteration, settings.batch_size)
        return cut(settings.games_per_iteration, settings.batch_size, view.active_slots)

    def in_flight(self, k: int, opened_on: int) -> int:
        """What the row of iteration k says of how many were."""
        fixed = self.settings.iterations_in_flight
        return k - opened_on if fixed == AUTO else fixed

    def shortage(self, view: RunView) -> str | None:
        """Why slots will wait whatever the master does, and what would help; None if they won't.

        Before the first result only the shortest games are known, and of builds nothing.
        """
        known = view.run.applied and self.build_threads.proved
        if self.settings.iterations_in_flight != AUTO or not known:
            return None
        demand, bearable = self._demand(view, view.active_slots), self._bearable(view)
        slots = f"{demand.slots} slots"
        if demand.games_to_build > demand.games:
            found = f"builds take {demand.build_seconds:.0f} s and cannot keep up with {slots}"
        elif demand.depth > bearable:
            found = f"{slots} need {demand.depth} iterations in flight, this run bears {bearable}"
        else:
            return None
        return f"{found}: in another run {demand.remedy(bearable)}"

    def _hands(self, view: RunView) -> int:
        """Slots, and batches that wait for one at their worker, as the seconds of a game do too."""
        return max(view.active_slots, view.leased_batches)

    def _demand(self, view: RunView, slots: int) -> Demand:
        settings = self.settings
        return Demand(
            slots=slots,
            game_seconds=view.game_seconds or self._presumed_seconds(),
            games=settings.games_per_iteration,
            batch_games=settings.batch_size,
            build_seconds=self.build_threads.seconds,
            builders=self.build_threads.places,
        )

    def _presumed_seconds(self) -> float:
        control = self.settings.terms.time_control
        return game_seconds(control, USUAL_PLIES, _PRESUMED_NPS) or _PRESUMED_SECONDS

    def _bearable(self, view: RunView) -> int:
        needed = method(view.run.algorithm).iterations_per_depth
        return bearable_depth(self.settings.planned_iterations, needed)
