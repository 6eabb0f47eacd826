"""`compete --spsa` from its command line: the settings of a worker, and its start.

The address of the database is from the command line, the environment, or `[database] url` of
config.toml.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from spsa.db.database_url import command_line_warning, configured_url, parsed, url_in
from spsa.db.tls import tls_warnings
from spsa.errors import Fault, InvalidInput
from spsa.output import echo
from spsa.security.files import MAX_TEXT, content
from spsa.security.keys import TrustKey
from worker.batches.loop import WorkerOptions
from worker.batches.service import WorkerSettings, serve
from worker.logs import set_up
from worker.settings import engine_limits
from worker.uci.isolation import hide_memory


def database_url(flag: str | None, environment: Mapping[str, str], file: Path | None = None) -> str:
    """The URL to open. A relative SQLite path in config.toml starts at the folder of that file.

    `flag` and `file` are --database-url and --database-url-file. InvalidInput when none of these
    names a database.
    """
    if flag or file is not None:
        return flag or url_in(Path(file or ""))
    if found := environment.get("DATABASE_URL"):
        return found
    if found := environment.get("DATABASE_URL_FILE"):
        return url_in(Path(found))
    named = environment.get("SPSA_CONFIG")
    config = Path(named or "config.toml")
    if named is None and not config.exists():
        raise _fault("DATABASE_URL", "it is not set and there is no config.toml here")
    return configured_url(config.resolve().parent, _configured(config))


def warnings(url: str, flag: str | None) -> list[str]:
    """Warnings about the address before it is used; InvalidInput if it is no URL."""
    remote = tls_warnings(parsed(url))
    typed = command_line_warning(flag) if flag else None
    return [*([typed] if typed else []), *remote]


def _configured(config: Path) -> str | None:
    """The `[database] url` of the file; None where it has none."""
    try:
        table = tomllib.loads(content(config, MAX_TEXT).decode("utf-8")).get("database", {})
    except OSError as error:
        raise _fault(str(config), f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, 5000 digits, deep brackets
        raise _fault(str(config), f"it is not TOML: {error}") from None
    url = table.get("url", None) if isinstance(table, dict) else table
    if not isinstance(url, str | None):
        raise _fault(str(config), "its [database] url is not a string")
    return url


def _fault(file: str, found: str) -> InvalidInput:
    remedy = "name one, as in sqlite:///spsa.db or postgresql://user:password@host/database"
    return InvalidInput(
        [Fault(file=file, line=None, name="database.url", found=found, remedy=remedy)]
    )


def run_worker(given: Mapping[str, Any]) -> int:
    """Play the runs of the database; the exit code. `given` has values by their options' names."""
    set_up(given["log_format"], verbose=given["verbose"])
    hide_memory()
    return serve(service_of(given))


def service_of(given: Mapping[str, Any]) -> WorkerSettings:
    """The settings of a worker; the URL of the database leaves the environment."""
    if given["build"] and given["trust_key"] is not None:
        raise click.UsageError(
            "--build runs what a database orders, which no key signs: leave out --trust-key"
        )
    options = WorkerOptions(
        **{name: given[name] for name in ("drain", "once", "idle_timeout", "max_batches", "syzygy")}
    )
    return WorkerSettings(
        database_url=private_url(given["database_url"], given["database_url_file"]),
        concurrency=given["concurrency"],
        **{name: given[name] for name in ("name", "only_runs", "not_runs", "labels")},
        lease=given["lease"],
        engines_cache=given["engines_cache"],
        build=given["build"],
        trust_key=None if given["trust_key"] is None else TrustKey.of(given["trust_key"]),
        options=options,
        limits=engine_limits(given),
        log_format=given["log_format"],
    )


def private_url(flag: str | None, file: Path | None) -> str:
    """The URL, removed from the environment, so that no engine inherits it."""
    if flag and file:
        raise click.UsageError("give --database-url or --database-url-file, not both")
    url = database_url(flag, os.environ, file)
    for warning in warnings(url, flag):
        echo(f"warning: {warning}", err=True)
    os.environ.pop("DATABASE_URL", None)
    return url
