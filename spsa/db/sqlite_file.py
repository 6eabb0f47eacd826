"""The file of an SQLite database: who may write it, how it is read where nobody may, and WAL."""

import os
import sqlite3
import time
from dataclasses import dataclass
from math import log10
from pathlib import Path
from typing import Any

from spsa.errors import DatabaseUnreachable, TablesMissing

BUSY_SECONDS = 30
_SOON = 0.01  # seconds
_READS = "may only be read"
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
    """What a connection to it is made of; `where` is how it is called when something is wrong.

    `durable`: whether a commit waits for the disk. `may_be_made`: whether connecting may make it.
    DatabaseUnreachable where its folder is missing.
    """

    where: str
    path: Path
    durable: bool
    may_be_made: bool

    def __post_init__(self) -> None:
        if not self.path.parent.is_dir():
            raise DatabaseUnreachable(f"{self.where}: there is no folder {self.path.parent}")

    def look(self, _dialect: object, record: Any, *_: object) -> sqlite3.Connection | None:
        """Before connecting: a connection of another kind where the file is not ours to change."""
        if not (self.may_be_made or self.path.exists()):
            raise TablesMissing(
                f"{self.where}: there is no such file yet: run `spsa-master run` or "
                "`spsa-master db upgrade`, or name another database"
            )
        record.info[_READS] = not self._may_write
        return self._read_only() if record.info[_READS] else None

    def configure(self, connection: Any, record: Any) -> None:
        """After connecting."""
        connection.isolation_level = None
        if not record.info[_READS]:
            _write_ahead(connection)
        for pragma in (
            "foreign_keys = ON",
            f"synchronous = {'FULL' if self.durable else 'NORMAL'}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        # an SQLite built without mathematical functions lacks the one the views need
        connection.create_function("log10", 1, _log10, deterministic=True)

    @staticmethod
    def leave(_connection: object, record: Any) -> None:
        """After use: the next look at a file that was not ours to change may find that it is."""
        if record.info.get(_READS):
            record.invalidate()

    @property
    def _may_write(self) -> bool:
        """Whether this process may change the file, or make it; a log beside it goes with it."""
        if not self.path.exists():
            return True
        beside = os.access(self.path.parent, os.W_OK) or self._log.exists()
        return os.access(self.path, os.W_OK) and beside

    @property
    def _log(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def _read_only(self) -> sqlite3.Connection:
        """A connection to a file that is not ours to change.

        Without a log beside it nobody writes, and it is read as it stands.
        """
        still = "" if self._log.exists() else "&immutable=1"
        uri = f"{self.path.as_uri()}?mode=ro{still}"
        return sqlite3.connect(uri, BUSY_SECONDS, check_same_thread=False, uri=True)


def advice(path: Path, words: str) -> str:
    """What to add to words of SQLite that hide why a file cannot be written."""
    if words in _NOT_WRITTEN:
        for needed in (path, Path(f"{path}-wal"), path.parent):
            if needed.exists() and not os.access(needed, os.W_OK):
                return f" ({needed.name} can only be read: let this user write it)"
    return _REMEDIES.get(words, "")


def _write_ahead(connection: Any) -> None:
    """Turn the file to WAL; SQLite's own busy timeout does not wait for others who do the same."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_SOON)


def _log10(x: float | None) -> float | None:
    return None if x is None else log10(x)
