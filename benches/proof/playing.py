"""Moves the runs of the proof to their ends, one after the other, and plays the matches.

All of it is in the database: what was played is found there and not played again, what was left
open is gone on with.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from benches.proof.places import Place
from spsa.cli.held_run import held_run, play_match, tune
from spsa.config.settings import Config
from spsa.core import Values
from spsa.core.params import PlayedValues, Space
from spsa.db import Store
from spsa.db.tables import Compared, Iteration, Run
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.match import match_of, sprt_of
from spsa.master.start import checked_space, prepare
from spsa.report.matches import ThetaChoice, chosen_theta

SEPARATED = (-5.0, 5.0)
"""Two results are told apart by a sequential test of these, in normalised Elo, with 5% errors."""


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
class Between:
    """A match of what a rule made of the start with what another one did, or with the start."""

    run: Run
    against: str
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
        prepared = prepare(config, self.store, checked_space(config))
        with held_run(self.store, config, prepared.run, self.console, self.stopping) as held:
            ended = tune(held, prepared)
        return None if ended is None else self.store.run(config.run.name)

    def measured(self, place: Place, run: Run, which: ThetaChoice | None) -> Against | None:
        """The match of a theta of the run; None when it was stopped before its end."""
        space, own = Space.from_json(run.space), place.own()
        theta = run.start_theta if which is None else chosen_theta(run, which)
        sides = PlayedValues(space.playable(theta), space.playable(own))
        match = self._match(place.config(), run, sides)
        return None if match is None else Against(run, which, theta, own, match)

    def between(self, config: Config, run: Run, other: Run | None, most: int) -> Between | None:
        """A result's match with another, or its start, until a test decides or `most` games."""
        space = Space.from_json(run.space)
        against, theta = ("start", run.start_theta) if other is None else (other.name, other.theta)
        sides = PlayedValues(space.playable(run.theta), space.playable(theta))
        compared = Compared(against=against, sprt=SEPARATED)
        match = self._decided(run, sides, compared, most)
        if match is None:
            self.console.print(f"{run.name} against {against}: at most {most} games")
            with held_run(self.store, config, run, self.console, self.stopping) as held:
                match = play_match(held, run, match_of(config, run, sides, compared, most))
        return None if match is None else Between(run, against, match)

    def _decided(
        self, run: Run, sides: PlayedValues, compared: Compared, most: int
    ) -> Iteration | None:
        """The match of these two, if it was played to its end."""
        for match in self.store.matches(run.id):
            if _is_of(match, sides) and match.compared == compared:
                test = sprt_of(compared, match.tally)
                if match.tally.games >= most or (test is not None and test.accepted is not None):
                    return match
        return None

    def _match(self, config: Config, run: Run, sides: PlayedValues) -> Iteration | None:
        if known := self._played(run, sides):
            return known
        games = config.validation.games
        self.console.print(f"{config.run.name}: {games} games against the untouched engine")
        with held_run(self.store, config, run, self.console, self.stopping) as held:
            return play_match(held, run, match_of(config, run, sides, Compared(), games))

    def _played(self, run: Run, sides: PlayedValues) -> Iteration | None:
        """The match of these two, if it was played to its end."""
        for match in self.store.iterations(run.id, purpose=Purpose.VALIDATE):
            whole = match.compared is None or match.compared.sprt is None
            if _is_of(match, sides) and whole and match.status is IterationStatus.COMPLETE:
                return match
        return None


def _is_of(match: Iteration, sides: PlayedValues) -> bool:
    return (match.plus_parameters, match.minus_parameters) == (sides.plus, sides.minus)
