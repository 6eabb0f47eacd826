"""The file of an SQLite database: write-ahead log, and read-only access where writing is denied."""

import os
import sqlite3
import time
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from spsa.errors import DatabaseUnreachable, TablesMissing

BUSY_SECONDS = 30
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteFile:
    """Opens the connections to one file.

    Args:
        where: the database's address, for messages.
        durable: whether a commit waits for the disk.
        may_be_created: whether connecting may create the file.

    Raises:
        DatabaseUnreachable: its folder is missing.
    """

    where: str
    path: Path
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
        """Set the pragmas, and add a function that some builds of SQLite lack."""
        connection.isolation_level = None
        if not record.info[_READ_ONLY]:
            _use_write_ahead_log(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self.durable else 'NORMAL'}")
        connection.create_function("log10", 1, _log10, deterministic=True)  # the views need it

    @staticmethod
    def on_checkin(_connection: object, record: Any) -> None:
        """Close a read-only connection after use, because the file may become writable."""
        if record.info.get(_READ_ONLY):
            record.invalidate()

    @property
    def _may_write(self) -> bool:
        """Whether this user may change the file and its log, or create both."""
        if not self.path.exists():
            return True
        log_possible = os.access(self.path.parent, os.W_OK) or self._log.exists()
        return os.access(self.path, os.W_OK) and log_possible

    @property
    def _log(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def _read_only(self) -> sqlite3.Connection:
        """Without a log beside it no process writes the file, and it is read as it stands."""
        immutable = "" if self._log.exists() else "&immutable=1"
        uri = f"{self.path.as_uri()}?mode=ro{immutable}"
        return sqlite3.connect(uri, BUSY_SECONDS, check_same_thread=False, uri=True)


def remedy(path: Path, message: str) -> str:
    """What to add to a message of SQLite that does not say why a file cannot be written."""
    if message in _NOT_WRITTEN:
        for needed in (path, Path(f"{path}-wal"), path.parent):
            if needed.exists() and not os.access(needed, os.W_OK):
                return f" ({needed.name} can only be read: let this user write it)"
    return _REMEDIES.get(message, "")


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


def _log10(x: float | None) -> float | None:
    return None if x is None else log10(x)
