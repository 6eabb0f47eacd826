"""`spsa-master plot`: pictures of a run."""

from pathlib import Path

import click

from spsa.cli.common import FileInFolder, config_option, database_option, opened, run_option
from spsa.live_display import working
from spsa.output import echo
from spsa.report.drawing import Kind
from spsa.report.history import history
from spsa.report.pictures import NoMatplotlib, can_draw, chosen, drawn
from spsa.security.files import write_whole

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
