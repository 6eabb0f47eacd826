"""Connects to PostgreSQL: few round trips, and a server that does not respond is noticed.

A transaction begins in the round trip of its first statement. Nothing is kept in a session, because
behind a transaction pooler the next transaction may run in another one: settings are SET LOCAL.

A server can vanish behind a proxy, a NAT or a pooler that still acknowledges what it is sent. No
keepalive and no timeout of the driver notices that. So psycopg2 waits in a function of this module.
A statement that was cut off has an unknown outcome.
"""

import re
import selectors
from collections.abc import Callable, Mapping
from math import inf
from time import monotonic
from typing import Any

import sqlalchemy as sa
from psycopg2 import Error, OperationalError, extensions
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError

CONNECT_SECONDS = 5.0
"""To connect, and to check whether an idle connection is still alive."""

STATEMENT_SECONDS = 15
"""The server's own limit for a statement, for a server that is alive and slow."""

RESPONSE_SECONDS = 20.0
"""Longer than any statement may take: a server that has not responded by then is gone."""

STOPPING_SECONDS = 2.0
"""The upper limit of all of these while the program is stopping."""

IDLE_SECONDS = 10.0
"""A connection that was not used for so long is checked first."""

# needs no file of its own, as the default one on Linux does
_Selector: Any = getattr(selectors, "PollSelector", selectors.SelectSelector)

_POLL_SECONDS = 0.2  # between two looks at whether the program is stopping
_RETURNED = "returned to the pool at"


def create_engine(
    url: sa.URL, durable: bool, is_stopping: Callable[[], bool], pool: Mapping[str, int]
) -> sa.Engine:
    """An engine for a server; see `spsa.db.database.create_engine`."""
    opening = (
        f"BEGIN; SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'; "
        f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}; "
    )
    extensions.set_wait_callback(wait_for_server)
    engine = sa.create_engine(
        url,
        **pool,
        use_native_hstore=False,  # which would ask the server for its types
        connect_args={
            "application_name": "spsa-tuner",
            "connection_factory": lambda dsn: ServerConnection(dsn, opening, is_stopping),
        },
    )
    event.listen(engine, "checkout", _on_checkout)
    event.listen(engine, "checkin", _on_checkin)
    return engine


class ServerConnection(extensions.connection):
    """A connection that waits at most `timeout` seconds for a response, less when stopping.

    To psycopg2 it is in autocommit mode, in which psycopg2 sends no BEGIN of its own.
    """

    def __init__(self, dsn: str, opening: str, is_stopping: Callable[[], bool]) -> None:
        self.timeout = CONNECT_SECONDS  # connecting waits too
        self.opening = opening
        self.is_stopping = is_stopping
        super().__init__(dsn)
        self.autocommit = True
        self.cursor_factory = _Cursor

    @property
    def in_transaction(self) -> bool:
        return self.get_transaction_status() != extensions.TRANSACTION_STATUS_IDLE

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        if self.in_transaction:
            with self.cursor() as cursor:
                cursor.execute(statement)


class _Cursor(extensions.cursor):
    """Sends what begins a transaction together with the transaction's first statement."""

    connection: ServerConnection

    def execute(self, query: Any, values: Any = None) -> None:
        opening = "" if self.connection.in_transaction else self.connection.opening
        super().execute(opening + query, values)

    def executemany(self, query: Any, rows: Any) -> None:
        if not self.connection.in_transaction:
            super().execute(self.connection.opening)
        super().executemany(query, rows)


def _on_checkout(connection: ServerConnection, record: Any, _proxy: object) -> None:
    """Replace a connection that the server has closed since its last use.

    A closed one can be read, which costs no round trip to find out. One that was idle for long may
    have been forgotten on the way.
    """
    returned = record.info.get(_RETURNED, inf)
    if monotonic() - returned > IDLE_SECONDS or _can_read(connection):
        try:
            extensions.cursor(connection).execute("SELECT 1")
        except Error as error:
            raise DisconnectionError from error
    connection.timeout = RESPONSE_SECONDS


