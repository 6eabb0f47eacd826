"""`spsa-master events`: what was done to a run."""

import click

from spsa.cli.common import of_run
from spsa.db import Store
from spsa.db.tables import Run
from spsa.output import echo, echo_json
from spsa.report.events import events_table, to_json
from spsa.report.text import terminal


@click.command()
@of_run
@click.option(
    "--last",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="How many at most.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def events(store: Store, run: Run, last: int, as_json: bool) -> None:
    """What was done to a run, by whom and when: start, pause, purge and so on; the oldest first."""
    rows = store.events(run.id, last)
    if as_json:
        echo_json({"run": run.name, "events": to_json(rows)})
    elif rows:
        terminal().print(events_table(rows))
    else:
        echo(f"run {run.name} has no events")
