"""Connects to the database, and turns the errors of its driver into those of this project."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from json import JSONDecodeError

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError, InterfaceError, NoSuchModuleError
from sqlalchemy.exc import OperationalError as DriverError

from spsa.db.database_url import displayed, parsed, refused, tls_remedy, with_verified_tls
from spsa.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    IllegalTransition,
    NotPermitted,
    SchemaMismatch,
    UnusableState,
)

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
    return with_verified_tls(parsed(text))


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
    # late: neither database needs the other one's driver
    try:
        if url.get_backend_name() == "sqlite":
            from spsa.db import sqlite_file

            return sqlite_file.create_engine(url, durable, create, pool)
        from spsa.db import postgresql

        return postgresql.create_engine(url, durable, is_stopping, pool)
    except NoSuchModuleError:
        raise refused("needs a driver that is not installed") from None


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
    if url.get_backend_name() != "sqlite":
        return f"{displayed(url)}: {message}{tls_remedy(message)}"
    from spsa.db import sqlite_file

    return f"{displayed(url)}: {message}{sqlite_file.remedy(url, message)}"


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
