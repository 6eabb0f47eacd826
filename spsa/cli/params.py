"""`spsa-master params`: the space, and what it does to the source."""

import click

from spsa.cli.common import json_option, with_config
from spsa.cli.params_export import (
    chosen_values,
    export,
    setoption_lines,
    source_patch,
    values_options,
)
from spsa.cli.params_import import import_
from spsa.config import Config, read_sources, source_lines
from spsa.core.params import Space
from spsa.live_display import working
from spsa.master.delivery_setup import source_of
from spsa.master.start import checked_space
from spsa.output import echo_json, echo_raw
from spsa.report.plan import space_table
from spsa.report.table import terminal


@click.group()
def params() -> None:
    """Show, import or export the parameters; print tuned values as a patch."""


@params.command()
@with_config
@json_option
def show(config: Config, as_json: bool) -> None:
    """Show what params.toml tunes.

    All of it is checked against the engine first, as `run` does.
    """
    space = _checked(config)
    if as_json:
        echo_json(space.to_json())
    else:
        terminal().print(space_table(space, _lines(config, space)))


@params.command()
@with_config
@values_options
def diff(config: Config, run: str | None, theta: str | None) -> None:
    """Print the values as a patch of the source, or as `setoption` lines.

    A patch is for `git apply`, in the folder of the engine's Cargo.toml. An empty one says that the
    source has these values already. With `kind = "uci"` each parameter is one line of UCI.
    """
    space = _checked(config)
    values = chosen_values(config, space, run=run, theta=theta)
    if config.delivery.kind == "uci":
        echo_raw(setoption_lines(space, values))
    else:
        echo_raw(source_patch(config, space, values))


def _lines(config: Config, space: Space) -> dict[str, tuple[int, str]] | None:
    """The line of source of each parameter; None if the values are options."""
    if config.delivery.kind == "uci":
        return None
    constants = config.build.constants_file
    return source_lines(space, read_sources(space, source_of(config), constants), constants)


def _checked(config: Config) -> Space:
    with working("checking params.toml against the engine"):
        return checked_space(config)


params.add_command(import_)
params.add_command(export)
