"""Opens an SQLite file: write-ahead log, transactions, and read-only access where it is needed.

Every transaction that writes starts with BEGIN IMMEDIATE. (Under load, a plain BEGIN that reads
before it writes fails at once, whatever the busy timeout is.)
"""

import os
import re
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from errno import ELOOP, ENAMETOOLONG
from math import log10
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError

from spsa.errors import DatabaseUnreachable, TablesMissing

BUSY_SECONDS = 30
"""How long a transaction waits for the transactions of others."""

LOG_BYTES = 2**25
"""From this size of the log on, a writer first waits for readers, so that the log can start anew.

SQLite itself only starts it anew when it finds no reader in it, and the log would grow meanwhile.
"""

READER_SECONDS = 0.2
"""How long a writer waits for readers; others cannot write meanwhile."""

_RETRY_SECONDS = 0.01
_READ_ONLY = "read only"
_NOT_WRITTEN = (
    "attempt to write a readonly database",
    "unable to open database file",
    "disk I/O error",
)
_REMEDIES = {
    "database or disk is full": " (make room on its disk)",
    "disk I/O error": " (its disk fails or can only be read: see the system's log)",
}


_SECONDS = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def parsed(text: str) -> sa.URL:
    """The URL of a file; ValueError says what is wrong, without any part of it."""
    try:
        url = sa.make_url(text)
    except (ArgumentError, ValueError):
        raise ValueError from None
    if url.host is not None or url.username is not None or url.database in (None, "", ":memory:"):
        raise ValueError("names no SQLite file that a second process can open")
    if "uri" not in url.query and url.query.keys() - {"timeout"}:
        raise ValueError("has options that an SQLite file does not take")
    if not _SECONDS.fullmatch(str(url.query.get("timeout", "0"))):
        raise ValueError("has a timeout that is not a number of seconds")
    return url.set(drivername="sqlite")


def create_engine(
    url: sa.URL, where: str, durable: bool, create: bool, pool: Mapping[str, int]
) -> sa.Engine:
    """An engine for a file, which messages call `where`; see `spsa.db.database.create_engine`."""
    path = _path(url)
    file = _SqliteFile(
        where=where,
        path=path,
        log=Path(f"{path}-wal"),
        durable=durable,
        may_be_created=create or "uri" in url.query,
    )
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS}, **pool)
    event.listen(engine, "do_connect", file.before_connecting)
    event.listen(engine, "connect", file.after_connecting)
    event.listen(engine, "checkin", file.on_checkin)
    event.listen(engine, "begin", file.begin)
    return engine


@dataclass(frozen=True, slots=True, kw_only=True)
class _SqliteFile:
    """Opens the connections to one file; `where` is its address for messages."""

    where: str
    path: Path
    log: Path
    durable: bool
    may_be_created: bool

    def __post_init__(self) -> None:
        if not self.path.parent.is_dir():
            raise DatabaseUnreachable(f"{self.where}: there is no folder {self.path.parent}")

    def before_connecting(
        self, _dialect: object, record: Any, *_: object
    ) -> sqlite3.Connection | None:
        """Open a read-only connection where this user may not write; None for a usual one."""
        if not (self.may_be_created or self.path.exists()):
            raise TablesMissing(
                f"{self.where}: there is no such file yet: run `spsa-master run` or "
                "`spsa-master db upgrade`, or name another database"
            )
        record.info[_READ_ONLY] = not self._may_write
        return self._read_only() if record.info[_READ_ONLY] else None

    def after_connecting(self, connection: Any, record: Any) -> None:
        """Set the pragmas, and add the functions that queries need."""
        connection.isolation_level = None
        if not record.info[_READ_ONLY]:
            _use_write_ahead_log(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        connection.create_function("log10", 1, _log10, deterministic=True)  # some builds lack it
        # deterministic within a statement, which is all that SQLite makes of it
        connection.create_function("spsa_time", 1, _time_from_now, deterministic=True)

    @staticmethod
    def on_checkin(_connection: object, record: Any) -> None:
        """Close a read-only connection after use, because the file may become writable."""
        if record.info.get(_READ_ONLY):
            record.invalidate()

    def begin(self, connection: sa.Connection) -> None:
        if connection.get_execution_options().get("reads_only", False):
            connection.exec_driver_sql("BEGIN")
            return
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * READER_SECONDS:.0f}")
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * BUSY_SECONDS}")
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    @property
    def _may_write(self) -> bool:
        """Whether this user may change the file and its log, or create both."""
        if not self.path.exists():
            return True
        log_possible = os.access(self.path.parent, os.W_OK) or self.log.exists()
        return os.access(self.path, os.W_OK) and log_possible

    def _read_only(self) -> sqlite3.Connection:
        """Without a log beside it no process writes the file, and it is read as it stands."""
        immutable = "" if self.log.exists() else "&immutable=1"
        uri = f"{self.path.as_uri()}?mode=ro{immutable}"
        return sqlite3.connect(uri, BUSY_SECONDS, check_same_thread=False, uri=True)


def remedy(url: sa.URL, message: str) -> str:
    """What to add to a message of SQLite that does not say why a file cannot be written."""
    if message in _NOT_WRITTEN:
        path = Path(str(url.database))
        for needed in (path, Path(f"{path}-wal"), path.parent):
            if needed.exists() and not os.access(needed, os.W_OK):
                return f" ({needed.name} can only be read: let this user write it)"
    return _REMEDIES.get(message, "")


def _path(url: sa.URL) -> Path:
    path = Path(str(url.database))
    try:
        path.stat()
    except OSError as error:
        if error.errno in (ENAMETOOLONG, ELOOP):
            raise ValueError(f"names no possible file: {error.strerror}") from None
    return path.resolve()


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
