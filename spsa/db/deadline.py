"""How long a PostgreSQL server may be silent before the client closes the connection.

A server can vanish behind a proxy, a NAT or a pooler that still acknowledges what it is sent. No
keepalive and no timeout of the driver notices that. So psycopg2 waits in a function of this module.
A statement that was cut off has an unknown outcome.
"""

import select
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from psycopg2 import OperationalError, extensions

CONNECT_SECONDS = 5.0
"""To connect, and to check whether an idle connection is still alive."""

STATEMENT_SECONDS = 15
"""The server's own limit for a statement, for a server that is alive and slow."""

RESPONSE_SECONDS = 20.0
"""Longer than any statement may take: a server that has not responded by then is gone."""

STOPPING_SECONDS = 2.0
"""The upper limit of all of these while the program is stopping."""

_POLL_SECONDS = 0.2  # between two looks at whether the program is stopping


class DeadlineConnection(extensions.connection):
    """A connection that waits at most `timeout` seconds for the server, less when stopping.

    A transaction that may take longer, like a migration, sets `timeout`.
    """

    def __init__(self, dsn: str, is_stopping: Callable[[], bool]) -> None:
        self.timeout = CONNECT_SECONDS  # the next line connects, and waits
        self.is_stopping = is_stopping
        super().__init__(dsn)


def connection_factory(is_stopping: Callable[[], bool]) -> Callable[[str], DeadlineConnection]:
    """Psycopg2's `connection_factory`; also makes the driver wait in `wait_for_server`."""
    extensions.set_wait_callback(wait_for_server)
    return lambda dsn: DeadlineConnection(dsn, is_stopping)


def on_checkin(connection: Any, _record: object = None) -> None:
    """The pool has it back; its next statement only checks whether it is alive."""
    if connection is not None:
        connection.timeout = CONNECT_SECONDS


def on_checkout(connection: Any, _record: object = None, _proxy: object = None) -> None:
    """It is alive, and statements follow."""
    connection.timeout = RESPONSE_SECONDS


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
        ready = select.poll()  # anew, because the socket can change while connecting
        event = select.POLLIN if awaited == extensions.POLL_READ else select.POLLOUT
        ready.register(connection.fileno(), event)
        ready.poll(_POLL_SECONDS * 1000)


def _limit(connection: extensions.connection) -> float:
    """Seconds for one response; connections that other code opened have no limit."""
    if not isinstance(connection, DeadlineConnection):
        return inf
    stopping = connection.is_stopping()
    return min(connection.timeout, STOPPING_SECONDS) if stopping else connection.timeout
