"""`spsa-master params`: the space, and what it does to the source."""

import json

import click

from spsa.cli.common import config_option, database_option, settings


@click.group()
def params() -> None:
    """The parameter space and what it does to the source."""


@params.command()
@config_option
@database_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def show(config: str | None, database_url: str | None, as_json: bool) -> None:
    """What params.toml would tune.

    All of it is checked against the engine first, as `run` does.
    """
    from spsa.config import DeliveryKind
    from spsa.master.start import checked_space
    from spsa.report.text import space_table, terminal

    found = settings(config, database_url)
    space = checked_space(found)
    if as_json:
        click.echo(json.dumps(space.to_json(), allow_nan=False))
    else:
        over_uci = found.delivery.kind is DeliveryKind.UCI
        terminal().print(space_table(space, over_uci=over_uci))


@params.command()
@config_option
@database_option
@click.option(
    "--run", metavar="NAME", help="The theta of this run instead of params.toml's values."
)
@click.option("--start", is_flag=True, help="With --run: the values it was started with.")
def diff(config: str | None, database_url: str | None, run: str | None, start: bool) -> None:
    """The values as a patch of the source.

    For `git apply`, in the folder of the engine's Cargo.toml. An empty patch: the source has these
    values already.
    """
    from spsa.config import read_sources
    from spsa.master.start import checked_space, source_of
    from spsa.rust_constants import render, unified_patch
    from spsa.store import open_store

    found = settings(config, database_url)
    space = checked_space(found)
    source, constants = source_of(found), found.build.constants_file
    theta = {p.name: p.value for p in space.parameters}
    if run is not None:
        with open_store(found.database_url) as store:
            chosen = store.run(run)
        theta = dict(chosen.start_theta if start else chosen.theta)
    texts = read_sources(space, source, constants)
    values = space.rounded(space.steps(theta))
    for name, text in render(space, values, texts, constants).items():
        click.echo(unified_patch(texts[name], text, name), nl=False)
