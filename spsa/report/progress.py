"""The master on a terminal: a live view; in a log: a line an iteration, one a minute between."""

import time
from typing import Self

from rich.console import Console

from spsa.algorithms.tuning import Proposal
from spsa.core.params import Space
from spsa.core.run_columns import Update
from spsa.db import Store
from spsa.db.run_view import RunView
from spsa.db.tables import Iteration, Run
from spsa.errors import TuningError
from spsa.live_display import LiveDisplay
from spsa.report.alarms import with_alarms
from spsa.report.answer import headline, pace, screen, standstill
from spsa.report.formats import number, score
from spsa.report.status import Status, building, status
from spsa.text import LINE_LENGTH, printable

QUIET_SECONDS = 60.0
MOVERS = 3
_COST = 20.0  # looks take a twentieth of the time at most
_LOOK_SECONDS = 0.5


class Progress:
    """Shows what `status` shows of a run, while its master moves it.

    A context manager, because a live view has to be ended.
    """

    def __init__(self, console: Console, store: Store, run: Run) -> None:
        self._display = LiveDisplay(console)
        self._store = store
        self._steps = {p.name: p.step for p in Space.from_json(run.space).active}
        self._next_look = self._last_line = 0.0
        self._result = ""

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.__exit__(*error)

    def saw(self, view: RunView) -> None:
        self._display.attempt(lambda: self._show(view.run))

    def opened(self, iteration_number: int, proposal: Proposal) -> None:
        if not self._display.is_live:
            gains = f"c_k {number(proposal.c_k)} a_k {number(proposal.a_k)}"
            self._say(f"iteration {iteration_number} opened: {gains}")

    def applied(self, iteration: Iteration, answer: Update) -> None:
        self._result = _result(iteration, answer)
        if not self._display.is_live:
            self._display.attempt(lambda: self._say(f"{self._result}; {self._movers(answer)}"))

    def _show(self, run: Run) -> None:
        now = time.monotonic()
        if self._display.is_live:
            if now >= self._next_look and (found := self._look(run)) is not None:
                left = [printable(headline(found), LINE_LENGTH)]
                self._display.show(screen(found, self._result), left)
                done = time.monotonic()
                self._next_look = done + max(_LOOK_SECONDS, _COST * (done - now))
        elif now - self._last_line > QUIET_SECONDS and (found := self._look(run)) is not None:
            made = building(found.builds) if found.builds.iterations else ""
            told = (headline(found), standstill(found) or pace(found), made)
            self._say("; ".join(part for part in told if part))

    def _look(self, run: Run) -> Status | None:
        """None while the database does not answer, which the master's own loop tells."""
        try:
            return with_alarms(self._store, status(self._store, run))
        except TuningError:
            return None

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


def _result(iteration: Iteration, answer: Update) -> str:
    void = f", {iteration.void_games} void" if iteration.void_games else ""
    bounded = f" (bounded to {answer.elo:+.1f})" if answer.bounded else ""
    number_ = iteration.iteration_number
    return f"iteration {number_} done: games {score(iteration.tally)}{bounded}{void}"
