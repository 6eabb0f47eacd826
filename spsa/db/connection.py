"""How a database is reached: the URL, the engine and its pragmas, and foreign errors made ours.

SQLite: WAL, and BEGIN IMMEDIATE for every transaction that writes (a plain BEGIN that reads before
it writes fails at once under load, whatever the busy timeout says). PostgreSQL: psycopg2, deadlines
on the server's side and on this one. Nothing is kept in a session, because behind a transaction
pooler the next transaction has another one: settings are SET LOCAL, and a single statement in
autocommit mode has those of its role and of the function that it calls. A password never leaves
this module.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ELOOP, ENAMETOOLONG
from json import JSONDecodeError
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
)
from sqlalchemy.exc import OperationalError as DriverError

from spsa.db import tls
from spsa.db.database_url import FileUrl, Place, ServerUrl, parsed, refused
from spsa.errors import (
    DatabaseRefused,
    DatabaseUnreachable,
    IllegalTransition,
    NotPermitted,
    SchemaMismatch,
    UnusableState,
)

_UNDEFINED = ("42P01", "42703", "42883")  # a table, a column, a function
_READ_ONLY_SQL_TRANSACTION = "25006"
_INSUFFICIENT_PRIVILEGE = "42501"


def parse_url(text: str) -> sa.URL:
    """A database URL with an explicit driver, and a PostgreSQL server's certificate verified.

    Raises:
        InvalidInput: it is no URL of a database this project works with; never quotes the URL,
            which may hold a password.
    """
    url = parsed(text)
    return _file_url(url) if isinstance(url, FileUrl) else _server_url(tls.secured(url))


def _file_url(url: FileUrl) -> sa.URL:
    return sa.URL.create("sqlite", database=url.path, query=dict(url.options))


def _server_url(url: ServerUrl) -> sa.URL:
    """Several hosts are the driver's own way of naming them."""
    options: dict[str, str] = dict(url.options)
    first, *others = url.places
    if others:
        options["host"] = ",".join(place.host or "" for place in url.places)
        options["port"] = ",".join(str(place.port or "") for place in url.places)
        options.setdefault("target_session_attrs", "read-write")
        first = Place(None)
    return sa.URL.create(
        "postgresql+psycopg2",
        username=url.user,
        password=url.password,
        host=first.host,
        port=first.port,
        database=url.database,
        query=options,
    )


def displayed(url: sa.URL) -> str:
    """The URL as it may be shown: without password and query, but with all its hosts."""
    shown = url.set(query={}).render_as_string(hide_password=True)
    if "host" not in url.query:
        return shown
    hosts, ports = (str(url.query[name]).split(",") for name in ("host", "port"))
    places = ",".join(f"{host}:{port}".rstrip(":") for host, port in zip(hosts, ports, strict=True))
    before, at, database = shown.rpartition("@")
    return f"{before}{at}{places}{database}" if at else shown.replace("://", f"://{places}", 1)


def nobody_leaves() -> bool:
    """Nobody is in a hurry."""
    return False


def create_engine(
    url: sa.URL,
    *,
    durable: bool,
    create: bool = False,
    hurried: Callable[[], bool] = nobody_leaves,
) -> sa.Engine:
    """An engine whose transactions are those this project counts on.

    Args:
        create: whether connecting may make the file of an SQLite database; without it, whoever
            only looks raises TablesMissing and leaves nothing behind.
        durable: whether a commit waits for the disk. A worker's need not: under leases a lost
            commit costs games played again, never a wrong count.
        hurried: whether somebody wants to leave, so that a server that is silent is given up soon.
    """
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url, durable, create)
        return _postgresql(url, durable, hurried)
    except NoSuchModuleError:
        raise refused("needs a driver that is not installed") from None


def _sqlite(url: sa.URL, durable: bool, create: bool) -> sa.Engine:
    from spsa.db import sqlite_file  # loads SQLite, which a server's client needs not

    file = sqlite_file.SqliteFile(
        where=displayed(url),
        path=_path(url),
        durable=durable,
        may_be_made=create or "uri" in url.query,
    )
    engine = sa.create_engine(url, connect_args={"timeout": sqlite_file.BUSY_SECONDS})
    event.listen(engine, "do_connect", file.look)
    event.listen(engine, "connect", file.configure)
    event.listen(engine, "checkin", file.leave)

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        reads = connection.get_execution_options().get("reads_only", False)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _path(url: sa.URL) -> Path:
    path = Path(str(url.database))
    try:
        path.stat()
    except OSError as error:
        if error.errno in (ENAMETOOLONG, ELOOP):
            raise refused(f"names no possible file: {error.strerror}") from None
    return path.resolve()


