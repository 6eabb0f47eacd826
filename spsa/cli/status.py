"""`spsa-master status` and `watch`."""

import json
import time

import click

from spsa.cli.common import config_option, database_option, opened, run_option


@click.command()
@config_option
@database_option
@run_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def status(config: str | None, database_url: str | None, run: str | None, as_json: bool) -> None:
    """How far a run is, how good its theta, and who is playing."""

    from spsa.report.status import status as look
    from spsa.report.text import rendered, terminal

    with opened(config, database_url) as store:
        found = look(store, store.run(run))
    if as_json:
        click.echo(json.dumps(found.to_json()))
    else:
        terminal().print(rendered(found))


@click.command()
@config_option
@database_option
@run_option
@click.option("--interval", default=2.0, show_default=True, help="Seconds between two looks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")
def watch(
    config: str | None, database_url: str | None, run: str | None, interval: float, as_json: bool
) -> None:
    """The status again and again, until the run has ended or Ctrl-C."""
    from rich.live import Live

    from spsa.report.status import status as look
    from spsa.report.text import rendered, terminal

    console = terminal()
    with opened(config, database_url) as store, Live(console=console, auto_refresh=False) as live:
        name = store.run(run).name
        while True:
            found = look(store, store.run(name))
            if as_json:
                click.echo(json.dumps(found.to_json()))
            else:
                live.update(rendered(found), refresh=True)
            if found.run.finished_at is not None and not found.open:
                return
            time.sleep(interval)
