"""`spsa-master status`, once or until the run has ended."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from spsa.cli.common import config_option, database_option, opened, run_option
from spsa.live_display import LiveDisplay
from spsa.output import echo, echo_json
from spsa.report.alarms import with_alarms
from spsa.report.history import worker_parts
from spsa.report.live_run import watched
from spsa.report.machines import machine_reports
from spsa.report.runs import standings_table, to_json
from spsa.report.status import plain
from spsa.report.status import status as look
from spsa.report.text import headlines, rendered, terminal
from spsa.report.workers import machine_json, machines_text

if TYPE_CHECKING:
    from rich.console import Console

    from spsa.db import Store
    from spsa.report.status import Status


def _interval(_context: click.Context, _option: click.Parameter, seconds: float) -> float:
    if not 0.1 <= seconds <= 86400:  # nor nan, which click's own ranges let through
        raise click.BadParameter(f"{seconds:g} is not within 0.1 and 86400 seconds")
    return seconds


@click.command()
@config_option
@database_option
@run_option
@click.option("--all", "every", is_flag=True, help="A line for each run of the database.")
@click.option(
    "--workers", "by_machine", is_flag=True, help="Compare each machine's results with the others'."
)
@click.option("--watch", is_flag=True, help="Repeatedly, until the run has ended or Ctrl-C.")
@click.option(
    "--interval",
    type=float,
    callback=_interval,
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: between two updates.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def status(
    config: str | None,
    database_url: str | None,
    run: str | None,
    every: bool,
    by_machine: bool,
    watch: bool,
    interval: float,
    as_json: bool,
) -> None:
    """Show the progress, the parameters and the workers of a run.

    With --watch a terminal shows the latest state, as much as fits; a pipe gets each that differs
    from the one before, and with --json each as a line.
    """
    if watch and (every or by_machine):
        raise click.UsageError("--watch is about one run, without --all and --workers")
    with opened(config, database_url) as store:
        if every:
            _list(store, as_json)
            return
        if watch:
            _watch(store, store.run(run).name, interval, as_json)
            return
        found = with_alarms(store, look(store, store.run(run)))
        machines = machine_reports(worker_parts(store, found.run)) if by_machine else ()
    if as_json:
        more = {"machines": [machine_json(one) for one in machines]} if by_machine else {}
        echo_json(found.to_json() | plain(more))
        return
    terminal().print(rendered(found))
    if by_machine:
        terminal().print(machines_text(machines, found.set_aside))


def _list(store: "Store", as_json: bool) -> None:
    standings = store.run_overviews()
    if as_json:
        echo_json({"runs": to_json(standings)})
    else:
        terminal().print(standings_table(standings))


def _watch(store: "Store", name: str, interval: float, as_json: bool) -> None:
    looks = _looks(store, name, interval)
    if as_json:
        for found in looks:
            echo_json(found.to_json())
    else:
        _show(looks, terminal())


def _looks(store: "Store", name: str, interval: float) -> "Iterator[Status]":
    while True:
        found = with_alarms(store, look(store, store.run(name)))
        yield found
        if found.run.finished_at is not None and not (found.open and found.run.master_id):
            return
        time.sleep(interval)


def _show(looks: "Iterator[Status]", console: "Console") -> None:
    before: list[str] = []
    last: Status | None = None
    try:
        with LiveDisplay(console) as display:
            for last in looks:
                if display.is_live:
                    display.show(watched(last))
                elif (lines := list(headlines(last))) != before:
                    echo(*lines)
                    before = lines
    finally:
        if display.is_live and last is not None:
            console.print(rendered(last))
