"""The master on a terminal: a live panel; in a log: a line an iteration, one a minute between."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from spsa.core.builds import Builds
from spsa.core.scoring import Tally
from spsa.db.store import Iteration, RunView
from spsa.lifecycle import Purpose
from spsa.report.runs import building, duration
from spsa.report.status import wanted_games
from spsa.report.text import START_A_WORKER, number, plural, score, sentence

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
RATE_SECONDS = 120.0
MOVERS = 3


class Moved(Protocol):
    """What an applied iteration did to theta."""

    @property
    def delta(self) -> Mapping[str, float]: ...
    @property
    def theta(self) -> Mapping[str, float]: ...
    @property
    def elo(self) -> float: ...
    @property
    def bounded(self) -> bool: ...


class Opened(Protocol):
    """What a new iteration plays."""

    @property
    def c_k(self) -> float: ...
    @property
    def a_k(self) -> float: ...


class RunPace:
    """Games per second over the last two minutes, from (time, games) as they are seen."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def saw(self, now: float, games: int) -> None:
        self._seen.append((now, games))
        while now - self._seen[0][0] > RATE_SECONDS:
            self._seen.popleft()

    @property
    def games_per_second(self) -> float | None:
        (first, fewer), (last, more) = self._seen[0], self._seen[-1]
        return (more - fewer) / (last - first) if last > first else None


class Progress:
    """Shows what a master sees; a context manager, because a live display has to be ended."""

    def __init__(self, console: Console, games: Tally, steps: Mapping[str, float]) -> None:
        self._console = console
        self._applied = games
        self._steps = steps
        self._pace = RunPace()
        self._last_line = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._is_broken = False

    def __enter__(self) -> Self:
        if self._is_live:
            self._attempt(self._live.start)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._is_live:
            self._attempt(self._live.stop)

    def saw(self, view: RunView) -> None:
        self._attempt(lambda: self._show(view))

    def opened(self, iteration_number: int, proposal: Opened) -> None:
        gains = f"c_k {number(proposal.c_k)} a_k {number(proposal.a_k)}"
        self._attempt(lambda: self._say(f"iteration {iteration_number} opened: {gains}"))

    def applied(self, iteration: Iteration, answer: Moved) -> None:
        self._applied = self._applied + iteration.tally
        self._attempt(lambda: self._say(self._result(iteration, answer)))

    def _attempt(self, draw: Callable[[], None]) -> None:
        """Draw, and be silent from the first failure on: a picture must not cost a run.

        A terminal that is gone, a closed pipe (rich leaves the program for that), a defect.
        """
        if self._is_broken:
            return
        try:
            draw()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - see above
            self._is_broken = True
            log.warning("the display failed, the run goes on without it: %r", error)

    def _show(self, view: RunView) -> None:
        now = time.monotonic()
        tally = sum((iteration.tally for iteration in view.open), self._applied)
        self._pace.saw(now, tally.games)
        if self._is_live:
            self._live.update(self._panel(view, tally), refresh=True)
        elif now - self._last_line > QUIET_SECONDS:
            self._say(self._headline(view, tally))

    def _result(self, iteration: Iteration, answer: Moved) -> str:
        void = f", {iteration.void_games} void" if iteration.void_games else ""
        bounded = f" (bounded to {answer.elo:+.1f})" if answer.bounded else ""
        return (
            f"iteration {iteration.iteration_number} done: games {score(iteration.tally)}"
            f"{bounded}{void}; {self._movers(answer)}"
        )

    def _movers(self, answer: Moved) -> str:
        def steps(name: str) -> float:
            return answer.delta[name] / self._steps[name]

        names = sorted(self._steps, key=lambda name: -abs(steps(name)))[:MOVERS]
        return "  ".join(
            f"{name} {number(answer.theta[name])} ({steps(name):+.2f} steps)" for name in names
        )

    def _say(self, line: str) -> None:
        self._last_line = time.monotonic()
        self._console.print(sentence(line), soft_wrap=True)

    def _headline(self, view: RunView, tally: Tally) -> str:
        run = view.run
        matches = (it for it in view.open if it.purpose is Purpose.VALIDATE)
        match = next((it for it in matches if not it.is_background), None)
        if match is not None:
            what = f"validation, {match.target_games} games of the tuned values against the start"
            left = match.target_games - match.games_played
        else:
            what = f"{run.status}, {run.applied}/{run.max_iterations} iterations"
            what += f", {plural(tally.games, 'game')}"
            left = max(0, wanted_games(run) - tally.games)
        reason = f"; {run.reason}" if run.reason else ""
        builds = Builds.from_json(run.builds)
        made = f"; {building(builds)}" if builds.iterations else ""
        return f"{run.name}: {what}{self._speed(left)}, {_players(view)}{reason}{made}"

    def _speed(self, games_left: int) -> str:
        rate = self._pace.games_per_second
        if not rate:
            return ""
        return f", {rate:.2f} games/s, {duration(games_left / rate)} to go"

    def _panel(self, view: RunView, tally: Tally) -> RenderableType:
        rows = Table.grid(padding=(0, 1))
        for iteration in view.open:
            rows.add_row(
                f"{iteration.purpose} {iteration.iteration_number}",
                ProgressBar(iteration.target_games, iteration.games_played, width=24),
                f"{iteration.games_played}/{iteration.target_games}",
                score(iteration.tally) if iteration.tally.games else "waiting for a worker",
            )
        return Group(sentence(self._headline(view, tally)), rows)


def _players(view: RunView) -> str:
    if not view.active_workers:
        return f"no worker plays: {START_A_WORKER}"
    return f"{plural(view.active_workers, 'worker')} on {plural(view.active_slots, 'slot')}"
