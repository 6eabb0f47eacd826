"""`spsa-master serve`: the server with the pages of all runs."""

import ssl
import time
from pathlib import Path
from typing import Any

import click

from spsa.cli.common import with_url
from spsa.db import Store
from spsa.errors import InvalidInput, TablesMissing
from spsa.files import MAX_TEXT, content
from spsa.output import echo
from spsa.protocol import is_loopback
from spsa.server.app import Endpoint, listen
from spsa.server.guard import Proxy
from spsa.server.people import People, Role, Token

MIN_TOKEN = 16
LOOPBACK = "127.0.0.0/8,::1"
TABLES_SECONDS = 2.0

_file = click.Path(path_type=Path)


def _proxy(_context: click.Context, _option: click.Parameter, text: str | None) -> Proxy | None:
    try:
        return None if text is None else Proxy.at(*text.split(","))
    except ValueError as error:
        raise click.BadParameter(f"{error}; name addresses or networks, as 10.0.0.2") from None


@click.command()
@with_url
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
    "--certificate", type=_file, metavar="FILE", help="Use TLS with this certificate (PEM)."
)
@click.option(
    "--private-key", type=_file, metavar="FILE", help="The certificate's private key (PEM)."
)
@click.option(
    "--behind-proxy",
    "proxy",
    is_flag=False,
    flag_value=LOOPBACK,
    metavar="[ADDRESS]",
    callback=_proxy,
    help="Answer only a proxy that has TLS, at ADDRESS (default: this machine), and believe what "
    "it says of its clients: X-Forwarded-For, X-Forwarded-Proto.",
)
@click.option(
    "--plain-http",
    is_flag=True,
    help="Listen on HOST without TLS: tokens and results cross the network unencrypted.",
)
@click.option(
    "--token-file",
    type=_file,
    metavar="FILE",
    help="The token of viewers; needed where other machines can reach the server.",
)
@click.option(
    "--operator-token-file",
    type=_file,
    metavar="FILE",
    help="The token of operators, who can pause, resume and stop runs on their pages.",
)
def serve(
    url: str, token_file: Path | None, operator_token_file: Path | None, **given: Any
) -> None:
    """Serve the pages of all runs, their JSON and metrics; Ctrl-C ends it.

    Only this machine reaches it unless --host names another address, which needs --certificate and
    --private-key, or --behind-proxy, or --plain-http.
    """
    plain_http = given.pop("plain_http")
    endpoint = Endpoint(**given)
    _refuse_open(endpoint, plain_http, token_file is not None)
    people = People(
        viewer=_token(Role.VIEWER, token_file), operator=_token(Role.OPERATOR, operator_token_file)
    )
    if people.viewer and people.operator and people.viewer.is_(people.operator.text):
        raise InvalidInput.of(
            operator_token_file, "token", "is the viewers' token, too", _NEW_TOKEN
        )
    if endpoint.certificate and endpoint.private_key:
        _refuse_unusable_tls(endpoint.certificate, endpoint.private_key)
    if plain_http and not is_loopback(endpoint.host):
        echo("warning: tokens and results cross the network unencrypted", err=True)
    with _opened_when_there(url) as store:
        listen(store, endpoint, people, lambda page: echo(f"serving {page} (Ctrl-C ends it)"))


def _opened_when_there(url: str) -> Store:
    """The store; it waits for its tables, because a server may start before the first run."""
    told = ""
    while True:
        try:
            return Store(url)
        except TablesMissing as error:
            if str(error) != told:
                told = str(error)
                echo(f"waiting for the database: {told}", err=True)
            time.sleep(TABLES_SECONDS)


def _refuse_open(endpoint: Endpoint, plain_http: bool, has_token: bool) -> None:
    """Raise UsageError for options that contradict each other or expose the server."""
    host, has_tls = endpoint.host, endpoint.certificate is not None
    if has_tls != (endpoint.private_key is not None):
        raise click.UsageError("give --certificate FILE and --private-key FILE together")
    if plain_http and (has_tls or endpoint.proxy):
        raise click.UsageError(
            "--plain-http is for a server without TLS: leave it out, or --certificate and "
            "--behind-proxy"
        )
    if not (is_loopback(host) or has_tls or endpoint.proxy or plain_http):
        raise click.UsageError(
            f"other machines can reach {host}: give --certificate FILE and --private-key FILE, or "
            "--behind-proxy, or --plain-http, which sends tokens unencrypted; or listen on "
            "127.0.0.1"
        )
    if not has_token and (endpoint.proxy or not is_loopback(host)):
        raise click.UsageError(
            "other machines can reach this server: give --token-file FILE, and its pages ask for "
            "this token"
        )


_NEW_TOKEN = "`openssl rand -hex 24 > FILE` makes one"


def _token(role: Role, path: Path | None) -> Token | None:
    if path is None:
        return None
    try:
        text = content(path, MAX_TEXT).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not ASCII"
        raise InvalidInput.of(path, "token", f"cannot be read: {reason}", _NEW_TOKEN) from None
    if len(text) < MIN_TOKEN or not text.isprintable() or " " in text:
        found = f"is no line of at least {MIN_TOKEN} characters without spaces"
        raise InvalidInput.of(path, "token", found, _NEW_TOKEN)
    return Token(role, text)


def _refuse_unusable_tls(certificate: Path, private_key: Path) -> None:
    """Refuse files that TLS cannot work with, before anything listens."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, private_key, password="")  # else it asks for one
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", getattr(error, "strerror", None) or error)
        reason = reason or "a file is damaged, or the key has a password"
        found = f"cannot be used with {private_key}: {str(reason).replace('_', ' ').lower()}"
        remedy = "name the PEM files of a certificate, with its chain, and of its private key"
        raise InvalidInput.of(certificate, "certificate", found, remedy) from None
