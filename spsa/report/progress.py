"""The master on a terminal: a live panel; in a log: a line an iteration, one a minute between."""

import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from spsa.report.text import duration, number, score
from spsa.scoring import Tally
from spsa.store import Iteration, RunView

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


class Pace:
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
        self._pace = Pace()
        self._last_line = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._is_live = console.is_terminal

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._is_live:
            self._live.stop()

    def saw(self, view: RunView) -> None:
        now = time.monotonic()
        tally = sum((iteration.tally for iteration in view.open), self._applied)
        self._pace.saw(now, tally.games)
        if self._is_live:
            self._live.update(self._panel(view, tally), refresh=True)
        elif now - self._last_line > QUIET_SECONDS:
            self._say(self._headline(view, tally))

    def opened(self, iteration_number: int, proposal: Opened) -> None:
        self._say(
            f"iteration {iteration_number} opened: "
            f"c_k {number(proposal.c_k)} a_k {number(proposal.a_k)}"
        )

    def applied(self, iteration: Iteration, answer: Moved) -> None:
        self._applied = self._applied + iteration.tally
        void = f", {iteration.void_games} void" if iteration.void_games else ""
        bounded = f" (bounded to {answer.elo:+.1f})" if answer.bounded else ""
        self._say(
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
        self._console.print(line, highlight=False, soft_wrap=True, markup=False)

    def _headline(self, view: RunView, tally: Tally) -> str:
        run = view.run
        rate = self._pace.games_per_second
        pace = "" if rate is None else f", {rate:.2f} games/s{self._to_go(view, tally, rate)}"
        return (
            f"{run.name}: {run.status}, {run.applied}/{run.max_iterations} iterations, "
            f"games {score(tally)}{pace}, {view.active_workers} workers ({view.active_slots} slots)"
            + (f"; {run.reason}" if run.reason else "")
        )

    def _to_go(self, view: RunView, tally: Tally, rate: float) -> str:
        wanted = view.run.max_iterations * int(view.run.settings["games_per_iteration"])
        return f", {duration(max(0, wanted - tally.games) / rate)} to go" if rate > 0 else ""

    def _panel(self, view: RunView, tally: Tally) -> RenderableType:
        rows = Table.grid(padding=(0, 1))
        for iteration in view.open:
            rows.add_row(
                f"{iteration.purpose} {iteration.iteration_number}",
                ProgressBar(iteration.target_games, iteration.games_played, width=24),
                f"{iteration.games_played}/{iteration.target_games}",
                score(iteration.tally) if iteration.tally.games else "waiting for a worker",
            )
        return Group(Text(self._headline(view, tally)), rows)
