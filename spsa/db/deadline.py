"""How long a PostgreSQL server may be silent before this side gives it up.

A server that vanished behind something that still acknowledges (a proxy, a NAT, a pooler) is found
by no keepalive and by no timeout of its own: the bytes arrive, and nobody answers. So psycopg2 is
made to wait here. What is given up is closed by the driver, and its outcome is unknown.
"""

import select
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from psycopg2 import OperationalError, extensions

CONNECT_SECONDS = 5.0
"""To connect, and again to find out whether a connection that rested is still one."""

STATEMENT_SECONDS = 15
"""The server's own limit, for one that is there and slow."""

ANSWER_SECONDS = 20.0
"""Longer than any statement may take: who has not answered by then is not there any more."""

HURRIED_SECONDS = 2.0
"""What is left of any of these once somebody wants to leave."""

_GLANCE = 0.2  # seconds between two looks at whether somebody wants to leave


class DeadlineConnection(extensions.connection):
    """A connection whose every wait has an end: `patience` seconds, few when `hurried()`."""

    def __init__(self, dsn: str, hurried: Callable[[], bool]) -> None:
        self.patience = CONNECT_SECONDS  # the server is waited for within the next line
        self.hurried = hurried
        super().__init__(dsn)


def factory(hurried: Callable[[], bool]) -> Callable[[str], DeadlineConnection]:
    """Psycopg2's `connection_factory`; also makes the driver wait as this module does."""
    extensions.set_wait_callback(await_answer)
    return lambda dsn: DeadlineConnection(dsn, hurried)


def rest(connection: Any, _record: object = None) -> None:
    """Nobody uses it for now; the next that is asked of it is whether it is still there."""
    if connection is not None:
        connection.patience = CONNECT_SECONDS


def begin(connection: Any, _record: object = None, _proxy: object = None) -> None:
    """It is there, and statements follow."""
    connection.patience = ANSWER_SECONDS


def allow(connection: Any, seconds: float) -> None:
    """Let each statement that follows take so long, as a change of the tables may."""
    connection.patience = seconds


def await_answer(connection: extensions.connection) -> None:
    """Wait until what was asked of the server is answered, but not for ever.

    Raises:
        OperationalError: the answer did not come in time.
    """
    began = monotonic()
    while (awaited := connection.poll()) != extensions.POLL_OK:
        _give_up_if_late(connection, monotonic() - began)
        ready = select.poll()  # anew, as the socket may be another while connecting
        event = select.POLLIN if awaited == extensions.POLL_READ else select.POLLOUT
        ready.register(connection.fileno(), event)
        ready.poll(_GLANCE * 1000)


def _give_up_if_late(connection: extensions.connection, waited: float) -> None:
    limit = _limit(connection)
    if waited >= limit:
        raise OperationalError(f"no answer within {limit:g} s")


def _limit(connection: extensions.connection) -> float:
    """Seconds that one answer may take; those of other programs' connections are their affair."""
    if not isinstance(connection, DeadlineConnection):
        return inf
    return (
        min(connection.patience, HURRIED_SECONDS) if connection.hurried() else connection.patience
    )