def _postgresql(url: sa.URL, durable: bool, hurried: Callable[[], bool]) -> sa.Engine:
    from spsa.db import deadline  # loads PostgreSQL's driver, which an SQLite file needs not

    settings = (
        f"SET LOCAL statement_timeout = '{deadline.STATEMENT_SECONDS}s';"
        f" SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
    )
    engine = sa.create_engine(
        url,
        pool_pre_ping=True,
        pool_size=2,
        connect_args={
            "application_name": "spsa-tuner",
            "connection_factory": deadline.factory(hurried),
        },
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if not driver.autocommit:
            connection.exec_driver_sql(settings)

    event.listen(engine, "checkout", deadline.begin)
    event.listen(engine, "checkin", deadline.rest)
    return engine


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn 'the database does not answer' of any driver into DatabaseUnreachable.

    A change that a constraint refuses is an IllegalTransition: somebody else was faster, or it
    would break an invariant. Either way nothing of it is in the database.

    The outcome of the transaction that was cut off is unknown; whoever asks again does so with the
    same identifiers.
    """
    try:
        yield
    except (DriverError, InterfaceError) as error:
        _refuse_other_tables(error)
        raise DatabaseUnreachable(_unreachable(url, error)) from None
    except IntegrityError as error:
        raise IllegalTransition(f"the database refused: {_first_line(error)}") from error
    except JSONDecodeError as error:
        raise UnusableState(
            f"{displayed(url)}: a column of JSON holds something else ({error}): somebody has "
            "changed it; put back what was there, or the database from a backup"
        ) from error
    except DBAPIError as error:
        if error.connection_invalidated or _only_reads(error):
            raise DatabaseUnreachable(_unreachable(url, error)) from None
        _refuse_other_tables(error)
        _refuse_the_url(error)
        _refuse_the_user(url, error)
        raise DatabaseRefused(f"{displayed(url)}: {_first_line(error)}") from error


def _unreachable(url: sa.URL, error: DBAPIError) -> str:
    words = _first_line(error)
    return f"{displayed(url)}: {words}{_advice(url, words)}"


def _advice(url: sa.URL, words: str) -> str:
    if url.get_backend_name() != "sqlite":
        return tls.advice(words)
    from spsa.db import sqlite_file  # loads SQLite, which a server's client needs not

    return sqlite_file.advice(Path(str(url.database)), words)


def _refuse_the_user(url: sa.URL, error: DBAPIError) -> None:
    if getattr(error.orig, "pgcode", None) == _INSUFFICIENT_PRIVILEGE:
        raise NotPermitted(
            f"{displayed(url)}: {_first_line(error)}; log in as somebody who may do this, or let "
            "the owner of the tables allow it (`spsa-master grant`)"
        ) from None


def _only_reads(error: DBAPIError) -> bool:
    """Whether it is a standby (by now): one that takes writes may soon be there again."""
    return getattr(error.orig, "pgcode", None) == _READ_ONLY_SQL_TRANSACTION


def _refuse_other_tables(error: DBAPIError) -> None:
    """Tables that were found right when they were opened have been upgraded or dropped since."""
    words = _first_line(error)
    lacking = getattr(error.orig, "pgcode", None) in _UNDEFINED or words.startswith("no such ")
    if lacking or " has no column named " in words:
        raise SchemaMismatch(
            f"the database's tables are not those of this program any more ({words}): "
            "`spsa-master db check` says which version they need"
        ) from None


def _refuse_the_url(error: DBAPIError) -> None:
    """What only a look at the file, or the driver's own parser, says of a URL."""
    words = _first_line(error)
    if words.startswith("file is not a database"):
        raise refused(f"cannot be used: {words}") from None
    if words.startswith("invalid dsn"):  # which the driver quotes, with all that is in it
        raise refused("is not understood by PostgreSQL's library") from None


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
