"""Opens an SQLite file: write-ahead log, and transactions that begin at once.

Every transaction that writes starts with BEGIN IMMEDIATE. (Under load, a plain BEGIN that reads
before it writes fails at once, whatever the busy timeout is.)
"""

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from math import log10
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from spsa.db.url import displayed, is_file
from spsa.errors import InvalidInput, TablesMissing

BUSY_SECONDS = 30
"""How long a transaction waits for the transactions of others."""

_RETRY_SECONDS = 0.01


def create_engine(url: sa.URL, durable: bool, create: bool, pool: Mapping[str, int]) -> sa.Engine:
    """An engine for a file; see `spsa.db.database.create_engine`."""
    if not create and not Path(str(url.database)).exists():
        raise TablesMissing(
            f"{url}: there is no such file yet: run `spsa-master run` or "
            "`spsa-master db upgrade`, or name another database"
        )

    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None
        _use_write_ahead_log(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.create_function("log10", 1, _log10, deterministic=True)  # some builds lack it
        # deterministic within a statement, which is all that SQLite makes of it
        connection.create_function("spsa_time", 1, _time_from_now, deterministic=True)

    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS}, **pool)
    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", _begin)
    return engine


def backup(url: sa.URL, file: Path) -> None:
    """Copy a database as it is at one moment, while other processes go on writing.

    The copy is complete or absent.

    Raises:
        InvalidInput: the database is on a server, or `file` exists, or its folder does not.
    """
    if not is_file(url):
        raise _not_copied(file, f"{displayed(url)} is no file", "use pg_dump --format=custom")
    if file.exists() or not file.parent.is_dir():
        found = "it exists" if file.exists() else f"there is no folder {file.parent}"
        raise _not_copied(file, found, "name a file that does not exist yet")
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with (
        closing(sqlite3.connect(str(url.database), timeout=BUSY_SECONDS)) as source,
        closing(sqlite3.connect(unfinished)) as copy,
    ):
        source.backup(copy)
    with unfinished.open("rb+") as written:
        os.fsync(written)
    unfinished.rename(file)


def _not_copied(file: Path, found: str, remedy: str) -> InvalidInput:
    return InvalidInput.of(file, "db backup", found, remedy)


def _begin(connection: sa.Connection) -> None:
    reads = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _use_write_ahead_log(connection: Any) -> None:
    """Turn the file to WAL; SQLite's busy timeout does not cover two processes that both do so."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _time_from_now(seconds: float) -> str:
    """Now plus some seconds, as `UtcTime` stores it."""
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _log10(x: float | None) -> float | None:
    return None if x is None else log10(x)
