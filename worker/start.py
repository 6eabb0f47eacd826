"""`compete --spsa` from its command line: the settings of a worker, and its start."""

import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import click

from spsa.errors import Fault, InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.output import echo
from spsa.uci.system import hide_memory
from worker.batches.leaving import WorkerOptions
from worker.batches.service import Server, WorkerSettings, run_worker
from worker.logs import set_up
from worker.settings import engine_limits

NO_DATABASE = (
    "this file plays for a server: give --server URL; what needs a database needs an installation "
    "of spsa-tuner"
)
_TOKEN = re.compile(r"[!-~]{1,1000}")
_OTHERS = 0o077


def start_worker(given: Mapping[str, Any]) -> int:
    """Play the runs of the database or the server; the exit code.

    `given` has values by their options' names.
    """
    set_up(given["log_format"], verbose=given["verbose"])
    hide_memory()
    return run_worker(settings_of(given))


def settings_of(given: Mapping[str, Any], *, needs_database: bool = False) -> WorkerSettings:
    """The settings of a worker; the token and the URL of the database leave the environment."""
    options = WorkerOptions(
        **{name: given[name] for name in ("drain", "once", "idle_timeout", "max_batches", "syzygy")}
    )
    server = None if needs_database else server_of(given, os.environ)
    return WorkerSettings(
        server=server,
        database_url="" if server else _database_url(given),
        concurrency=given["concurrency"],
        **{name: given[name] for name in ("name", "only_runs", "not_runs", "labels")},
        lease=given["lease"],
        engines_cache=given["engines_cache"],
        build=given["build"],
        options=options,
        limits=engine_limits(given),
        log_format=given["log_format"],
    )


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
        raise _fault(str(given["token_file"] or "SPSA_TOKEN"), "has other characters than a token")
    # Imported late: a direct worker needs no HTTP.
    from worker.server_requests import checked_url

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
        raise _fault(str(path), f"cannot be read: {reason}") from None
    if is_open:
        echo(f"warning: other users can read {path} and the token in it: chmod 600", err=True)
    return text


def _fault(file: str, found: str) -> InvalidInput:
    remedy = "it has to hold the token of this machine, and nothing else"
    return InvalidInput([Fault(file=file, line=None, name="token", found=found, remedy=remedy)])
