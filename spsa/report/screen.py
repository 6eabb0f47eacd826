"""A run on a terminal: all of its status, one screen of it, and what its master does.

A master shows a live view; in a log it writes a line an iteration, and one a minute between.
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table

from spsa.core import Update
from spsa.db import Store
from spsa.db.run_view import RunView
from spsa.db.tables import Iteration, Run
from spsa.errors import TuningError
from spsa.lifecycle import Purpose
from spsa.live_display import LiveDisplay
from spsa.report.alarms import look
from spsa.report.matches import ITERATIONS, MATCHES, TIME_CONTROLS
from spsa.report.parameters import PARAMETERS, ParameterStatus
from spsa.report.status import Status
from spsa.report.table import TextTable, View, elo_text, score, sentence, shown
from spsa.report.workers import WORKERS
from spsa.text import LINE_LENGTH, plural, printable

MAX_OPEN = 4
MAX_WORKERS = 8
MAX_ALARMS = 5
_LEAST_ROWS = 4
_TABLE_HEAD = 2  # lines of its title and its headings
QUIET_SECONDS = 60.0
_FIRST_SECONDS = 5.0  # for a worker that is started together with the master
_COST = 20.0  # looks take a twentieth of the time at most
_LOOK_SECONDS = 0.5


def rendered(status: Status, tables: Iterable[tuple[View, Sequence[Any]]] = ()) -> Group:
    """All that a status says, with these tables, or with its own: the whole of `status`."""
    own = (
        (ITERATIONS, status.open_tuning),
        (MATCHES, status.validations),
        (TIME_CONTROLS, status.time_controls),
        (PARAMETERS, status.parameters),
        (WORKERS, status.present),
    )
    lines = (sentence(line) for line in status.sentences())
    return Group(*lines, *(TextTable(view, rows) for view, rows in tables or own if rows))


def screen(status: Status, console: Console, said: str = "") -> RenderableType:
    """As many lines as the terminal has; the parameters get those that the rest leaves.

    `said` is a sentence on what has just happened.
    """
    below = _below(status)
    for most in range(MAX_ALARMS, 0, -1):
        above = _above(status, said, most)
        if _rows_left(console, above) >= _LEAST_ROWS:
            break
    if (rows := _rows_left(console, [*above, *below])) < _LEAST_ROWS:
        below, rows = [], _rows_left(console, above)
    table = [moved_most(status.parameters, rows)] if rows > 0 and status.parameters else []
    return Group(*above, *table, *below)


def _rows_left(console: Console, others: Sequence[RenderableType]) -> int:
    lines = console.render_lines(Group(*others), pad=False)
    return console.height - 1 - len(lines) - _TABLE_HEAD


def _above(status: Status, said: str, most: int) -> list[RenderableType]:
    """With so many alarms at most. What may have a command at its end is not cut."""
    alarms = list(status.alarm_lines())
    lines = [*status.answer_lines(), *status.ends(), *alarms[:most]]
    if len(alarms) > most:
        lines.append(plural(len(alarms) - most, "more alarm"))
    return [
        sentence(status.headline),
        *(Padding.indent(sentence(line), 2) for line in lines),
        *([_bar(*status.played)] if status.played else []),
        *(_one_line(line) for line in (_open(status.open), status.building, said) if line),
    ]


def _below(status: Status) -> list[RenderableType]:
    below: list[RenderableType] = []
    if status.time_controls:
        below.append(TextTable(TIME_CONTROLS, status.time_controls))
    if status.present:
        below.append(TextTable(WORKERS, status.present[:MAX_WORKERS]))
    if len(status.present) > MAX_WORKERS:
        below.append(sentence(f"{len(status.present) - MAX_WORKERS} more workers"))
    return below


def _one_line(text: str) -> RenderableType:
    found = sentence(text)
    found.no_wrap, found.overflow = True, "ellipsis"
    return found


def _bar(played: int, wanted: int) -> RenderableType:
    row = Table.grid(padding=1)
    row.add_row(ProgressBar(max(1, wanted), played), f"{100 * played // max(1, wanted)}%")
    return row


def _open(iterations: Sequence[Iteration]) -> str:
    """`open: tune 4, 6/8 games; validate (number 5), 80/400 games, Elo +3.0 ± 9.1`."""

    def told(one: Iteration) -> str:
        found = f", Elo {elo_text(one.tally)}" if one.purpose is Purpose.VALIDATE else ""
        games = f"{one.games_played:,}/{one.target_games:,} games"
        return f"{one.purpose} {counted(one.k, one.iteration_number)}, {games}{found}"

    more = f"; {len(iterations) - MAX_OPEN} more" if len(iterations) > MAX_OPEN else ""
    return f"open: {'; '.join(map(told, iterations[:MAX_OPEN]))}{more}" if iterations else ""


def counted(k: int | None, number: int) -> str:
    """`35 (number 38)`: k, and the number among all where it differs; a match has no k."""
    parts = ("" if k is None else str(k), "" if k == number else f"(number {number})")
    return " ".join(filter(None, parts))


def moved_most(parameters: Sequence[ParameterStatus], most: int) -> TextTable:
    """At most so many parameters in their usual order: those that moved most, frozen ones last."""
    first = sorted(parameters, key=lambda p: (not p.active, -abs(p.steps_moved)))
    names = {p.name for p in first[:most]}
    few = f"{len(names)} of {len(parameters)} parameters, those that moved most"
    view = PARAMETERS if len(names) == len(parameters) else View(few, PARAMETERS.columns)
    return TextTable(view, [p for p in parameters if p.name in names])


class Progress:
    """Shows what `status` shows of a run, while its master moves it.

    A context manager, because a live view has to be ended.
    """

    def __init__(self, console: Console, store: Store, run: Run) -> None:
        self._display = LiveDisplay(console)
        self._store = store
        self._next_look = 0.0
        self._next_line = time.monotonic() + _FIRST_SECONDS
        self._result = ""

    def __enter__(self) -> Self:
        self._display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.__exit__(*error)

    def saw(self, view: RunView) -> None:
        self._display.attempt(lambda: self._show(view.run))

    def opened(self, iteration_number: int, iteration: Iteration) -> None:
        if not self._display.is_live:
            gains = f"c_k {shown(iteration.c_k)} a_k {shown(iteration.a_k)}"
            self._say(f"iteration {counted(iteration.k, iteration_number)} opened: {gains}")

    def applied(self, iteration: Iteration, answer: Update) -> None:
        void = f", {iteration.void_games} void" if iteration.void_games else ""
        bounded = f" (bounded to {answer.elo:+.1f})" if answer.bounded else ""
        found = f"games {score(iteration.tally)}{bounded}{void}"
        which = counted(iteration.k, iteration.iteration_number)
        self._result = f"iteration {which} done: {found}"
        if not self._display.is_live:
            self._display.attempt(lambda: self._say(self._result))

    def _show(self, run: Run) -> None:
        now, is_live = time.monotonic(), self._display.is_live
        if now < (self._next_look if is_live else self._next_line):
            return
        try:
            found = look(self._store, run)
        except TuningError:  # the database does not answer, which the master's own loop tells
            return
        if is_live:
            view = screen(found, self._display.console, self._result)
            self._display.show(view, [printable(found.headline, LINE_LENGTH)])
            done = time.monotonic()
            self._next_look = done + max(_LOOK_SECONDS, _COST * (done - now))
        else:
            *_, last = found.answer_lines()  # the pace, or why nothing is played
            self._say("; ".join(part for part in (found.headline, last, found.building) if part))

    def _say(self, line: str) -> None:
        self._next_line = time.monotonic() + QUIET_SECONDS
        self._display.say(printable(line, LINE_LENGTH))
