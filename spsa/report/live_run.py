"""A run on one screen of a terminal, as its master sees it or as `status --watch` does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from spsa.core.builds import Builds
from spsa.db.run_view import RunView
from spsa.db.tables import Iteration
from spsa.lifecycle import Purpose
from spsa.report.parameters import ParameterStatus
from spsa.report.runs import building, standings_table
from spsa.report.status import Status, wanted_games
from spsa.report.table import Column, FittedScreen, FittedTable
from spsa.report.text import headlines, number, score, sentence, workers_table
from spsa.report.trails import Trail, gauge

MAX_OPEN = 4
MAX_WORKERS = 8


@dataclass(frozen=True, slots=True)
class Goal:
    """How many games were played, of how many: of the tune or of a match."""

    played: int
    wanted: int

    @property
    def left(self) -> int:
        return max(0, self.wanted - self.played)

    @property
    def percent(self) -> int:
        return 100 * min(self.played, self.wanted) // max(1, self.wanted)


def goal_of(view: RunView, games: int) -> Goal:
    """The goal of the open match, if there is one; else of the tune, which has `games` games."""
    match = open_match(view)
    if match is not None:
        return Goal(match.games_played, match.target_games)
    return Goal(games, wanted_games(view.run))


def open_match(view: RunView) -> Iteration | None:
    """The match that is played now; not one in the background of the tuning."""
    matches = (it for it in view.open if it.purpose is Purpose.VALIDATE)
    return next((it for it in matches if not it.is_background), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a master sees at one moment; `result` is a sentence on what was applied last."""

    headline: str
    goal: Goal
    pace: str
    open: Sequence[Iteration]
    builds: Builds
    result: str
    parameters: Sequence[ParameterStatus]
    trails: Mapping[str, Trail]


def live_view(look: Look) -> RenderableType:
    """As many lines as the terminal has; the parameters get those that the rest leaves."""
    above: list[RenderableType] = [sentence(look.headline), _bar(look)]
    if look.open:
        above.append(_open_iterations(look.open))
    if look.builds.iterations:
        above.append(sentence(building(look.builds)))
    if look.result:
        above.append(sentence(look.result))
    return FittedScreen(above, lambda rows: moving_table(look.parameters, look.trails, rows))


def _bar(look: Look) -> RenderableType:
    goal = look.goal
    row = Table.grid(padding=(0, 1), expand=True)
    row.add_column(ratio=1)
    row.add_column(no_wrap=True)
    row.add_row(ProgressBar(max(1, goal.wanted), goal.played), f"{goal.percent}%, {look.pace}")
    return row


def _open_iterations(iterations: Sequence[Iteration]) -> RenderableType:
    rows = Table.grid(padding=(0, 1))
    for it in iterations[:MAX_OPEN]:
        rows.add_row(
            f"{it.purpose} {it.iteration_number}",
            ProgressBar(it.target_games, it.games_played, width=16),
            f"{it.games_played}/{it.target_games}",
            score(it.tally) if it.tally.games else "waiting for a worker",
        )
    if more := iterations[MAX_OPEN:]:
        played, wanted = sum(it.games_played for it in more), sum(it.target_games for it in more)
        rows.add_row(f"{len(more)} more", "", f"{played}/{wanted}", "")
    return rows


def moving_table(
    parameters: Sequence[ParameterStatus], trails: Mapping[str, Trail], most: int
) -> FittedTable:
    """The active parameters, at most so many: those that moved most, in their usual order."""
    active = [p for p in parameters if p.active]
    moved = {p.name for p in sorted(active, key=lambda p: -abs(p.steps_moved))[:most]}
    few = f"{len(moved)} of {len(active)} parameters, those that moved most"
    table = FittedTable(
        "parameters" if len(moved) == len(active) else few,
        (
            Column("name", is_number=False),
            Column("start", 4),
            Column("theta"),
            Column("steps moved", 3),
            Column("path", 1, is_number=False),
            Column("in its bounds", 1, is_number=False),
            Column("signal/noise", 2),
        ),
    )
    for p in active:
        if p.name in moved:
            table.add(*_cells(p, trails.get(p.name, Trail(()))))
    return table


def _cells(p: ParameterStatus, trail: Trail) -> tuple[str, ...]:
    ratio = trail.signal_to_noise
    return (
        p.name,
        number(p.start),
        number(p.value),
        f"{p.steps_moved:+.2f}",
        trail.sparkline,
        gauge(p.value, p.minimum, p.maximum),
        "" if ratio is None else f"{ratio:.1f}",
    )


def watched(status: Status) -> RenderableType:
    """A status as `status --watch` shows it: on one screen of a terminal."""
    above: list[RenderableType] = [sentence(line) for line in headlines(status)]
    if status.open:
        above.append(_open_iterations(status.open))
    below: list[RenderableType] = []
    if status.present:
        below.append(workers_table(status.present[:MAX_WORKERS]))
    if len(status.present) > MAX_WORKERS:
        below.append(sentence(f"{len(status.present) - MAX_WORKERS} more workers"))
    if status.beside:
        below.append(standings_table(status.beside))
    return FittedScreen(
        above, lambda rows: moving_table(status.parameters, status.trails, rows), below
    )
