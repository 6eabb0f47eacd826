"""Connects to the database: the engine, its pragmas and settings, and the driver's errors as ours.

SQLite: WAL, and BEGIN IMMEDIATE for every transaction that writes. (Under load, a plain BEGIN that
reads before it writes fails at once, whatever the busy timeout is.) PostgreSQL: psycopg2, with
deadlines on the server's side and on this one. Nothing is kept in a session, because behind a
transaction pooler the next transaction may run in another one: settings are SET LOCAL. In
autocommit mode they are sent with the statement; PostgreSQL executes both in one transaction.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ELOOP, ENAMETOOLONG
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, NoSuchModuleError
from sqlalchemy.exc import OperationalError as DriverError

from spsa.db import tls
from spsa.db.database_url import displayed, parsed, refused
from spsa.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    IllegalTransition,
    LockTimeout,
    NotPermitted,
    SchemaMismatch,
    UnusableState,
)

_UNDEFINED = ("42P01", "42703", "42883")  # a table, a column, a function
_READ_ONLY_SQL_TRANSACTION = "25006"
_INSUFFICIENT_PRIVILEGE = "42501"
_WAITED_TOO_LONG = ("55P03", "57014")  # for a lock, or in a statement that may wait for one


def parse_url(text: str) -> sa.URL:
    """A database URL with its driver named, and with the certificate of a server verified.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file; the message never quotes it,
            because it may hold a password.
    """
    return tls.with_verified_tls(parsed(text))


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
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url, durable, create)
        return _postgresql(url, durable, is_stopping)
    except NoSuchModuleError:
        raise refused("needs a driver that is not installed") from None


def _sqlite(url: sa.URL, durable: bool, create: bool) -> sa.Engine:
    sqlite_file = _sqlite_module()
    file = sqlite_file.SqliteFile(
        where=displayed(url),
        path=_path(url),
        durable=durable,
        may_be_created=create or "uri" in url.query,
    )
    engine = sa.create_engine(
        url, connect_args={"timeout": sqlite_file.BUSY_SECONDS}, json_deserializer=_json_value
    )
    event.listen(engine, "do_connect", file.before_connecting)
    event.listen(engine, "connect", file.after_connecting)
    event.listen(engine, "checkin", file.on_checkin)

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        reads = connection.get_execution_options().get("reads_only", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _json_value(text: str) -> Any:
    """The value of a JSON column; None where Python cannot read what the database took for JSON.

    A worker may store numbers of thousands of digits, or lists thousands of levels deep.
    """
    try:
        return json.loads(text)
    except JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        return None


def _sqlite_module() -> Any:
    from spsa.db import sqlite_file  # late: a server's client does not need SQLite

    return sqlite_file


def _path(url: sa.URL) -> Path:
    path = Path(str(url.database))
    try:
        path.stat()
    except OSError as error:
        if error.errno in (ENAMETOOLONG, ELOOP):
            raise refused(f"names no possible file: {error.strerror}") from None
    return path.resolve()


def _postgresql(url: sa.URL, durable: bool, is_stopping: Callable[[], bool]) -> sa.Engine:
    from spsa.db import deadline  # late: SQLite does not need PostgreSQL's driver

    limit = f"SET LOCAL statement_timeout = '{deadline.STATEMENT_SECONDS}s'"
    settings = f"{limit}; SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
    engine = sa.create_engine(
        url,
        pool_pre_ping=True,
        pool_size=2,
        json_deserializer=_json_value,
        connect_args={
            "application_name": "spsa-tuner",
            "connection_factory": deadline.connection_factory(is_stopping),
        },
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if not driver.autocommit:
            connection.exec_driver_sql(settings)

    @event.listens_for(engine, "before_cursor_execute", retval=True)
    def _limit(
        connection: sa.Connection, _cursor: Any, statement: str, parameters: Any, *_: Any
    ) -> tuple[str, Any]:
        driver: Any = connection.connection.dbapi_connection
        return f"{limit}; {statement}" if driver.autocommit else statement, parameters

    event.listen(engine, "checkout", deadline.on_checkout)
    event.listen(engine, "checkin", deadline.on_checkin)
    return engine


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn the errors of any driver into those of this project.

    Raises:
        DatabaseUnreachable: the database does not respond, or another session holds what this one
            needs (LockTimeout). The outcome of the transaction is unknown; the caller may repeat it
            with the same identifiers.
        IllegalTransition: a constraint refused the change, because another process was faster or
            the change would break an invariant. Nothing of it is kept.
        SchemaMismatch: a table, a column or a function is missing.
        NotPermitted: the login may not do this.
        UnusableState: a column of JSON holds something else.
        DatabaseRefused: any other error; nothing of the transaction is kept.
    """
    try:
        yield
    except (DriverError, InterfaceError) as error:
        _raise_if_schema_changed(error)
        kind = LockTimeout if _has_code(error, *_WAITED_TOO_LONG) else DatabaseUnreachable
        raise kind(_unreachable(url, error)) from None
    except IntegrityError as error:
        raise IllegalTransition(f"the database refused: {_first_line(error)}") from error
    except JSONDecodeError as error:
        raise UnusableState(
            f"{displayed(url)}: a column of JSON holds something else ({error}): restore its value,"
            " or the database from a backup"
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated or _has_code(error, _READ_ONLY_SQL_TRANSACTION):
            # a standby; a server that accepts writes may soon be back
            raise DatabaseUnreachable(_unreachable(url, error)) from None
        _raise_if_schema_changed(error)
        _raise_if_url_is_wrong(error)
        if _has_code(error, _INSUFFICIENT_PRIVILEGE):
            raise NotPermitted(
                f"{displayed(url)}: {_first_line(error)}; use a login that may do this, or ask the "
                "owner of the tables for the right (`spsa-master grant`)"
            ) from None
        raise DatabaseRefused(f"{displayed(url)}: {_first_line(error)}") from error


def _has_code(error: DBAPIError, *codes: str) -> bool:
    return getattr(error.orig, "pgcode", None) in codes


def _unreachable(url: sa.URL, error: DBAPIError) -> str:
    message = _first_line(error)
    if url.get_backend_name() != "sqlite":
        return f"{displayed(url)}: {message}{tls.remedy(message)}"
    return f"{displayed(url)}: {message}{_sqlite_module().remedy(Path(str(url.database)), message)}"


def _raise_if_schema_changed(error: DBAPIError) -> None:
    """The tables were right when the database was opened; they were upgraded or dropped since."""
    message = _first_line(error)
    missing = _has_code(error, *_UNDEFINED) or message.startswith("no such ")
    if missing or " has no column named " in message:
        raise SchemaMismatch(
            f"the database's tables are no longer those of this program ({message}): "
            "`spsa-master db check` says which version they need"
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
