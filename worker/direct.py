"""What only a direct worker has: the URL of its database, the connection, its machine's secret.

This module alone imports `spsa.db`: a remote worker has no SQLAlchemy.
"""

import logging
import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

import click

from spsa.db import Store
from spsa.db.url import TYPED_PASSWORD, configured_url, has_password, parsed, url_in
from spsa.errors import InvalidInput
from spsa.files import MAX_TEXT, content
from spsa.output import echo
from spsa.text import NAME_LENGTH, printable

log = logging.getLogger(__name__)

_SECRET = "machine-secret"


def private_url(flag: str | None, file: Path | None) -> str:
    """The URL to open, which leaves the environment: no engine inherits it.

    `flag` and `file` are --database-url and --database-url-file. A relative SQLite path in
    config.toml starts at the folder of that file. InvalidInput when none of these names a database.
    """
    found, named = os.environ.pop("DATABASE_URL", None), file or os.environ.get("DATABASE_URL_FILE")
    if flag and file:
        raise click.UsageError("give --database-url or --database-url-file, not both")
    if flag:
        if has_password(flag):
            echo(f"warning: {TYPED_PASSWORD}", err=True)
        return flag
    if found and file is None:
        return found
    if named:
        return url_in(Path(named))
    config = Path(os.environ.get("SPSA_CONFIG") or "config.toml")
    if "SPSA_CONFIG" not in os.environ and not config.exists():
        raise _fault("DATABASE_URL", "it is not set and there is no config.toml here")
    return configured_url(config.resolve().parent, _configured(config))


def _configured(config: Path) -> str | None:
    """The `[database] url` of the file; None where it has none."""
    try:
        text = content(config, MAX_TEXT).decode("utf-8-sig")
        table = tomllib.loads(text).get("database", {})
    except OSError as error:
        raise _fault(str(config), f"it cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, 5000 digits, deep brackets
        raise _fault(str(config), f"it is not TOML: {error}") from None
    url = table.get("url", None) if isinstance(table, dict) else table
    if not isinstance(url, str | None):
        raise _fault(str(config), "its [database] url is not a string")
    if url is not None:
        parsed(url.strip(), config)
    return url


def _fault(file: str, found: str) -> InvalidInput:
    remedy = (
        "name one, as in sqlite:///spsa.db or postgresql://user:password@host/database, or name a "
        "server with --server"
    )
    return InvalidInput.of(file, "database.url", found, remedy)


def opened(url: str, is_stopping: Callable[[], bool]) -> Store:
    """The store of a worker; its commits need not wait for the disk.

    A batch whose report is lost in a crash of the database is played again from its seed.
    """
    return Store(url, durable=False, is_stopping=is_stopping)


def machine_secret(folder: Path) -> str:
    """The secret in this folder, made by the first call; 64 hexadecimal digits.

    Where the folder cannot be used, the secret lasts as long as this process, and the database
    takes the process for another machine.
    """
    file = folder / _SECRET
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            # Written under another name and linked, so that no process reads half of it.
            fresh = file.with_name(f"{_SECRET}.{os.getpid()}")
            fresh.touch(mode=0o600)
            fresh.write_text(token_hex(32))
            with suppress(FileExistsError):  # another process of this machine was faster
                os.link(fresh, file)
            fresh.unlink()
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        place = printable(str(folder), NAME_LENGTH)
        log.warning("cannot keep this machine's secret in %s: %s", place, error.strerror)
        return token_hex(32)
