"""`spsa-master report` and `plot`: all that is known of a run, to show, send and compute with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spsa.cli.common import FileInFolder, config_option, database_option, opened, run_option
from spsa.files import write_whole
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.report.drawing import Kind
from spsa.report.export_csv import csv_files
from spsa.report.export_json import report as look
from spsa.report.history import history
from spsa.report.pictures import NoMatplotlib, can_draw, chosen, drawn
from spsa.report.text import sentence, terminal

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


ENDINGS = (".png", ".svg")


class Picture(FileInFolder):
    """A file of a format that can be drawn."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path:
        path = Path(super().convert(value, param, ctx))
        if path.suffix.lower() not in ENDINGS:
            self.fail(f"{path.name!r} has to end with {' or '.join(ENDINGS)}", param, ctx)
        return path


@click.command()
@config_option
@database_option
@run_option
@click.option(
    "--kind",
    "kinds",
    type=click.Choice([kind.value for kind in Kind]),
    multiple=True,
    help="What to draw; may be given several times. Default: all of them.",
)
@click.option(
    "--param", "names", metavar="NAME", multiple=True, help="Only this parameter; may be repeated."
)
@click.option("--group", metavar="NAME", help="Only the parameters of this group.")
@click.option(
    "--normalised", is_flag=True, help="Theta in steps from the start: (theta - start) / step."
)
@click.argument("out", type=Picture(), metavar="OUT.png|svg")
def plot(
    config: str | None,
    database_url: str | None,
    run: str | None,
    kinds: tuple[str, ...],
    names: tuple[str, ...],
    group: str | None,
    normalised: bool,
    out: Path,
) -> None:
    """Draw a run to a PNG or SVG file; needs matplotlib.

    Without --param and --group, a run of many parameters shows those that moved most.
    """
    if not can_draw():
        raise NoMatplotlib
    wanted = [kind for kind in Kind if not kinds or kind in kinds]
    ending = out.suffix.lower().removeprefix(".")
    with opened(config, database_url) as store, working("reading the run"):
        found = history(store, store.run(run))
    paths = chosen(found.parameters, names, group)
    with working("drawing"):
        picture = drawn(found, wanted, ending, paths=paths, normalised=normalised)
    write_whole(out, picture)
    echo(f"wrote {out}")
