"""Connects to PostgreSQL, and notices a server that does not respond.

Nothing is kept in a session, because behind a transaction pooler the next transaction may run in
another one: settings are SET LOCAL.

A server can vanish behind a proxy, a NAT or a pooler that still acknowledges what it is sent. No
keepalive and no timeout of the driver notices that. So psycopg2 waits in a function of this module.
A statement that was cut off has an unknown outcome.
"""

import selectors
from collections.abc import Callable, Mapping
from math import inf
from time import monotonic

import sqlalchemy as sa
from psycopg2 import Error, OperationalError, extensions
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError

CONNECT_SECONDS = 5.0
"""To connect, and to begin a transaction."""

STATEMENT_SECONDS = 15
"""The server's own limit for a statement, for a server that is alive and slow."""

RESPONSE_SECONDS = 20.0
"""Longer than any statement may take: a server that has not responded by then is gone."""

STOPPING_SECONDS = 2.0
"""The upper limit of all of these while the program is stopping."""

_POLL_SECONDS = 0.2  # between two looks at whether the program is stopping

# what a sum over BIGINT is: all such numbers here are whole
_NUMERIC = extensions.new_type((1700,), "NUMERIC", lambda text, _: text and int(text))


def create_engine(
    url: sa.URL, durable: bool, is_stopping: Callable[[], bool], pool: Mapping[str, int]
) -> sa.Engine:
    """An engine for a server; see `spsa.db.database.create_engine`."""
    opening = (
        f"BEGIN; SET LOCAL statement_timeout = '{STATEMENT_SECONDS}s'; "
        f"SET LOCAL synchronous_commit = {'on' if durable else 'off'}"
    )
    extensions.set_wait_callback(wait_for_server)
    engine = sa.create_engine(
        url,
        **pool,
        use_native_hstore=False,  # which would ask the server for its types
        connect_args={
            "application_name": "spsa-tuner",
            "connection_factory": lambda dsn: ServerConnection(dsn, is_stopping),
        },
    )

    def begin(connection: ServerConnection, _record: object, _proxy: object) -> None:
        """Begin the transaction; a connection that the server has closed is replaced."""
        try:
            connection.send(opening)
        except Error as error:
            raise DisconnectionError from error
        connection.timeout = RESPONSE_SECONDS

    event.listen(engine, "checkout", begin)
    return engine


class ServerConnection(extensions.connection):
    """A connection that waits at most `timeout` seconds for a response, less when stopping.

    To psycopg2 it is in autocommit mode, in which psycopg2 sends no BEGIN of its own.
    """

    def __init__(self, dsn: str, is_stopping: Callable[[], bool]) -> None:
        self.timeout = CONNECT_SECONDS  # connecting waits too
        self.is_stopping = is_stopping
        super().__init__(dsn)
        self.autocommit = True
        extensions.register_type(_NUMERIC, self)

    @property
    def limit(self) -> float:
        """Seconds for one response."""
        return min(self.timeout, STOPPING_SECONDS) if self.is_stopping() else self.timeout

    def send(self, statement: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(statement)

    def commit(self) -> None:
        self._end("COMMIT")

    def rollback(self) -> None:
        self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        if self.get_transaction_status() != extensions.TRANSACTION_STATUS_IDLE:
            self.send(statement)
        self.timeout = CONNECT_SECONDS


def wait_for_server(connection: extensions.connection) -> None:
    """Wait until the server has responded to the current statement; else OperationalError."""
    began = monotonic()
    while (awaited := connection.poll()) != extensions.POLL_OK:
        # connections that other code opened have no limit
        limit = connection.limit if isinstance(connection, ServerConnection) else inf
        if monotonic() - began >= limit:
            raise OperationalError(f"no response within {limit:g} s")
        event = selectors.EVENT_READ if awaited == extensions.POLL_READ else selectors.EVENT_WRITE
        # anew, because the socket can change while connecting; poll needs no file of its own
        with selectors.PollSelector() as ready:
            ready.register(connection.fileno(), event)
            ready.select(_POLL_SECONDS)
