"""`spsa-master status`, once or until the run has ended."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click
from rich.console import Console

from spsa.cli.common import chosen_run, json_option, run_option, with_store
from spsa.db import Store
from spsa.db.read_queries import VoidGame
from spsa.db.tables import Run
from spsa.errors import NothingToDo
from spsa.live_display import LiveDisplay
from spsa.output import Within, echo, echo_json
from spsa.report.alarms import look, runs_with_alarms
from spsa.report.events import EVENTS, VOIDS, place, void_lines
from spsa.report.screen import rendered, screen
from spsa.report.status import RUNS, STATUS, Status
from spsa.report.table import TextTable, record, records, terminal
from spsa.text import printable

_PLACE = re.compile(r"\d{1,9}\.\d{1,9}", re.ASCII)
_LAST = 100
"""Events, and batches with void games, that are shown: the last ones."""


@click.command()
@with_store
@run_option
@click.option("--all", "every", is_flag=True, help="A line for each run of the database.")
@click.option(
    "--events", "with_events", is_flag=True, help="Also what was done to it: when, by whom."
)
@click.option(
    "--voids",
    is_flag=False,
    flag_value="",
    metavar="[ITERATION.BATCH]",
    help="Also its void games; of one batch all that is known of them.",
)
@click.option("--watch", is_flag=True, help="Repeatedly, until the run has ended or Ctrl-C.")
@click.option(
    "--interval",
    type=Within(0.1, 86400.0),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: between two updates.",
)
@json_option
def status(
    store: Store,
    run: str | None,
    every: bool,
    with_events: bool,
    voids: str | None,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    """Show the progress, the parameters and the workers of a run.

    With --watch a terminal shows the latest state, as much as fits; a pipe gets each that differs
    from the one before, and with --json each as a line.

    No void game counts, and its pair is played again. Workers keep the moves of the first few of a
    batch, and the last lines of the engine at fault.
    """
    if (watch or every) and (with_events or voids is not None or (watch and every)):
        raise click.UsageError("give --watch or --all alone, without --events and --voids")
    if voids and not _PLACE.fullmatch(voids):
        wrong = f"'{printable(voids, 80)}' is not ITERATION.BATCH, as in 12.3"
        raise click.BadParameter(wrong, param_hint="--voids")
    if every:
        standings = store.run_overviews()
        if as_json:
            echo_json({"runs": records(RUNS, standings)})
        else:
            view = runs_with_alarms(lambda name: look(store, store.run(name)))
            terminal().print(TextTable(view, standings))
        return
    if watch:
        looks = _looks(store, chosen_run(store, run).name, interval)
        if as_json:
            for found in looks:
                echo_json(record(STATUS, found))
        else:
            _show(looks, terminal())
        return
    found = look(store, chosen_run(store, run))
    events = store.events(found.run.id, _LAST) if with_events else []
    games = [] if voids is None else _void_games(store, found.run, voids)
    if as_json:
        more: dict[str, Any] = {"events": records(EVENTS, events)} if with_events else {}
        more |= {} if voids is None else {"void_games": records(VOIDS, games)}
        echo_json(record(STATUS, found) | more)
        return
    console = terminal()
    is_whole = with_events or voids is not None or not console.is_terminal
    console.print(rendered(found) if is_whole else screen(found, console))
    if with_events:
        console.print(TextTable(EVENTS, events))
    if voids is not None:
        _show_voids(games, found.run, voids)


def _void_games(store: Store, run: Run, batch: str) -> list[VoidGame]:
    games = store.void_games(run.id, _LAST)
    chosen = [game for game in games if batch in ("", place(game))]
    if batch and not chosen:
        known = ", ".join(dict.fromkeys(place(game) for game in games)) or "none"
        raise NothingToDo(f"no void game of a batch {batch} is kept; batches with some: {known}")
    return chosen


def _show_voids(games: Sequence[VoidGame], run: Run, batch: str) -> None:
    if batch:
        echo(*(line for game in games for line in void_lines(game, run)))
    elif games:
        terminal().print(TextTable(VOIDS, games))
        echo(f"`spsa-master status --voids {place(games[-1])}` shows the last one")
    else:
        echo(f"run {run.name} has no void games")


def _looks(store: Store, name: str, interval: float) -> Iterator[Status]:
    while True:
        found = look(store, store.run(name))
        yield found
        if found.run.finished_at is not None and not (found.open and found.run.master_id):
            return
        time.sleep(interval)


def _show(looks: Iterator[Status], console: Console) -> None:
    before: list[str] = []
    last: Status | None = None
    try:
        with LiveDisplay(console) as display:
            for last in looks:
                if display.is_live:
                    display.show(screen(last, console))
                elif (lines := list(last.sentences())) != before:
                    echo(*lines)
                    before = lines
    finally:
        if display.is_live and last is not None:
            console.print(rendered(last))
