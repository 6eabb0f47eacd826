"""Copies an SQLite database as it is at one moment, while other processes go on writing."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from spsa.db.database import Database
from spsa.errors import Fault, InvalidInput


class BackupQueries(Database):
    """The query that copies a database."""

    def copy_to(self, file: Path) -> None:
        """Write a copy that is either complete or absent; no other process has to wait.

        Raises:
            InvalidInput: the database is on a server, or `file` exists.
        """
        if not self.is_file:
            raise _refused(file, f"{self.where} is not a file", "use pg_dump --format=custom")
        if not file.parent.is_dir():
            raise _refused(file, f"there is no folder {file.parent}", "create it first")
        if file.exists():
            raise _refused(file, "it exists", "name a file that does not exist yet")
        unfinished = file.with_name(f"{file.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        with self._read() as connection:
            source: Any = connection.connection.driver_connection
            with closing(type(source)(unfinished)) as copy:
                source.backup(copy)
        _to_disk(unfinished)
        unfinished.rename(file)


def _to_disk(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(file: Path, found: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        [Fault(file=str(file), line=None, name="db backup", found=found, remedy=remedy)]
    )
