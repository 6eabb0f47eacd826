"""One database, opened: transactions, the schema check, a copy, the guard of every lifecycle."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.orm import Session

from spsa.db import migrate
from spsa.db.base import Base
from spsa.db.connection import create_engine, never, parse_url, translated
from spsa.db.database_url import displayed
from spsa.errors import Fault, InvalidInput
from spsa.lifecycle import sources

Status = TypeVar("Status", bound=StrEnum)
Entity = TypeVar("Entity")


class Database:
    """A connection to the tuner's database.

    One method is one transaction. If the outcome of a transaction is unknown, the method raises
    DatabaseUnreachable; it may then be called again with the same arguments.
    """

    def __init__(
        self, url: str, *, durable: bool = True, is_stopping: Callable[[], bool] = never
    ) -> None:
        self._url = parse_url(url)
        self._engine = create_engine(self._url, durable=durable, is_stopping=is_stopping)
        self._readers = self._engine.execution_options(reads_only=True)
        self._moment: sa.Connection | None = None
        """The transaction that all reads share, see `at_one_moment`."""
        self._details: dict[int, Mapping[str, Any]] = {}
        """What claims of an iteration have in common, by its row's id: it never changes."""
        self.check()

    def check(self) -> None:
        """Read the version of the tables.

        Raises:
            DatabaseUnreachable: the database does not respond.
            SchemaMismatch: its tables are older or newer than this program's.
        """
        with self._read() as connection:
            migrate.check(connection)

    @property
    def where(self) -> str:
        """The database's address without its password."""
        return displayed(self._url)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file, which only processes of this machine can open."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        with translated(self._url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        if self._moment is not None:
            yield self._moment
            return
        with translated(self._url), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def at_one_moment(self) -> Iterator[Self]:
        """This database, as it is now for every query that only reads, while others write."""
        with self._read() as connection:
            if not self.is_file:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            frozen = copy(self)
            frozen._moment = connection
            yield frozen

    def copy_to(self, file: Path) -> None:
        """Copy an SQLite database as it is at one moment, while other processes go on writing.

        The copy is complete or absent.

        Raises:
            InvalidInput: the database is on a server, `file` exists, or its folder does not.
        """
        if not self.is_file:
            raise _not_copied(file, f"{self.where} is not a file", "use pg_dump --format=custom")
        if not file.parent.is_dir():
            raise _not_copied(file, f"there is no folder {file.parent}", "create it first")
        if file.exists():
            raise _not_copied(file, "it exists", "name a file that does not exist yet")
        unfinished = file.with_name(f"{file.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        with self._read() as connection:
            source: Any = connection.connection.driver_connection
            with closing(type(source)(unfinished)) as copy:
                source.backup(copy)
        with unfinished.open("rb+") as written:
            os.fsync(written)
        unfinished.rename(file)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _not_copied(file: Path, found: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        [Fault(file=str(file), line=None, name="db backup", found=found, remedy=remedy)]
    )


def rows(connection: sa.Connection, statement: sa.Select[Entity]) -> list[Entity]:
    """The rows of mapped classes that a statement selects, as values."""
    with Session(connection) as session:
        return list(session.scalars(statement))


def add(connection: sa.Connection, row: Base) -> Any:
    """Insert a row, and return its key; what is None is left to the database."""
    mapper = sa.inspect(type(row))
    columns = {one.columns[0]: getattr(row, one.key) for one in mapper.column_attrs}
    given = {column: value for column, value in columns.items() if value is not None}
    return connection.scalar(sa.insert(type(row)).values(given).returning(*mapper.primary_key))


def may_become(
    column: Any, table: Mapping[Status, frozenset[Status]], to: Status
) -> sa.ColumnElement[bool]:
    """The guard of an UPDATE to the status `to`: the row has a status that may precede it."""
    found: sa.ColumnElement[bool] = column.in_(sorted(sources(table, to)))
    return found
