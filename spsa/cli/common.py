"""What several commands share: options, the settings they lead to, and the opened store."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spsa.report.theta import Theta

if TYPE_CHECKING:
    from spsa.config import Config
    from spsa.store import Store

Option = Callable[[Callable[..., Any]], Callable[..., Any]]

config_option: Option = click.option(
    "--config",
    envvar="SPSA_CONFIG",
    show_envvar=True,
    metavar="FILE",
    help="The configuration; default: ./config.toml.",
)
database_option: Option = click.option(
    "--database-url",
    envvar="DATABASE_URL",
    show_envvar=True,
    metavar="URL",
    help="Instead of [database] url; keep passwords in the environment.",
)
run_option: Option = click.option(
    "--run", metavar="NAME", help="Which run; default: the youngest one."
)

theta_option: Option = click.option(
    "--theta",
    type=click.Choice([theta.value for theta in Theta]),
    help="Which values of the run: where the rule ended (default), their average, in which late "
    "iterations weigh more, or where all games together put the optimum.",
)


def settings(config: str | None, database_url: str | None) -> "Config":
    """config.toml with what the command line and the environment say on top."""
    from spsa.config import load_config

    environ = dict(os.environ)
    if database_url is not None:
        environ["DATABASE_URL"] = database_url
    return load_config(Path(config or "config.toml"), environ)


@contextmanager
def opened(config: str | None, database_url: str | None) -> "Iterator[Store]":
    """The store that the configuration names; its tables have to be there."""
    from spsa.store import open_store

    with open_store(settings(config, database_url).database_url) as store:
        yield store
