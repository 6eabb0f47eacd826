"""A master session: the settings of its run, its view of the rows, its pacing, outages.

Only errors of the database and of builds end a run; a closed terminal or a full disk under a log
does not.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar

from spsa.algorithms import settings_faults
from spsa.algorithms.tuning import Tuning, tuning
from spsa.builds.git import SourceCommit
from spsa.core import Update
from spsa.core.game_settings import GameSettings
from spsa.core.json_values import as_written, from_json, to_json
from spsa.core.params import Space
from spsa.core.scoring import elo
from spsa.core.uci_options import whole_option
from spsa.db import Store
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import Iteration, Run
from spsa.errors import DatabaseUnreachable, IllegalTransition, UnusableState
from spsa.master.decide import CloseRound, GiveUpRound, Pacing, Pause, SetAside, Upkeep, upkeep
from spsa.master.delivery import Delivery
from spsa.planning.games_needed import GamesNeeded, cut, evenly, in_flight_after, in_flight_limit
from spsa.planning.plan_inputs import mean_game_seconds
from spsa.text import FAILURE_LENGTH, printable

Auto = Literal["auto"]
AUTO: Final[Auto] = "auto"


_ASSUMED_NPS = 1e6
_ASSUMED_SECONDS = 10.0  # of a game to a fixed depth, until some have been played


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """How a run plays and moves, and paces its iterations.

    Gains are derived from `planned_iterations`, also if the run is extended later.
    `iterations_in_flight` is "auto" if it follows the fleet. `origin` says which other run it began
    from, if it did, and `source` which commit of its engine.
    """

    rule: Mapping[str, Any]
    planned_iterations: int
    games_per_iteration: int
    batch_size: int
    iterations_in_flight: int | Auto
    max_attempts: int
    delivery: Mapping[str, Any]
    game_settings: GameSettings
    origin: Mapping[str, Any] | None = None
    source: SourceCommit | None = None

    def to_json(self) -> dict[str, Any]:
        """Everything but the game settings, which have a column of their own."""
        own = (field.name for field in fields(self) if field.name != "game_settings")
        return {name: to_json(getattr(self, name)) for name in own}

    @classmethod
    def of(cls, run: Run) -> Self:
        """The settings of a run; UnusableState if its row has anything else."""
        with as_written("a column `settings`"):
            return from_json(cls, {**run.settings, "game_settings": run.game_settings})

    def tuning(self, space: Space, algorithm: str, seed: int) -> Tuning:
        """The rule of this name, from its start."""
        return tuning(
            space,
            algorithm,
            self.rule,
            iterations=self.planned_iterations,
            pairs=self.games_per_iteration // 2,
            seed=seed,
            weights=self.game_settings.weights,
        )

    def pacing(self, view: RunView, delivery: Delivery) -> Pacing:
        """A fixed number of iterations in flight, or as many as the fleet in view needs."""
        if self.iterations_in_flight != AUTO:
            return Pacing(in_flight=self.iterations_in_flight)
        usual = mean_game_seconds(self.game_settings, _ASSUMED_NPS)
        games_needed = GamesNeeded(
            # or leased batches, if they are more because some wait at their worker
            slots=max(self._games_at_once(view), view.leased_batches),
            game_seconds=view.game_seconds or usual or _ASSUMED_SECONDS,
            games=self.games_per_iteration,
            batch_games=self.batch_size,
            build_seconds=delivery.seconds,
        )
        most = in_flight_limit(self.planned_iterations)
        return Pacing(
            in_flight=min(most, in_flight_after(view.run.applied)),
            wanted=games_needed.wanted,
            games=self.games_per_iteration,
            builders=delivery.at_once,
        )

    def batches(self, view: RunView) -> tuple[int, ...]:
        """The games of each batch of an iteration that is opened now."""
        if self.iterations_in_flight != AUTO:
            return evenly(self.games_per_iteration, self.batch_size)
        return cut(self.games_per_iteration, self.batch_size, self._games_at_once(view))

    def in_flight(self, k: int, opened_on: int) -> int:
        """The number of iterations in flight, for the row of iteration k."""
        fixed = self.iterations_in_flight
        return k - opened_on if fixed == AUTO else fixed

    def _games_at_once(self, view: RunView) -> int:
        """A game takes a slot for each thread of an engine."""
        threads = whole_option(self.game_settings.engine_options, "Threads")
        return view.active_slots // max(1, threads)


def differences(
    run: Mapping[str, Any], files: Mapping[str, Any], within: str = ""
) -> Iterator[str]:
    """A sentence for every value of a run, such as `time_control.high`, that the files change."""
    for name in sorted(run.keys() | files.keys()):
        here, there = run.get(name), files.get(name)
        if isinstance(here, Mapping) and isinstance(there, Mapping):
            yield from differences(here, there, f"{within}{name}.")
        elif here != there:
            said = ["one" if isinstance(part, Mapping) else part for part in (here, there)]
            own, new = ("none" if part is None else part for part in said)
            yield f"{within}{name}: the run has {own}, the files say {new}"


def tuning_of(run: Run) -> Tuning:
    """The space and rule of a run, by its settings; UnusableState if this program lacks them."""
    settings = RunSettings.of(run)
    if faults := settings_faults(run.algorithm, settings.rule):
        found = "; ".join(f"{key}: {found}, {remedy}" for key, found, remedy in faults)
        raise UnusableState(f"another version of this program started run {run.name}: {found}")
    started = settings.tuning(Space.from_json(run.space), run.algorithm, run.seed)
    return replace(started, start_state=run.start_state)


MASTER_LEASE_SECONDS = 30.0
TICK_SECONDS = 0.5
RETRY_SECONDS = 10.0

log = logging.getLogger("spsa.master")


class Watcher(Protocol):
    """Is notified of each view of the run, each opened and each applied iteration; never raises."""

    def saw(self, view: RunView) -> None: ...
    def opened(self, number: int, iteration: Iteration) -> None: ...
    def applied(self, iteration: Iteration, update: Update) -> None: ...


def master_of(run: Run) -> str:
    """Who sets a machine aside in the events of all runs: the master of this one."""
    return f"master of {run.name}"


T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class MasterSession(ABC, Generic[T]):
    """One master of one run, which it views every `tick` seconds until `stopping` is set."""

    store: Store
    master_lease: MasterLease
    delivery: Delivery
    watcher: Watcher
    stopping: threading.Event
    tick: float = TICK_SECONDS

    def run(self) -> T | None:
        """Act until the end, and return what came of it; None when stopped before that.

        Raises MasterLeaseLost: another master holds the run now.
        """
        with self.delivery:
            while not self.stopping.is_set():
                # after these errors the outcome is unknown, and the next view shows it
                try:
                    if (end := self._act()) is not None:
                        return end
                except DatabaseUnreachable as error:
                    log.warning("waiting for the database: %s", error)
                    self.stopping.wait(RETRY_SECONDS)
                except IllegalTransition as error:
                    log.warning("the run has changed meanwhile, deciding again: %s", error)
                    self.stopping.wait(self.tick)
        return None

    def _act(self) -> T | None:
        """Do what the run needs now; what came of it all at the end."""
        builds = self.delivery.builds()
        view = self.store.tick(self.master_lease, MASTER_LEASE_SECONDS, builds)
        self.look(view)
        self.watcher.saw(view)
        if (needed := upkeep(view)) is None:
            return self.advance(view)
        self._carry_out(view, needed)
        return None

    @abstractmethod
    def look(self, view: RunView) -> None:
        """Follow the run, before anything is decided."""

    @abstractmethod
    def advance(self, view: RunView) -> T | None:
        """Do what is next, or wait; what came of it all at the end, else None."""

    def _carry_out(self, view: RunView, needed: Upkeep) -> None:
        store, master_lease = self.store, self.master_lease
        match needed:
            case Pause(reasons, batch_ids):
                store.pause_at_obstacles(master_lease, view, reasons, batch_ids)
                log.warning("the run is paused: %s", reasons[0])
            case SetAside(machine=machine, sha256=sha256):
                reason = printable(needed.reason, FAILURE_LENGTH)
                if store.set_aside(machine, reason, master_of(view.run), sha256=sha256):
                    which = "every binary" if sha256 is None else f"the binary {sha256[:12]}"
                    log.warning("machine %s is set aside for %s: %s", machine, which, needed.reason)
            case CloseRound(row):
                score = elo(row.tally).value
                store.complete_validation(master_lease, row.id, score, view.run.purges)
            case GiveUpRound(row, reason):
                store.abandon_validation(master_lease, row.id)
                log.warning("a round of a validation is given up: %s", reason)
