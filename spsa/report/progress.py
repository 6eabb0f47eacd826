"""The master on a terminal: a live view; in a log: a line an iteration, one a minute between."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from rich.console import Console

from spsa.core.builds import Builds
from spsa.core.estimates import Update
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.db.history_queries import ThetaPoint
from spsa.db.run_view import RunView
from spsa.db.tables import Iteration, Run
from spsa.live_display import LiveDisplay, Rate
from spsa.report.live_run import Goal, Look, goal_of, live_view, open_match
from spsa.report.parameters import ParameterStatus, parameters
from spsa.report.runs import building, duration
from spsa.report.text import START_A_WORKER, number, plural, score
from spsa.report.trails import Trail, extended, trails_of
from spsa.text import LINE_LENGTH, printable

QUIET_SECONDS = 60.0
RATE_SECONDS = 120.0
MOVERS = 3


class Opened(Protocol):
    """What a new iteration plays."""

    @property
    def c_k(self) -> float: ...
    @property
    def a_k(self) -> float: ...


def pace(rate: float | None, goal: Goal) -> str:
    """`0.50 games/s, 1h 20m to go`; empty while no game ends."""
    return f"{rate:.2f} games/s, {duration(goal.left / rate)} to go" if rate else ""


class MovingTheta:
    """The parameters of a run that is moved: as they stand, and their paths."""

    def __init__(self, path: Sequence[ThetaPoint]) -> None:
        self._path = path
        self.now: Sequence[ParameterStatus] = ()
        self.trails: Mapping[str, Trail] = {}
        self._seen: tuple[int, int] | None = None

    def saw(self, run: Run) -> None:
        """Take theta from the run where it has moved."""
        if self._seen != (run.applied, run.purges):
            self._seen = run.applied, run.purges
            self.now = parameters(run)
            point = ThetaPoint(k=run.applied, theta=run.theta, at=run.created_at)
            self._path = extended(self._path, point) if self._path else [point]
            self.trails = trails_of(self._path, run)


class Progress:
    """Shows what a master sees; a context manager, because a live view has to be ended.

    `games` are those that theta holds, `steps` the steps of the active parameters, `path` some
    points of the path of theta so far.
    """

    def __init__(
        self,
        console: Console,
        games: Tally,
        steps: Mapping[str, float],
        path: Sequence[ThetaPoint] = (),
    ) -> None:
        self._display = LiveDisplay(console)
        self._applied = games
        self._steps = steps
        self._theta = MovingTheta(path)
        self._games = Rate(RATE_SECONDS)
        self._last_line = 0.0
        self._headline = self._result = ""

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.__exit__(*error)

    def saw(self, view: RunView) -> None:
        self._display.attempt(lambda: self._show(view))

    def opened(self, iteration_number: int, proposal: Opened) -> None:
        if not self._display.is_live:
            gains = f"c_k {number(proposal.c_k)} a_k {number(proposal.a_k)}"
            self._say(f"iteration {iteration_number} opened: {gains}")

    def applied(self, iteration: Iteration, answer: Update) -> None:
        self._applied = self._applied + iteration.tally
        self._result = _result(iteration, answer)
        if not self._display.is_live:
            self._display.attempt(lambda: self._say(f"{self._result}; {self._movers(answer)}"))

    def _show(self, view: RunView) -> None:
        now = time.monotonic()
        played = (it.tally for it in view.open if not it.is_background)
        tally = sum(played, self._applied)
        self._games.saw(now, tally.games)
        self._headline = _headline(view, tally)
        if self._display.is_live:
            self._theta.saw(view.run)
            look = live_view(self._look(view, tally))
            self._display.show(look, left=[printable(self._headline, LINE_LENGTH)])
        elif now - self._last_line > QUIET_SECONDS:
            speed = pace(self._games.per_second, goal_of(view, tally.games))
            builds = Builds.from_json(view.run.builds)
            made = f"; {building(builds)}" if builds.iterations else ""
            self._say(_headline(view, tally, f", {speed}" if speed else "") + made)

    def _look(self, view: RunView, tally: Tally) -> Look:
        goal = goal_of(view, tally.games)
        return Look(
            headline=self._headline,
            goal=goal,
            pace=pace(self._games.per_second, goal) or "time left not known yet",
            open=view.open,
            builds=Builds.from_json(view.run.builds),
            result=self._result,
            parameters=self._theta.now,
            trails=self._theta.trails,
        )

    def _movers(self, answer: Update) -> str:
        def steps(name: str) -> float:
            return answer.delta[name] / self._steps[name]

        names = sorted(self._steps, key=lambda name: -abs(steps(name)))[:MOVERS]
        return "  ".join(
            f"{name} {number(answer.theta[name])} ({steps(name):+.2f} steps)" for name in names
        )

    def _say(self, line: str) -> None:
        self._last_line = time.monotonic()
        self._display.say(printable(line, LINE_LENGTH))


def steps_of(run: Run) -> dict[str, float]:
    """The steps of its active parameters."""
    return {p.name: p.step for p in Space.from_json(run.space).active}


def _result(iteration: Iteration, answer: Update) -> str:
    void = f", {iteration.void_games} void" if iteration.void_games else ""
    bounded = f" (bounded to {answer.elo:+.1f})" if answer.bounded else ""
    number_ = iteration.iteration_number
    return f"iteration {number_} done: games {score(iteration.tally)}{bounded}{void}"


def _headline(view: RunView, tally: Tally, speed: str = "") -> str:
    run, match = view.run, open_match(view)
    if match is not None:
        what = f"validation, {match.target_games} games of the tuned values against the start"
    else:
        what = f"{run.status}, {run.applied}/{run.max_iterations} iterations"
        what += f", {plural(tally.games, 'game')}"
    reason = f"; {run.reason}" if run.reason else ""
    return f"{run.name}: {what}{speed}, {_players(view)}{reason}"


def _players(view: RunView) -> str:
    """A worker that starts beside the master has the time of the first builds."""
    if not view.active_workers:
        return f"no worker plays: {START_A_WORKER}" if view.open else "no worker yet"
    return f"{plural(view.active_workers, 'worker')} on {plural(view.active_slots, 'slot')}"
