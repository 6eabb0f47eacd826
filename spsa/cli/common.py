"""What several commands share: options, and the configuration, store or run that they name."""

import getpass
import os
import socket
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spsa.db import Store
from spsa.db.tables import Run
from spsa.db.url import TYPED_PASSWORD, has_password, url_in, with_absolute_path
from spsa.errors import InvalidInput
from spsa.files import moved_last
from spsa.output import echo

if TYPE_CHECKING:
    from spsa.config.settings import Config

Command = Callable[..., Any]
Option = Callable[[Command], Command]

FILE = click.Path(dir_okay=False, path_type=Path)
"""A file to write."""


config_option: Option = click.option(
    "--config",
    envvar="SPSA_CONFIG",
    show_envvar=True,
    metavar="FILE",
    help="The configuration; default: ./config.toml.",
)
url_option: Option = click.option(
    "--database-url",
    envvar="DATABASE_URL",
    show_envvar=True,
    metavar="URL",
    help="Instead of [database] url; keep passwords in the environment, or in a file that "
    "DATABASE_URL_FILE names.",
)
run_option: Option = click.option(
    "--run", metavar="NAME", help="Name of the run; default: that of this folder, or the newest."
)
json_option: Option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object, for programs."
)


def actor() -> str:
    """The name of the person who changes a run, for its events."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def settings(config: str | None, database_url: str | None, *, and_params: bool = False) -> "Config":
    """config.toml with what the command line and the environment say on top."""
    # late: a command that needs a database alone starts in two thirds of the time
    from spsa.config import load_config

    url = _chosen_url(database_url)
    environ = dict(os.environ) if url is None else {**os.environ, "DATABASE_URL": url}
    return load_config(Path(config or "config.toml"), environ, and_params=and_params)


def _chosen_url(url: str | None) -> str | None:
    """A URL of the command line or the environment goes before the file of one."""
    source = click.get_current_context().get_parameter_source("database_url")
    if url and source is ParameterSource.COMMANDLINE and has_password(url.strip()):
        echo(f"warning: {TYPED_PASSWORD}", err=True)
    file = os.environ.get("DATABASE_URL_FILE")
    return url_in(Path(file)) if file and url is None else url


def database_of(config: str | None, database_url: str | None) -> str:
    """The database's URL; no config.toml is read where something else names it."""
    url = (_chosen_url(database_url) or "").strip()
    if not url:
        if not (path := Path(config or "config.toml")).exists():
            remedy = "let `spsa-master init` write it, or name a database with DATABASE_URL"
            raise InvalidInput.of(path, path.name, "does not exist", remedy)
        return settings(config, database_url).database.url
    return with_absolute_path(url, Path.cwd())


def _with(found: Callable[[str | None, str | None], object], command: Command) -> Command:
    @config_option
    @url_option
    @wraps(command)
    def called(config: str | None, database_url: str | None, **given: Any) -> Any:
        return command(found(config, database_url), **given)

    return called


with_url: Option = partial(_with, database_of)
"""Call a command with the database's URL."""
with_config: Option = partial(_with, settings)
"""Call a command with the configuration."""
with_both: Option = partial(_with, partial(settings, and_params=True))
"""Call a command that reads params.toml, too: what is wrong in both files is told together."""


def with_store(command: Command) -> Command:
    """Call a command with the opened store, for which a URL is enough."""

    @with_url
    @wraps(command)
    def called(url: str, /, **given: Any) -> Any:
        with Store(url) as store:
            return command(store, **given)

    return called


def chosen_run(store: Store, name: str | None) -> Run:
    """The run of this name, or the one that a master of this folder moved last, or the newest."""
    if name is not None:
        return store.run(name)
    config = click.get_current_context().params["config"]
    return store.find_run(moved_last(Path(config or "config.toml").parent)) or store.run()


def with_run(command: Command) -> Command:
    """Call a command with the opened store and the run."""

    @with_store
    @run_option
    @wraps(command)
    def called(store: Store, /, run: str | None, **given: Any) -> Any:
        return command(store, chosen_run(store, run), **given)

    return called
