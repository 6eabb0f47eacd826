"""`spsa-master params`: the space, and what it does to the source."""

import click

from spsa.cli.common import (
    config_option,
    database_option,
    settings,
    theta_option,
)
from spsa.cli.params_export import chosen_values, export, setoption_lines, source_patch
from spsa.cli.params_import import import_
from spsa.config import Config
from spsa.core.params import Space
from spsa.live_display import working
from spsa.master.start import checked_space
from spsa.output import echo_json, echo_raw
from spsa.report.plan import space_table
from spsa.report.text import terminal


@click.group()
def params() -> None:
    """Show, import or export the parameters; print tuned values as a patch."""


@params.command()
@config_option
@database_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def show(config: str | None, database_url: str | None, as_json: bool) -> None:
    """Show what params.toml tunes.

    All of it is checked against the engine first, as `run` does.
    """
    found = settings(config, database_url)
    space = _checked(found)
    if as_json:
        echo_json(space.to_json())
    else:
        over_uci = found.delivery.kind == "uci"
        terminal().print(space_table(space, over_uci=over_uci))


@params.command()
@config_option
@database_option
@click.option(
    "--run", metavar="NAME", help="The theta of this run instead of params.toml's values."
)
@click.option("--start", is_flag=True, help="With --run: the values it was started with.")
@theta_option
def diff(
    config: str | None, database_url: str | None, run: str | None, start: bool, theta: str | None
) -> None:
    """Print the values as a patch of the source, or as `setoption` lines.

    A patch is for `git apply`, in the folder of the engine's Cargo.toml. An empty one says that the
    source has these values already. With `kind = "uci"` each parameter is one line of UCI.
    """
    found = settings(config, database_url)
    space = _checked(found)
    values = chosen_values(found, space, run=run, start=start, theta=theta)
    if found.delivery.kind == "uci":
        echo_raw(setoption_lines(space, values))
    else:
        echo_raw(source_patch(found, space, values))


def _checked(config: Config) -> Space:
    with working("checking params.toml against the engine"):
        return checked_space(config)


params.add_command(import_)
params.add_command(export)
