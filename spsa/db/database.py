"""One database, opened: transactions, the schema check, a copy, the guard of every lifecycle."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from copy import copy
from enum import StrEnum
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
)
from sqlalchemy.exc import OperationalError as DriverError
from sqlalchemy.orm import Session

from spsa.db import sqlite_file, tls
from spsa.db.base import Base
from spsa.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    Fault,
    IllegalTransition,
    InvalidInput,
    NotPermitted,
    SchemaMismatch,
    UnusableState,
)
from spsa.files import MAX_TEXT, content
from spsa.lifecycle import sources

LONGEST = 4096

_REMEDY = (
    "use sqlite:///path/to/spsa.db or postgresql://user:password@host:5432/database, "
    "and inside a password write @ as %40, / as %2F, # as %23, ? as %3F and % as %25"
)
_SQLITE = re.compile(r"sqlite(\+pysqlite)?://", re.IGNORECASE)
_FILE = re.compile(r"sqlite(?:\+pysqlite)?:///(?P<path>[^?]*)(?P<query>\?.*)?", re.DOTALL)
_POSTGRESQL = re.compile(r"postgres(ql)?(\+psycopg2)?://", re.IGNORECASE)


def parsed(text: str) -> sa.URL:
    """The URL with its driver named; several hosts and their ports are in its query, as lists.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file.
    """
    try:
        if len(text) <= LONGEST and text.isprintable():
            if _SQLITE.match(text):
                return sqlite_file.parsed(text)
            if (found := _POSTGRESQL.match(text)) and not set(text) & {" ", "#"}:
                from spsa.db import postgresql  # late here and below: a file needs no driver of it

                return postgresql.parsed(text[found.end() :])
    except ValueError as error:
        raise refused(str(error)) from None
    raise refused()


def displayed(url: sa.URL) -> str:
    """The URL as it may be shown: without password and query, but with all its hosts."""
    hosts = url.host or str(url.query.get("host", "")) or None
    return url.set(query={}, host=hosts).render_as_string(hide_password=True)


def refused(found: str = "") -> Exception:
    """The error for a URL; `found` holds nothing of it, and is empty if it is no URL at all."""
    found = found or "is not the URL of a PostgreSQL database or an SQLite file"
    return InvalidInput([_fault("DATABASE_URL", "database.url", found, _REMEDY)])


def _fault(file: str, name: str, found: str, remedy: str) -> Fault:
    return Fault(file=file, line=None, name=name, found=found, remedy=remedy)


DEFAULT_URL = "sqlite:///spsa.db"
"""The database where config.toml names none: a file beside it."""


def with_absolute_path(url: str, folder: Path) -> str:
    """The same URL; a relative SQLite path is relative to `folder`."""
    found = _FILE.fullmatch(url)
    if found is None or found["path"].startswith("file:"):
        return url
    return f"sqlite:///{(folder / found['path']).resolve().as_posix()}{found['query'] or ''}"


def configured_url(folder: Path, written: str | None) -> str:
    """The database of a config.toml in `folder`; `written` is the url of its [database], if any."""
    return with_absolute_path(DEFAULT_URL if written is None else written.strip(), folder)


def url_in(path: Path) -> str:
    """The URL in a file of one line, the form in which services receive secrets.

    Raises:
        InvalidInput: the file cannot be read or has not one line.
    """
    try:
        text = content(path, MAX_TEXT).decode("utf-8").strip()
        found = None if text and "\n" not in text else "does not have exactly one line"
    except (OSError, UnicodeDecodeError) as error:
        found = f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
    if found is not None:
        remedy = "write the database's URL into it, and nothing else"
        raise InvalidInput([_fault(str(path), "database.url", found, remedy)])
    return text


def warnings(url: str, *, typed: bool) -> Iterator[str]:
    """What the user should know about a connection; no warning holds a secret.

    `typed`: the URL is on a command line.
    """
    found = parsed(url)
    if typed and found.password is not None:
        yield (
            "every user of this machine can read a command line, and the password in it: use "
            "DATABASE_URL, --database-url-file or ~/.pgpass"
        )
    if not _is_file(found):
        yield from tls.warnings(found)


CONNECTIONS = 16
"""The most connections of one program, which it keeps open; a further thread waits for one."""

_UNDEFINED = ("42P01", "42703", "42883")  # a table, a column, a function
_READ_ONLY_SQL_TRANSACTION = "25006"
_INSUFFICIENT_PRIVILEGE = "42501"


def parse_url(text: str) -> sa.URL:
    """A database URL with its driver named, and with the certificate of a server verified.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file; the message never quotes it,
            because it may hold a password.
    """
    url = parsed(text)
    return url if _is_file(url) else tls.with_verified_tls(url)


def _is_file(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite"


def never() -> bool:
    """For `is_stopping` of a program that is never told to stop."""
    return False


def create_engine(
    url: sa.URL,
    *,
    durable: bool,
    create: bool = False,
    is_stopping: Callable[[], bool] = never,
) -> sa.Engine:
    """An engine with the transactions that this project relies on.

    Args:
        create: whether connecting may create the file of an SQLite database; without it, a missing
            file raises TablesMissing.
        durable: whether a commit waits for the disk. A worker's need not: a lost commit of a claim
            or a report costs games that are played again, never a wrong count.
        is_stopping: whether the program is stopping, so that it waits less for a silent server.
    """
    pool = {"pool_size": CONNECTIONS, "max_overflow": 0}
    try:
        if _is_file(url):
            return sqlite_file.create_engine(url, displayed(url), durable, create, pool)
        from spsa.db import postgresql

        return postgresql.create_engine(url, durable, is_stopping, pool)
    except NoSuchModuleError:
        raise refused("needs a driver that is not installed") from None
    except ValueError as error:
        raise refused(str(error)) from None


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn the errors of any driver into those of this project.

    Raises:
        DatabaseUnreachable: the database does not respond in time. The outcome of the transaction
            is unknown; the caller may repeat it with the same identifiers.
        IllegalTransition: a constraint refused the change, because another process was faster or
            the change would break an invariant. Nothing of it is kept.
        SchemaMismatch: a table, a column or a function is missing.
        NotPermitted: the login may not do this.
        UnusableState: a column of JSON holds something else.
        DatabaseRefused: any other error; nothing of the transaction is kept.
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
        _raise_if_schema_changed(error)
        if _is_unreachable(error):
            raise DatabaseUnreachable(_unreachable(url, error)) from None
        _raise_if_url_is_wrong(error)
        said = f"{displayed(url)}: {_first_line(error)}"
        if _has_code(error, _INSUFFICIENT_PRIVILEGE):
            raise NotPermitted(f"{said}; use a login that owns the tables of the tuner") from None
        raise DatabaseRefused(said) from error


def _is_unreachable(error: DBAPIError) -> bool:
    """Whether the same may succeed later; a server that only reads now may be a standby."""
    return (
        isinstance(error, DriverError | InterfaceError)
        or error.connection_invalidated
        or _has_code(error, _READ_ONLY_SQL_TRANSACTION)
    )


def _has_code(error: DBAPIError, *codes: str) -> bool:
    return getattr(error.orig, "pgcode", None) in codes


def _unreachable(url: sa.URL, error: DBAPIError) -> str:
    message = _first_line(error)
    if _is_file(url):
        return f"{displayed(url)}: {message}{sqlite_file.remedy(url, message)}"
    return f"{displayed(url)}: {message}{tls.remedy(message)}"


def _raise_if_schema_changed(error: DBAPIError) -> None:
    """The tables were right when the database was opened; they were changed or dropped since."""
    message = _first_line(error)
    missing = _has_code(error, *_UNDEFINED) or message.startswith("no such ")
    if missing or " has no column named " in message:
        raise SchemaMismatch(
            f"the database's tables are no longer those of this program ({message}): "
            "`spsa-master doctor` says which version they need"
        ) from None


def _raise_if_url_is_wrong(error: DBAPIError) -> None:
    """Only opening the file, or the driver's own parser, shows these faults of a URL."""
    message = _first_line(error)
    if message.startswith("file is not a database"):
        raise refused(f"cannot be used: {message}") from None
    if message.startswith("invalid dsn"):  # the driver quotes all of the URL
        raise refused() from None


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


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

    @property
    def where(self) -> str:
        """The database's address without its password."""
        return displayed(self._url)

    @property
    def is_file(self) -> bool:
        """Whether it is an SQLite file, which only processes of this machine can open."""
        return _is_file(self._url)

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
    return InvalidInput([_fault(str(file), "db backup", found, remedy)])


def rows(connection: sa.Connection, statement: sa.Select[Entity]) -> list[Entity]:
    """The rows of mapped classes that a statement selects, as values."""
    with Session(connection) as session:
        return list(session.scalars(statement))


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
    found: sa.ColumnElement[bool] = column.in_(sorted(sources(table, to)))
    return found
