"""A transaction for migrations: it waits a limited time for locks, and names who holds them.

A migration has to wait until every other transaction on its tables has ended.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from spsa.db.database_url import displayed
from spsa.errors import DatabaseUnreachable

WAIT_SECONDS = 60.0
"""For one lock of a PostgreSQL server; for an SQLite file it is `sqlite_file.BUSY_SECONDS`."""

WORK_SECONDS = 3600.0
"""For one statement, besides its wait for locks."""

_POLL_SECONDS = 0.5
_LOCK_NOT_AVAILABLE = "55P03"
_BUSY = ("database is locked", "database is busy")

_HOLDERS = sa.text("""
SELECT blocking.pid, a.usename, a.application_name, a.state
  FROM unnest(pg_blocking_pids(:pid)) AS blocking (pid)
  LEFT JOIN pg_stat_activity a ON a.pid = blocking.pid
""")


@contextmanager
def waiting_transaction(
    engine: sa.Engine, notify: Callable[[str], None]
) -> Iterator[sa.Connection]:
    """A transaction that may wait for locks; `notify` gets one sentence when it starts to wait.

    Raises:
        DatabaseUnreachable: it waited too long; names the process that held the lock.
    """
    with _LockWatch(engine, notify) as watch:
        try:
            with engine.begin() as connection:
                watch.follow(connection)
                yield connection
        except (OperationalError, engine.dialect.loaded_dbapi.OperationalError) as error:
            # the driver's own: scripts are executed on its cursor
            if _is_lock_timeout(getattr(error, "orig", error)):
                raise DatabaseUnreachable(watch.timeout_message) from None
            raise


def _is_lock_timeout(error: Any) -> bool:
    code = getattr(error, "pgcode", None)
    return code == _LOCK_NOT_AVAILABLE or str(error).startswith(_BUSY)


class _LockWatch:
    """Finds out in a thread, over a second connection, who holds the lock of a transaction."""

    def __init__(self, engine: sa.Engine, notify: Callable[[str], None]) -> None:
        self._engine = engine
        self._notify = notify
        self._pid: int | None = None
        self._holder = "another process that writes it"
        self._ended = threading.Event()
        self._began = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def timeout_message(self) -> str:
        return (
            f"{displayed(self._engine.url)}: waited too long for {self._holder}: end it, or try "
            "again when it has ended; nothing was changed"
        )

    def follow(self, connection: sa.Connection) -> None:
        """Watch this transaction, which has begun, and limit its waits to WAIT_SECONDS."""
        if connection.dialect.name == "postgresql":
            self._pid = _limited(connection)
        self._began.set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        """Report the first wait, and remember the holder of the last one."""
        notified = False
        while not self._ended.wait(_POLL_SECONDS):
            if self._is_waiting() and not notified:
                notified = True
                self._notify(f"{displayed(self._engine.url)}: waiting for {self._holder}")

    def _is_waiting(self) -> bool:
        if self._pid is None:  # SQLite waits in BEGIN, and does not know who writes
            return self._engine.dialect.name == "sqlite" and not self._began.is_set()
        try:
            with self._engine.begin() as connection:
                holders = connection.execute(_HOLDERS, {"pid": self._pid}).all()
        except SQLAlchemyError:  # the server has no free connection
            return False
        self._holder = " and ".join(map(_described, holders)) or self._holder
        return bool(holders)


def _limited(connection: sa.Connection) -> int:
    """Set the limits of the transaction; returns the id of its server process."""
    driver: Any = connection.connection.dbapi_connection
    driver.timeout = WAIT_SECONDS + WORK_SECONDS
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
