"""The database of a direct worker: where it is, and the connection.

Its address is from the command line, the environment, or `[database] url` of config.toml. Only this
module and `worker.replay` import `spsa.db`: a remote worker has neither SQLAlchemy nor the rest of
it.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from spsa.db import Store
from spsa.db.database import configured_url, url_in, warnings
from spsa.errors import Fault, InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.output import echo


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
    remedy = (
        "name one, as in sqlite:///spsa.db or postgresql://user:password@host/database, or name a "
        "server with --server"
    )
    return InvalidInput(
        [Fault(file=file, line=None, name="database.url", found=found, remedy=remedy)]
    )


def private_url(flag: str | None, file: Path | None) -> str:
    """The URL, removed from the environment, so that no engine inherits it."""
    if flag and file:
        raise click.UsageError("give --database-url or --database-url-file, not both")
    url = database_url(flag, os.environ, file)
    for warning in warnings(url, typed=bool(flag)):
        echo(f"warning: {warning}", err=True)
    os.environ.pop("DATABASE_URL", None)
    return url


def opened(url: str, is_stopping: Callable[[], bool]) -> Store:
    """The store of a worker; its commits need not wait for the disk.

    A batch whose report is lost in a crash of the database is played again from its seed.
    """
    return Store(url, durable=False, is_stopping=is_stopping)
