"""`spsa-master report`: all that is known of a run, to show, to send and to compute with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spsa.cli.common import FileInFolder, config_option, database_option, opened, run_option
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.report.export_csv import csv_files
from spsa.report.export_json import report as look
from spsa.report.text import sentence, terminal
from spsa.security.files import write_whole

if TYPE_CHECKING:
    from spsa.report.export_json import Report


@click.command()
@config_option
@database_option
@run_option
@click.option(
    "--html",
    type=FileInFolder(),
    metavar="FILE",
    help="Write one HTML file with pictures and tables; it opens without a network.",
)
@click.option(
    "--csv",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write history.csv, iterations.csv and workers.csv into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def report(
    config: str | None,
    database_url: str | None,
    run: str | None,
    html: Path | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """All that is known of a run: summary, pictures, parameters, workers, settings, events.

    Without an option the summary and the tables are shown here.
    """
    with opened(config, database_url) as store, working("reading the run"):
        found = look(store, store.run(run))
        exported = csv_files(store, found.run) if folder else {}
    written = [] if html is None else [_page(found, html)]
    if folder is not None:
        written += _exported(folder, exported)
    echo(*(f"wrote {path}" for path in written), err=as_json)
    if as_json:
        echo_json(found.to_json())
    elif not written:
        console = terminal()
        console.print(*(sentence(line) for line in found.sentences()), sep="\n")
        console.print(*found.tables(), sep="\n")


def _page(found: "Report", file: Path) -> Path:
    # Loading jinja2 and what draws takes a second.
    from spsa.report.export_html import page

    with working("drawing"):
        content = page(found).encode()
    write_whole(file, content)
    return file


def _exported(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(folder / name, content)
    return [folder / name for name in contents]