def _on_checkin(connection: ServerConnection | None, record: Any) -> None:
    if connection is not None:
        connection.timeout = CONNECT_SECONDS
        record.info[_RETURNED] = monotonic()


def _can_read(connection: extensions.connection) -> bool:
    with _Selector() as ready:
        ready.register(connection.fileno(), selectors.EVENT_READ)
        return bool(ready.select(0))


def wait_for_server(connection: extensions.connection) -> None:
    """Wait until the server has responded to the current statement.

    Raises:
        OperationalError: the response did not come in time.
    """
    began = monotonic()
    while (awaited := connection.poll()) != extensions.POLL_OK:
        limit = _limit(connection)
        if monotonic() - began >= limit:
            raise OperationalError(f"no response within {limit:g} s")
        event = selectors.EVENT_READ if awaited == extensions.POLL_READ else selectors.EVENT_WRITE
        with _Selector() as ready:  # anew, because the socket can change while connecting
            ready.register(connection.fileno(), event)
            ready.select(_POLL_SECONDS)


def _limit(connection: extensions.connection) -> float:
    """Seconds for one response; connections that other code opened have no limit."""
    if not isinstance(connection, ServerConnection):
        return inf
    stopping = connection.is_stopping()
    return min(connection.timeout, STOPPING_SECONDS) if stopping else connection.timeout


SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_HOST = re.compile(r"(\w([\w.-]*[\w.])?|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[\w.-]+)?|/.*)?", re.ASCII)


def parsed(text: str) -> sa.URL:
    """The URL of a server, without its scheme; several hosts are in its query, as a list.

    psycopg2's own library (libpq) takes it apart. It guesses what an unescaped @, / or # in a
    password may mean, and would then connect somewhere else and show a part of the password as a
    host. Such a URL is refused.

    Raises:
        ValueError: what is wrong, without any part of it; empty if it is no URL at all.
    """
    parts = _libpq_parts(text)
    hosts = parts.pop("host", "").split(",")
    ports = parts.pop("port", "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    _check_places(hosts, ports)
    _check_parts(parts)
    url = sa.URL.create(
        "postgresql+psycopg2",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        database=parts.pop("dbname", None),
        query=parts,
    )
    if len(hosts) == 1:
        return url.set(host=hosts[0] or None, port=int(ports[0]) if ports[0] else None)
    several = {"host": ",".join(hosts), "port": ",".join(ports)}
    return url.update_query_dict({"target_session_attrs": "read-write", **parts, **several})


def _libpq_parts(text: str) -> dict[str, str]:
    """The parts by libpq's names for them, each of which may be given once."""
    body, _, query = text.partition("?")
    try:
        parts, options = (
            extensions.parse_dsn(f"postgresql://{part}") for part in (body, f"?{query}")
        )
    except (Error, ValueError):
        raise ValueError from None
    if parts.keys() & options.keys() or len(options) != len(query.split("&")) * bool(query):
        raise ValueError("names an option twice")
    if "@" in query:  # of a password with an unescaped ?
        raise ValueError
    return {**parts, **options}


def _check_places(hosts: list[str], ports: list[str]) -> None:
    if not all(_HOST.fullmatch(host) for host in hosts) or not all(map(_is_port, ports)):
        raise ValueError
    if len(ports) != len(hosts):
        raise ValueError("has not as many ports as hosts")


def _is_port(text: str) -> bool:
    return not text or (re.fullmatch(r"[0-9]{1,5}", text) is not None and 0 < int(text) < 65536)


def _check_parts(parts: Mapping[str, str]) -> None:
    if set(parts.get("dbname", "")) & set("@/") or "service" in parts:
        raise ValueError
    if parts.get("sslmode", "prefer") not in SSL_MODES:
        raise ValueError(f"has an sslmode that is not one of {', '.join(SSL_MODES)}")
