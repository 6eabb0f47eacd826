"""One database, opened: transactions, the schema check, and the guard of every lifecycle."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Self, TypeVar

import sqlalchemy as sa

from spsa.core.scoring import Tally
from spsa.db import migrate
from spsa.db.connection import create_engine, displayed, nobody_leaves, parse_url, translated
from spsa.lifecycle import sources

Status = TypeVar("Status", bound=StrEnum)


class Database:
    """A connection to the tuner's database.

    One method of a store is one transaction. A transaction whose outcome is unknown raises
    DatabaseUnreachable; every method may then be called again with the same arguments.
    """

    def __init__(
        self, url: str, *, durable: bool = True, hurried: Callable[[], bool] = nobody_leaves
    ) -> None:
        self._url = parse_url(url)
        self._engine = create_engine(self._url, durable=durable, hurried=hurried)
        self._readers = self._engine.execution_options(reads_only=True)
        with self._read() as connection:
            migrate.check(connection)

    @property
    def where(self) -> str:
        """The database's address without its password."""
        return displayed(self._url)

    @property
    def is_file(self) -> bool:
        """Whether only processes of this machine can reach it."""
        return self._url.get_backend_name() == "sqlite"

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        with translated(self._url), self._engine.begin() as connection:
            yield connection
            # the tables may have been upgraded under a program that runs: what it would write then
            # is not what they mean by now
            migrate.confirm(connection)

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        with translated(self._url), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def _call(self) -> Iterator[sa.Connection]:
        """For one statement on PostgreSQL that is a transaction by itself, and one round trip."""
        with translated(self._url), self._engine.connect() as connection:
            driver: Any = connection.connection.dbapi_connection
            # by itself: an isolation level of SQLAlchemy's is two more questions to the server, one
            # of them when the connection goes back, where no error of it is translated
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
    """The guard of an UPDATE to `to`: the row is in a state from which it can be reached."""
    return column.in_(sorted(sources(table, to)))


def tally_of(row: Any) -> Tally:
    """The counts of an iteration's or a batch's row."""
    pentanomial = (row.ptnml_0, row.ptnml_1, row.ptnml_2, row.ptnml_3, row.ptnml_4)
    return Tally(row.plus_wins, row.minus_wins, row.draws, pentanomial)


def tally_from(counts: Sequence[int]) -> Tally:
    """The tally whose counts these are, in the order of `COUNTS`."""
    wins, losses, draws, ll, ld, even, wd, ww = counts
    return Tally(wins, losses, draws, (ll, ld, even, wd, ww))


COUNTS = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
"""The columns that hold a tally."""


def counts_of(tally: Tally) -> dict[str, int]:
    """A tally as the columns that hold it."""
    numbers = (tally.wins, tally.losses, tally.draws, *tally.pentanomial)
    return dict(zip(COUNTS, numbers, strict=True))
