"""Which server a worker plays for, and the token of its machine; without one, for the database."""

import re
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click

from spsa.errors import InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.output import echo
from spsa.protocol import is_loopback
from worker.settings import Settings

NO_DATABASE = (
    "this file plays for a server: give --server URL; what needs a database needs an installation "
    "of spsa-tuner"
)
_TOKEN = re.compile(r"[!-~]{1,1000}")
_OTHERS = 0o077


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The URL of a server, and the token of this machine."""

    url: str
    token: str = field(repr=False)


def server_of(settings: Settings, environment: MutableMapping[str, str]) -> Server | None:
    """The server to play for; None for a direct worker. The token leaves the environment."""
    token, file = environment.pop("SPSA_TOKEN", None), settings.token_file
    database, url = settings.database_url or settings.database_url_file, settings.server
    if url and database:
        raise click.UsageError("give --server or the URL of a database, not both")
    if not (url or database):
        url = environment.get("SPSA_SERVER")
        if url and (environment.get("DATABASE_URL") or environment.get("DATABASE_URL_FILE")):
            raise click.UsageError("SPSA_SERVER and DATABASE_URL are both set: unset one of them")
    if not url:
        if file or settings.plain_http:
            raise click.UsageError("--token-file and --plain-http go with --server")
        return None
    if file is not None:
        token = _token_in(file)
    if not token:
        raise click.UsageError(
            "a server needs this machine's token: set SPSA_TOKEN, or give --token-file; "
            "`spsa-master workers invite NAME` makes one"
        )
    if not _TOKEN.fullmatch(token):
        raise _token_fault(file or "SPSA_TOKEN", "has other characters than a token")
    return Server(url=checked_url(url, plain_http=settings.plain_http), token=token)


def checked_url(text: str, *, plain_http: bool) -> str:
    """The URL of a server, without a slash at its end.

    Raises:
        InvalidInput: it is no such URL, or it would send the token to another machine unencrypted
            and `plain_http` does not allow that.
    """
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    has_more = parts.username or parts.query or parts.fragment if host else None
    remedy = "give it as in https://tuning.example.org:8000"
    if not host or not text.isascii() or not text.isprintable() or " " in text:
        found = "it is no URL"
    elif parts.scheme not in ("http", "https") or has_more:
        found = "it has more or other parts than https://, a host, a port and a path"
    elif parts.scheme == "http" and not (plain_http or is_loopback(host)):
        found = (
            "it would send this machine's token over the network unencrypted, for everyone on the "
            "way to read and to use"
        )
        remedy = "use https://, or add --plain-http in a network that you trust"
    else:
        return text.rstrip("/")
    raise InvalidInput.of("--server", "server", found, remedy)


def _token_in(path: Path) -> str:
    """The token in a file of one line; a warning if other users may read it."""
    try:
        text = content(path, MAX_TEXT).decode("utf-8").strip()
        is_open = path.stat().st_mode & _OTHERS
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _token_fault(path, f"cannot be read: {reason}") from None
    if is_open:
        echo(f"warning: other users can read {path} and the token in it: chmod 600", err=True)
    return text


def _token_fault(place: Path | str, found: str) -> InvalidInput:
    remedy = "it has to hold the token of this machine, and nothing else"
    return InvalidInput.of(place, "token", found, remedy)
