"""Moves the runs of the proof to their ends, one after the other, and plays the matches.

All of it is in the database: what was played is found there and not played again, what was left
open is gone on with.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from spsa.cli.demonstration import own_values
from spsa.cli.session import play_match, tune
from spsa.config import Config
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.start import checked_space, prepare
from spsa.params import Played, Space
from spsa.store import Iteration, Run, Store


@dataclass(frozen=True, slots=True)
class Against:
    """A run that has ended, and its match against the untouched engine, whose values are `own`."""

    run: Run
    own: Mapping[str, float]
    match: Iteration


@dataclass(frozen=True, slots=True)
class Hall:
    """Where it is all played; everything stops when `stopping` is set."""

    store: Store
    console: Console
    stopping: threading.Event

    def tuned(self, config: Config) -> Against | None:
        """Tune, and measure the tuned values; None when stopped before the end."""
        run = self._ended(config)
        return None if run is None else self._measured(config, run, run.theta)

    def start(self, config: Config, run: Run) -> Against | None:
        """Measure what a run was started with, which is the same for all of them."""
        return self._measured(config, run, run.start_theta)

    def _ended(self, config: Config) -> Run | None:
        known = self.store.find_run(config.name)
        if known is not None and known.status is RunStatus.FINISHED:
            return known
        each = config.games.per_iteration
        self.console.print(f"{config.name}: {config.max_iterations} iterations of {each} games")
        ended = tune(self.store, config, prepare(config, self.store), self.console, self.stopping)
        return None if ended is None else self.store.run(config.name)

    def _measured(self, config: Config, run: Run, theta: Mapping[str, float]) -> Against | None:
        space = Space.from_json(run.space)
        own = own_values(config, checked_space(config))
        plus, minus = (space.rounded(space.steps(values)) for values in (theta, own))
        match = self._played(run, Played(plus, minus))
        if match is None:
            games = config.validation.games
            self.console.print(f"{config.name}: {games} games against the untouched engine")
            match = play_match(
                self.store,
                config,
                run,
                Played(plus, minus),
                games,
                run.terms,
                self.console,
                self.stopping,
            )
        return None if match is None else Against(run, own, match)

    def _played(self, run: Run, sides: Played) -> Iteration | None:
        """The match of these two, if it was played to its end."""
        for match in self.store.iterations(run.id, purpose=Purpose.VALIDATE):
            same = (match.plus_parameters, match.minus_parameters) == (sides.plus, sides.minus)
            if same and match.status is IterationStatus.COMPLETE:
                return match
        return None
