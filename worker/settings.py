"""Values of the command line as the settings of a worker and of its engines."""

import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from spsa.errors import Fault, InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.output import echo
from spsa.protocol import DEFAULT_LEASE_SECONDS
from spsa.uci.engine import UciTimeouts
from spsa.uci.spawning import EngineLimits
from worker.machine import memory, pinning_order

NO_DATABASE = (
    "this file plays for a server: give --server URL; what needs a database needs an installation "
    "of spsa-tuner"
)
_TOKEN = re.compile(r"[!-~]{1,1000}")
_OTHERS = 0o077
_MIB = 2**20
_MIN_MEMORY = 256 * _MIB
_AS_GIVEN = (
    *("concurrency", "name", "only_runs", "not_runs", "labels", "lease", "engines_cache", "build"),
    *("drain", "once", "idle_timeout", "max_batches", "syzygy", "log_format"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The URL of a server, and the token of this machine."""

    url: str
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of one worker process; times in seconds, None is no limit.

    It plays for the `server`, or without one for the database. `drain` is how long active batches
    may go on after the first interrupt. With `once` the worker leaves when no run has work left;
    with `idle_timeout` when it had none for that long. `syzygy` are the folders of this machine's
    tables.
    """

    server: Server | None = None
    database_url: str = field(default="", repr=False)
    concurrency: int = 1
    name: str | None = None
    only_runs: tuple[str, ...] = ()
    not_runs: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    lease: float = DEFAULT_LEASE_SECONDS
    engines_cache: Path | None = None
    build: bool = False
    drain: float = 60.0
    once: bool = False
    idle_timeout: float | None = None
    max_batches: int | None = None
    syzygy: tuple[Path, ...] = ()
    timeouts: UciTimeouts = field(default_factory=UciTimeouts)
    limits: EngineLimits = field(default_factory=EngineLimits)
    log_format: str = "text"


def settings_of(given: Mapping[str, Any], *, needs_database: bool = False) -> WorkerSettings:
    """The settings of a worker from values by their options' names.

    The token and the URL of the database leave the environment.
    """
    server = None if needs_database else server_of(given, os.environ)
    return WorkerSettings(
        server=server,
        database_url="" if server else _database_url(given),
        limits=engine_limits(given),
        **{name: given[name] for name in _AS_GIVEN},
    )


def engine_limits(given: Mapping[str, Any]) -> EngineLimits:
    """The limits of every engine, from --pin, --engine-memory and the parts of the sandbox.

    An engine gets a quarter of a slot's share of the memory by default: each slot has two engines
    that play and two that start.
    """
    pin, mebibytes = given["pin"], given["engine_memory"]
    if pin and not hasattr(os, "sched_setaffinity"):
        raise click.UsageError("--pin: this system cannot keep a process on a core")
    return EngineLimits(
        memory=_memory_share(given["concurrency"]) if mebibytes is None else mebibytes * _MIB,
        cores=pinning_order() if pin else (),
        **{name: given[name] for name in ("isolation", "worker_id", "folders")},
    )


def _memory_share(slots: int) -> int | None:
    installed = memory()
    return None if installed is None else max(_MIN_MEMORY, installed // (4 * slots))


def server_of(given: Mapping[str, Any], environment: MutableMapping[str, str]) -> Server | None:
    """The server to play for; None for a direct worker. The token leaves the environment."""
    token = environment.pop("SPSA_TOKEN", None)
    url = server_address(given, environment)
    if url is None:
        for name in ("token_file", "plain_http"):
            if given[name]:
                raise click.UsageError(f"--{name.replace('_', '-')} goes with --server")
        return None
    if given["token_file"] is not None:
        token = _token_in(given["token_file"])
    if not token:
        raise click.UsageError(
            "a server needs this machine's token: set SPSA_TOKEN, or give --token-file; "
            "`spsa-master workers invite NAME` makes one"
        )
    if not _TOKEN.fullmatch(token):
        raise _token_fault(given["token_file"] or "SPSA_TOKEN", "has other characters than a token")
    return Server(url=checked_url(url, plain_http=given["plain_http"]), token=token)


def server_address(given: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """The server's URL as it was given: --server, else SPSA_SERVER; None for a direct worker."""
    database = given["database_url"] or given["database_url_file"]
    if given["server"] and database:
        raise click.UsageError("give --server or the URL of a database, not both")
    if given["server"] or database:
        url: str | None = given["server"]
        return url
    found = environment.get("SPSA_SERVER")
    if found and (environment.get("DATABASE_URL") or environment.get("DATABASE_URL_FILE")):
        raise click.UsageError(
            "SPSA_SERVER and DATABASE_URL are both set: unset one of them, or give --server or "
            "--database-url"
        )
    return found or None


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
    if not host or not text.isascii() or not text.isprintable() or " " in text:
        raise _url_fault("it is no URL", "give one, as in https://tuning.example.org")
    if parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
        raise _url_fault(
            "it has more or other parts than https://, a host, a port and a path",
            "give it as in https://tuning.example.org:8000",
        )
    if parts.scheme == "http" and not (plain_http or _is_loopback(host)):
        raise _url_fault(
            "it would send this machine's token over the network unencrypted, for everyone on the "
            "way to read and to use",
            "use https://, or add --plain-http in a network that you trust",
        )
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _url_fault(found: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        [Fault(file="--server", line=None, name="server", found=found, remedy=remedy)]
    )


def _database_url(given: Mapping[str, Any]) -> str:
    try:
        # Imported late: a remote worker has no SQLAlchemy.
        from worker.direct import private_url
    except ModuleNotFoundError:
        raise click.UsageError(NO_DATABASE) from None
    return private_url(given["database_url"], given["database_url_file"])


def _token_in(path: Path) -> str:
    """The token in a file of one line; a warning if other users may read it."""
    try:
        text = content(path, MAX_TEXT).decode("utf-8").strip()
        is_open = os.name == "posix" and path.stat().st_mode & _OTHERS
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise _token_fault(path, f"cannot be read: {reason}") from None
    if is_open:
        echo(f"warning: other users can read {path} and the token in it: chmod 600", err=True)
    return text


def _token_fault(place: Path | str, found: str) -> InvalidInput:
    remedy = "it has to hold the token of this machine, and nothing else"
    return InvalidInput(
        [Fault(file=str(place), line=None, name="token", found=found, remedy=remedy)]
    )
