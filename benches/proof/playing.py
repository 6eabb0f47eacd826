"""Moves the runs of the proof to their ends, one after the other, and plays the matches.

All of it is in the database: what was played is found there and not played again, what was left
open is gone on with.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from benches.proof.places import own_values
from spsa.cli.held_run import held_run, play_match, tune
from spsa.config import Config
from spsa.core.params import PlayedValues, Space
from spsa.db import Store
from spsa.db.tables import Iteration, Run, Values
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.start import checked_space, prepare
from spsa.report.theta import ThetaChoice, chosen_theta


@dataclass(frozen=True, slots=True)
class Against:
    """A match of a run's `theta` against the untouched engine, whose values are `own`.

    `which` says which theta of the run it is; None is that of the start.
    """

    run: Run
    which: ThetaChoice | None
    theta: Values
    own: Mapping[str, float]
    match: Iteration


@dataclass(frozen=True, slots=True)
class Hall:
    """Where it is all played; everything stops when `stopping` is set."""

    store: Store
    console: Console
    stopping: threading.Event

    def tuned(self, config: Config) -> Run | None:
        """The run when it has ended; None when it was stopped before that."""
        known = self.store.find_run(config.run.name)
        if known is not None and known.status is RunStatus.FINISHED:
            return known
        each = config.games.games_per_iteration
        self.console.print(
            f"{config.run.name}: {config.spsa.max_iterations} iterations of {each} games"
        )
        prepared = prepare(config, self.store)
        with held_run(self.store, config, prepared.run, self.console, self.stopping) as seat:
            ended = tune(seat, prepared)
        return None if ended is None else self.store.run(config.run.name)

    def measured(self, config: Config, run: Run, which: ThetaChoice | None) -> Against | None:
        """The match of a theta of the run; None when it was stopped before its end."""
        space = Space.from_json(run.space)
        own = own_values(config, checked_space(config))
        theta = run.start_theta if which is None else chosen_theta(run, which)
        plus, minus = (space.rounded(space.steps(values)) for values in (theta, own))
        match = self._match(config, run, PlayedValues(plus, minus))
        return None if match is None else Against(run, which, theta, own, match)

    def _match(self, config: Config, run: Run, sides: PlayedValues) -> Iteration | None:
        if known := self._played(run, sides):
            return known
        games = config.validation.games
        self.console.print(f"{config.run.name}: {games} games against the untouched engine")
        with held_run(self.store, config, run, self.console, self.stopping) as seat:
            return play_match(seat, run, sides, games, run.game_settings)

    def _played(self, run: Run, sides: PlayedValues) -> Iteration | None:
        """The match of these two, if it was played to its end."""
        for match in self.store.iterations(run.id, purpose=Purpose.VALIDATE):
            same = (match.plus_parameters, match.minus_parameters) == (sides.plus, sides.minus)
            if same and match.status is IterationStatus.COMPLETE:
                return match
        return None
