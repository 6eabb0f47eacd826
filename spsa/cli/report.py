"""`spsa-master report`: all that is known of a run, to show, to send and to compute with."""

from pathlib import Path

import click

from spsa.cli.common import FILE, json_option, with_run
from spsa.db import Store
from spsa.db.tables import Run
from spsa.files import write_whole
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.report.report import REPORT, csv_files
from spsa.report.report import report as look
from spsa.report.screen import rendered
from spsa.report.table import record, terminal


@click.command()
@with_run
@click.option(
    "--html",
    type=FILE,
    metavar="FILE",
    help="Write one HTML file with figures and tables; it opens without a network.",
)
@click.option(
    "--csv",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write history.csv, iterations.csv and workers.csv into this folder.",
)
@json_option
def report(store: Store, run: Run, html: Path | None, folder: Path | None, as_json: bool) -> None:
    """Write all that is known of a run: summary, figures, parameters, workers, settings, events.

    Without an option it shows what `status` shows, with all matches and workers.
    """
    with working("reading the run"):
        found = look(store, run)
    written = []
    if html is not None:
        from spsa.report.html import page  # late: jinja2 takes a tenth of a second

        with working("writing the page"):
            write_whole(html, page(found).encode())
        written.append(html)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in csv_files(store, run).items():
            write_whole(folder / name, content)
            written.append(folder / name)
    echo(*(f"wrote {path}" for path in written), err=as_json)
    if as_json:
        echo_json(record(REPORT, found))
    elif not written:
        terminal().print(rendered(found.status, found.tables()))
