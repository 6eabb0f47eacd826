"""One database, opened: transactions, the schema check, and the guard of every lifecycle."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from spsa.core.limits import COUNTS
from spsa.core.scoring import Tally
from spsa.db import migrate
from spsa.db.connection import create_engine, never, parse_url, translated
from spsa.db.database_url import displayed
from spsa.lifecycle import sources

Status = TypeVar("Status", bound=StrEnum)


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
            # the schema may have been upgraded while this program was running
            migrate.confirm(connection)

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        with translated(self._url), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def _call(self) -> Iterator[sa.Connection]:
        """For one statement on PostgreSQL that is its own transaction: one round trip."""
        with translated(self._url), self._engine.connect() as connection:
            driver: Any = connection.connection.dbapi_connection
            # set on the driver: SQLAlchemy's AUTOCOMMIT costs two more round trips, and the errors
            # of the one at check-in are not translated
            driver.autocommit = True
            try:
                yield connection
            finally:
                if not driver.closed:
                    driver.autocommit = False

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def may_become(
    column: sa.ColumnElement[str], table: Mapping[Status, frozenset[Status]], to: Status
) -> sa.ColumnElement[bool]:
    """The guard of an UPDATE to the status `to`: the row has a status that may precede it."""
    return column.in_(sorted(sources(table, to)))


def tally_of(row: Any) -> Tally:
    """The counts of an iteration's or a batch's row."""
    pentanomial = (row.ptnml_0, row.ptnml_1, row.ptnml_2, row.ptnml_3, row.ptnml_4)
    return Tally(row.plus_wins, row.minus_wins, row.draws, pentanomial)


def counts_of(tally: Tally) -> dict[str, int]:
    """The values of these columns for a tally."""
    numbers = (tally.wins, tally.losses, tally.draws, *tally.pentanomial)
    return dict(zip(COUNTS, numbers, strict=True))
