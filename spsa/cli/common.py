"""What several commands share: options, the settings they lead to, and the opened store."""

import getpass
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from spsa.config import load_config
from spsa.config.settings import MAX_SHARE, MIN_SHARE
from spsa.db import Store
from spsa.db.database import url_in, warnings, with_absolute_path
from spsa.output import echo
from spsa.report.theta import ThetaChoice

if TYPE_CHECKING:
    from spsa.config import Config
    from spsa.db import Store

Option = Callable[[Callable[..., Any]], Callable[..., Any]]


class FileToWrite(click.Path):
    """A path that names a file, which need not be there."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        return path if path.name else self.fail("it names no file", param, ctx)


class FileInFolder(FileToWrite):
    """A file to write, in a folder that is there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not path.absolute().parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}", param, ctx)
        return path


def _share(_context: click.Context, _option: click.Parameter, share: float | None) -> float | None:
    # Imported late: NumPy comes with it.
    if share is not None and not MIN_SHARE <= share <= MAX_SHARE:  # nor nan
        raise click.BadParameter(f"{share:g} is not from {MIN_SHARE:g} to {MAX_SHARE:g}")
    return share


_URL_FILE = "spsa.database_url_file"


def _keep_url_file(context: click.Context, _option: click.Parameter, file: str | None) -> None:
    context.meta[_URL_FILE] = file


config_option: Option = click.option(
    "--config",
    envvar="SPSA_CONFIG",
    show_envvar=True,
    metavar="FILE",
    help="The configuration; default: ./config.toml.",
)
_url_option: Option = click.option(
    "--database-url",
    envvar="DATABASE_URL",
    show_envvar=True,
    metavar="URL",
    help="Instead of [database] url; keep passwords in the environment.",
)
_url_file_option: Option = click.option(
    "--database-url-file",
    envvar="DATABASE_URL_FILE",
    show_envvar=True,
    metavar="FILE",
    expose_value=False,
    callback=_keep_url_file,
    help="A file that holds the URL and nothing else.",
)


def database_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """--database-url, and --database-url-file, which `settings` knows of by itself."""
    return _url_option(_url_file_option(command))


run_option: Option = click.option(
    "--run", metavar="NAME", help="Name of the run; default: the newest one."
)

# the same limits as in config.toml
priority_option: Option = click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    metavar="N",
    help="Workers serve the run of the highest priority first; default 0.",
)
share_option: Option = click.option(
    "--share",
    type=float,
    callback=_share,
    metavar="X",
    help="Weight of the run among runs of the same priority; default 1.",
)

theta_option: Option = click.option(
    "--theta",
    type=click.Choice([theta.value for theta in ThetaChoice]),
    help="final (default): theta now; averaged: the mean over iterations, late ones weigh more; "
    "supported: the optimum that all games together suggest.",
)


def actor() -> str:
    """The name of the person who changes a run, for its events."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def settings(config: str | None, database_url: str | None) -> "Config":
    """config.toml with what the command line and the environment say on top."""
    return _loaded(config, _chosen_url(database_url))


def _loaded(config: str | None, url: str | None) -> "Config":
    environ = dict(os.environ) if url is None else {**os.environ, "DATABASE_URL": url}
    found = load_config(Path(config or "config.toml"), environ)
    _warn_about(found.database.url)
    return found


def _chosen_url(url: str | None) -> str | None:
    """What the command line says goes before the environment; a URL before the file of one."""
    context = click.get_current_context(silent=True)
    if context is None:
        return url
    file = context.meta.get(_URL_FILE)
    typed, file_typed = (_is_typed(context, n) for n in ("database_url", "database_url_file"))
    if typed and file_typed:
        raise click.UsageError("give --database-url or --database-url-file, not both")
    return url_in(Path(file)) if file and (file_typed or url is None) else url


def _is_typed(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _warn_about(url: str) -> None:
    context = click.get_current_context(silent=True)
    typed = context is not None and _is_typed(context, "database_url")
    for warning in warnings(url, typed=typed):
        echo(f"warning: {warning}", err=True)


def database_of(config: str | None, database_url: str | None) -> str:
    """The database's URL; without a config.toml it is enough that something else names it."""
    url = _chosen_url(database_url)
    if url is None or config is not None or Path("config.toml").exists():
        return _loaded(config, url).database.url
    absolute = with_absolute_path(url, Path.cwd())
    _warn_about(absolute)
    return absolute


@contextmanager
def opened(config: str | None, database_url: str | None) -> "Iterator[Store]":
    """The store that the command line, the environment or the configuration names."""
    with Store(database_of(config, database_url)) as store:
        yield store


def of_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """Call a command with the opened store and the run, and give it the options that name them."""

    @config_option
    @database_option
    @run_option
    @wraps(command)
    def called(config: str | None, database_url: str | None, run: str | None, **given: Any) -> Any:
        with opened(config, database_url) as store:
            return command(store, store.run(run), **given)

    return called


USUAL_DRAWS = 0.6
BUILD_SECONDS = 30.0
"""Of an iteration's two builds, where nothing has measured them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the command line says of things that only playing tells; None where it says nothing."""

    concurrency: int | None
    elo: float | None
    draws: float | None
    game_seconds: float | None
    build_seconds: float | None
    nps: float | None
    measure: bool = False


def assumption_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options whose values `Assumed` holds."""
    positive = click.FloatRange(min=0.0, min_open=True)
    for option in (
        click.option(
            "--nps",
            type=positive,
            help="Nodes per second, for kind = nodes; default: as measured, else a million.",
        ),
        click.option(
            "--build-seconds",
            type=click.FloatRange(min=0.0),
            help=f"Of an iteration's two builds; default: as measured, else {BUILD_SECONDS:g}.",
        ),
        click.option("--game-seconds", type=positive, help="Of one game; default: as measured."),
        click.option(
            "--draws",
            type=click.FloatRange(0.0, 1.0, max_open=True),
            help=f"Draw rate, 0..1; default: as measured, else {USUAL_DRAWS:g}.",
        ),
        click.option("--elo", type=positive, help="Elo there is to gain; default: 5, 20 and 60."),
        click.option(
            "-c",
            "--concurrency",
            type=click.IntRange(1, 100_000),
            help="Games at a time, on all machines.",
        ),
    ):
        command = option(command)
    return command
