"""A transaction that waits for others only so long, says once for whom, and gives up by name.

For a change of the tables, which needs every other transaction on them to end first.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from spsa.db.connection import displayed
from spsa.errors import DatabaseUnreachable

WAIT_SECONDS = 60.0
"""For one lock of a PostgreSQL server; an SQLite file is waited for as long as by everybody."""

WORK_SECONDS = 3600.0
"""That one statement may take which waits for no lock."""

_LOOK_SECONDS = 0.5
_LOCK_NOT_AVAILABLE = "55P03"
_BUSY = ("database is locked", "database is busy")

_HOLDERS = sa.text("""
SELECT blocking.pid, a.usename, a.application_name, a.state
  FROM unnest(pg_blocking_pids(:pid)) AS blocking (pid)
  LEFT JOIN pg_stat_activity a ON a.pid = blocking.pid
""")


@contextmanager
def patient_transaction(engine: sa.Engine, tell: Callable[[str], None]) -> Iterator[sa.Connection]:
    """A transaction that may wait; `tell` is given one sentence if it does.

    Raises:
        DatabaseUnreachable: it waited to the end; names the process that held the lock.
    """
    with _LockWatch(engine, tell) as lookout:
        try:
            with engine.begin() as connection:
                lookout.follow(connection)
                yield connection
        except OperationalError as error:
            if _waited_in_vain(error):
                raise DatabaseUnreachable(lookout.given_up) from None
            raise


def _waited_in_vain(error: OperationalError) -> bool:
    code = getattr(error.orig, "pgcode", None)
    return code == _LOCK_NOT_AVAILABLE or str(error.orig).startswith(_BUSY)


class _LockWatch:
    """Sees from outside, in a thread, for whom a transaction waits."""

    def __init__(self, engine: sa.Engine, tell: Callable[[str], None]) -> None:
        self._engine = engine
        self._tell = tell
        self._pid: int | None = None
        self._holder = "another process that writes it"
        self._ended = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def given_up(self) -> str:
        return (
            f"{displayed(self._engine.url)}: waited in vain for {self._holder}: end it, or try "
            "again when it has ended; nothing was changed"
        )

    def follow(self, connection: sa.Connection) -> None:
        """The transaction has begun; what it does from now on waits at most WAIT_SECONDS."""
        if connection.dialect.name == "postgresql":
            self._pid = _limited(connection)
        self._began.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        """Until the end: the first wait is told of, the last one is remembered."""
        told = False
        while not self._ended.wait(_LOOK_SECONDS):
            if self._is_waiting() and not told:
                told = True
                self._tell(f"{displayed(self._engine.url)}: waiting for {self._holder}")

    def _is_waiting(self) -> bool:
        if self._pid is None:  # SQLite waits to begin, and has no name for who writes
            return self._engine.dialect.name == "sqlite" and not self._began.is_set()
        try:
            with self._engine.begin() as connection:
                holders = connection.execute(_HOLDERS, {"pid": self._pid}).all()
        except SQLAlchemyError:  # a server with no room for a second connection
            return False
        self._holder = " and ".join(map(_described, holders)) or self._holder
        return bool(holders)


def _limited(connection: sa.Connection) -> int:
    """Set the limits of the transaction; the process of the server that serves it."""
    from spsa.db import deadline  # loads PostgreSQL's driver, which an SQLite file needs not

    deadline.allow(connection.connection.dbapi_connection, WAIT_SECONDS + WORK_SECONDS)
    milliseconds = {"lock_timeout": WAIT_SECONDS, "statement_timeout": WAIT_SECONDS + WORK_SECONDS}
    for name, seconds in milliseconds.items():
        connection.exec_driver_sql(f"SET LOCAL {name} = {round(1000 * seconds)}")
    pid: int = connection.execute(sa.select(sa.func.pg_backend_pid())).scalar_one()
    return pid


def _described(holder: sa.Row[Any]) -> str:
    if holder.pid == 0:
        return "a prepared transaction (see pg_prepared_xacts)"
    state = holder.state or "in a state that this user may not see"
    return (
        f"process {holder.pid} of user {holder.usename}, application "
        f"{holder.application_name!r}, {state}"
    )
