"""`spsa-master replay`: theta of any past moment."""

from dataclasses import replace

import click

from spsa.cli.common import json_option, with_run
from spsa.db import Store
from spsa.db.tables import Run, run_columns
from spsa.history.replay import theta_at
from spsa.live_display import working
from spsa.master.session import tuning_of
from spsa.output import echo, echo_json
from spsa.report.parameters import PARAMETERS, parameters
from spsa.report.table import TextTable, records, terminal
from spsa.text import plural

_THEN = tuple(replace(c, heading="theta") if c.key == "value" else c for c in PARAMETERS.columns)


@click.command()
@with_run
@click.option(
    "--to",
    "k",
    type=click.IntRange(min=0),
    metavar="K",
    help="Show theta after the first K applied iterations; 0 is the start. Default: all.",
)
@click.option("--as-applied", is_flag=True, help="Include results that a purge removed later.")
@json_option
def replay(store: Store, run: Run, k: int | None, as_applied: bool, as_json: bool) -> None:
    """Show theta after K applied iterations, computed again from the results that count now."""
    to = run.applied if k is None else k
    with working(f"computing theta from {plural(to, 'result')}"):
        found = theta_at(store, run, tuning_of(run), to, as_applied=as_applied)
    rows = parameters(replace(run, **run_columns(found)))
    if as_json:
        told = {"run": run.name, "k": found.k, "applied": run.applied, "as_applied": as_applied}
        told["parameters"] = records(PARAMETERS, rows)
        echo_json(told)
        return
    counting = "as it was applied" if as_applied else "by the games that count now"
    echo(f"run {run.name}: theta after {found.k:,} of {plural(run.applied, 'result')}, {counting}")
    if rows:
        terminal().print(TextTable(replace(PARAMETERS, columns=_THEN), rows))
