"""`spsa-master dashboard`: the state of all runs in a browser."""

from importlib.util import find_spec
from pathlib import Path

import click

from spsa.cli.common import config_option, database_option, opened
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.output import echo
from spsa.security.files import MAX_TEXT, content

MIN_TOKEN = 16
_NEEDED = ("starlette", "uvicorn", "jinja2")


class NoServer(TuningError):
    """The packages of the extra `web` are not installed."""

    exit_code = 2

    def __init__(self) -> None:
        super().__init__("the dashboard needs more packages: pip install 'spsa-tuner[web]'")


@click.command()
@config_option
@database_option
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address or name to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file with the token that a browser has to be given; needed unless HOST is loopback.",
)
def dashboard(
    config: str | None, database_url: str | None, host: str, port: int, token_file: Path | None
) -> None:
    """Show all runs in a browser; only reads the database.

    A login of the role `viewer` is enough. Ctrl-C ends it.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        raise NoServer
    from spsa.dashboard import app, guard  # late: the packages of an extra

    token = None if token_file is None else guard.Token(_token(token_file))
    if token is None and not guard.is_loopback(host):
        raise click.UsageError(
            f"{host} can be reached from other machines: give --token-file FILE, or listen on "
            "127.0.0.1"
        )
    with opened(config, database_url) as store:
        app.serve(store, host, port, token, lambda url: echo(f"dashboard: {url} (Ctrl-C ends it)"))


def _token(path: Path) -> str:
    try:
        text = content(path, MAX_TEXT).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not ASCII"
        raise _unusable(path, f"cannot be read: {reason}") from None
    if len(text) < MIN_TOKEN or not text.isprintable() or " " in text:
        raise _unusable(path, f"is no line of at least {MIN_TOKEN} characters without spaces")
    return text


def _unusable(path: Path, found: str) -> InvalidInput:
    remedy = "`openssl rand -hex 24 > FILE` makes one"
    return InvalidInput(
        [Fault(file=str(path), line=None, name="token", found=found, remedy=remedy)]
    )
