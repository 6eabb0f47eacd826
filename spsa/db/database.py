"""One database, opened: transactions, errors, rows as values, the guard of every lifecycle."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from enum import StrEnum
from json import JSONDecodeError
from math import log10
from pathlib import Path
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError
from sqlalchemy.exc import OperationalError as DriverError
from sqlalchemy.orm import Session

from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, Base
from spsa.db.url import TLS_REMEDY, displayed, is_file, parse_url, refused
from spsa.errors import (
    DatabaseUnreachable,
    IllegalTransition,
    NotPermitted,
    SchemaMismatch,
    TablesMissing,
    TuningError,
    UnusableState,
)

CONNECTIONS = 16
"""The most connections of one program, which it keeps open; a further thread waits for one."""

BUSY_SECONDS = 30
"""How long a transaction on an SQLite file waits for those of others."""

_RETRY_SECONDS = 0.01

_UNDEFINED = ("42P01", "42703", "42883")  # a table, a column, a function
_READ_ONLY_SQL_TRANSACTION = "25006"
_INSUFFICIENT_PRIVILEGE = "42501"


def never() -> bool:
    """For `is_stopping` of a program that is never told to stop."""
    return False


def create_engine(
    url: sa.URL, *, durable: bool, create: bool = False, is_stopping: Callable[[], bool] = never
) -> sa.Engine:
    """An engine with the transactions that this project relies on; see `Store`.

    TablesMissing where an SQLite file is missing, unless it may be created.
    """
    pool = {"pool_size": CONNECTIONS, "max_overflow": 0}
    if is_file(url):
        return _file_engine(url, durable, create, pool)
    from spsa.db import postgresql  # late: a file needs no driver of it

    return postgresql.create_engine(url, durable, is_stopping, pool)


def _file_engine(url: sa.URL, durable: bool, create: bool, pool: Mapping[str, int]) -> sa.Engine:
    """An engine for an SQLite file, with a write-ahead log.

    A transaction that writes starts with BEGIN IMMEDIATE. (Under load, a plain BEGIN that reads
    before it writes fails at once, whatever the busy timeout is.)
    """
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
        connection.create_function("log10", 1, log10)  # some builds lack it

    def begin(connection: sa.Connection) -> None:
        reads = connection.get_execution_options().get("reads_only")
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS}, **pool)
    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", begin)
    return engine


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


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn the errors of any driver into those of this project.

    After DatabaseUnreachable the outcome of the transaction is unknown: the caller may repeat it
    with the same identifiers. After any other error nothing of it is kept. Raises
    IllegalTransition: a constraint refused the change, because another process was faster or an
    invariant would break.
    """
    try:
        yield
    except sa.exc.TimeoutError:
        raise DatabaseUnreachable(
            f"{displayed(url)}: all {CONNECTIONS} connections of this program are in use"
        ) from None
    except IntegrityError as error:
        raise IllegalTransition(f"the database refused: {_first_line(error)}") from error
    except JSONDecodeError as error:
        raise UnusableState(
            f"{displayed(url)}: a column of JSON holds something else ({error}): restore its value,"
            " or the database from a backup"
        ) from error
    except DBAPIError as error:
        raise _translation(url, error) from None


def _translation(url: sa.URL, error: DBAPIError) -> Exception:
    message, code = _first_line(error), getattr(error.orig, "pgcode", None)
    said = f"{displayed(url)}: {message}"
    if code in _UNDEFINED or "no such " in message or " has no column named " in message:
        # the tables were right when the database was opened
        return SchemaMismatch(
            f"the database's tables are no longer those of this program ({message}): "
            "`spsa-master doctor` says which version they need"
        )
    if message == "file is not a database" or message.startswith("invalid dsn"):
        return refused(displayed(url), f"cannot be used: {message}", of_file=is_file(url))
    if code == _INSUFFICIENT_PRIVILEGE:
        return NotPermitted(f"{said}; use a login that owns the tables of the tuner")
    is_unreachable = isinstance(error, DriverError | InterfaceError) or error.connection_invalidated
    # a server that only reads now may be a standby, which will write
    if is_unreachable or code == _READ_ONLY_SQL_TRANSACTION:
        if "SSL" in message or "certificate" in message:
            said += TLS_REMEDY
        elif "unable to open" in message:
            said += "; its folder has to be there, and writable"
        elif "disk is full" in message:
            said += "; make room on the disk that holds it"
        return DatabaseUnreachable(said)
    return TuningError(said)


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


Status = TypeVar("Status", bound=StrEnum)
Entity = TypeVar("Entity")


class Database:
    """A connection to the tuner's database.

    One method is one transaction; `translated` says what each raises.
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

    @property
    def where(self) -> str:
        """The database's address without its password."""
        return displayed(self._url)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file, which only processes of this machine can open."""
        return is_file(self._url)

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

    def _rows(self, statement: sa.Select[Entity]) -> list[Entity]:
        with self._read() as connection:
            return rows(connection, statement)

    def _values(self, kind: type[Entity], statement: sa.Select[*tuple[Any, ...]]) -> list[Entity]:
        with self._read() as connection:
            return values_of(kind, connection.execute(statement))

    @contextmanager
    def at_one_moment(self) -> Iterator[Self]:
        """This database, as it is now for every query that only reads, while others write."""
        with self._read() as connection:
            if not self.is_file:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            frozen = copy(self)
            frozen._moment = connection
            yield frozen

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def rows(connection: sa.Connection, statement: sa.Select[Entity]) -> list[Entity]:
    """The rows of mapped classes that a statement selects, as values."""
    with Session(connection) as session:
        return list(session.scalars(statement))


def values_of(kind: type[Entity], found: sa.CursorResult[Any]) -> list[Entity]:
    """Dataclasses of the columns that are named as their fields; a tally is of the counts."""
    names = kind.__dataclass_fields__  # type: ignore[attr-defined]
    given, values = list(found.keys()), list[Entity]()
    own = [name for name in (*given, "tally") if name in names]
    for row in found:
        columns = dict(zip(given, row, strict=True))  # its attributes are slower
        if "tally" in own:
            columns["tally"] = Tally.of([columns[name] for name in COUNTS])
        values.append(kind(**{name: columns[name] for name in own}))
    return values


def add(connection: sa.Connection, row: Base, **others: Any) -> Any:
    """Insert a row, and return its key; what is None is left to the database.

    `others` are the values of attributes that go before those of the row.
    """
    mapper = sa.inspect(type(row))
    columns = {one.key: one.columns[0] for one in mapper.column_attrs}
    values = {name: getattr(row, name) for name in columns} | others
    given = {columns[name]: value for name, value in values.items() if value is not None}
    return connection.scalar(sa.insert(type(row)).values(given).returning(*mapper.primary_key))


def may_become(
    column: Any, table: Mapping[Status, frozenset[Status]], to: Status
) -> sa.ColumnElement[bool]:
    """The guard of an UPDATE to the status `to`: the row has a status that may precede it."""
    before = sorted(status for status, following in table.items() if to in following)
    found: sa.ColumnElement[bool] = column.in_(before)
    return found
