"""`spsa-master events`: what was done to a run."""

import click

from spsa.cli.common import config_option, database_option, opened, run_option
from spsa.output import echo, echo_json
from spsa.report.events import events_table, to_json
from spsa.report.text import terminal


@click.command()
@config_option
@database_option
@run_option
@click.option(
    "--last",
    type=click.IntRange(1, 1_000_000),
    default=100,
    show_default=True,
    help="How many at most.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def events(
    config: str | None, database_url: str | None, run: str | None, last: int, as_json: bool
) -> None:
    """What was done to a run, by whom and when: start, pause, purge and so on; the oldest first."""
    with opened(config, database_url) as store:
        found = store.run(run)
        rows = store.events(found.id, last)
    if as_json:
        echo_json({"run": found.name, "events": to_json(rows)})
    elif rows:
        terminal().print(events_table(rows))
    else:
        echo(f"run {found.name} has no events")
