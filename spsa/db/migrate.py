"""Brings a database to the schema of this program, and restores what is missing from it."""

from typing import Any

import sqlalchemy as sa

from spsa.db.connection import create_engine, parse_url, translated
from spsa.db.inventory import SchemaObject, listed, missing
from spsa.db.lock_wait import waiting_transaction
from spsa.db.schema import REVISION, VIEWS
from spsa.db.schema_version import check, confirm, refuse_newer, revision
from spsa.db.sql_files import programs
from spsa.errors import SchemaMismatch
from spsa.output import echo

__all__ = ["check", "check_complete", "confirm", "install_programs", "upgrade"]

# the key of the advisory lock that every upgrade takes, so that only one runs at a time
_UPGRADE_LOCK = 0x5B5A

_KINDS_WITH_DATA = ("table", "column")


def upgrade(url: str) -> bool:
    """Bring the database at `url` to this program's schema; True if anything had to be done.

    Any number of processes may do this at once: one upgrades, the others wait and find it done.
    Missing views, triggers and functions are created again.

    Raises:
        SchemaMismatch: a newer program made the tables, or no migration leads from them to these.
        DatabaseUnreachable: another process held a lock for too long; names it.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True, create=True)
    try:
        with translated(target), waiting_transaction(engine, _print) as connection:
            return not _is_complete(connection) and _upgraded(connection)
    finally:
        engine.dispose()


def check_complete(url: str) -> None:
    """Refuse a database in which any part of this program's schema is missing.

    Raises:
        SchemaMismatch: names each missing table, column, view, trigger and function.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True).execution_options(reads_only=True)
    try:
        with translated(target), engine.begin() as connection:
            check(connection)
            if gone := missing(connection):
                raise _incomplete(gone)
    finally:
        engine.dispose()


def _print(sentence: str) -> None:
    echo(sentence, err=True)


def _is_complete(connection: sa.Connection) -> bool:
    return revision(connection) == REVISION and not missing(connection)


def _upgraded(connection: sa.Connection) -> bool:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
    before = revision(connection)
    refuse_newer(before)
    if before == REVISION:
        return _restored(connection)
    from spsa.db.alembic_runner import run_migrations  # late: alembic takes half a second

    run_migrations(connection)
    install_programs(connection)
    return True


def _restored(connection: sa.Connection) -> bool:
    """Create again what holds no data; False if nothing was missing."""
    gone = missing(connection)
    if _holds_data(gone):
        raise _incomplete(gone)
    for name in [name for kind, name in gone if kind == "view"]:
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
    if gone:
        install_programs(connection)
    return bool(gone)


def _holds_data(gone: tuple[SchemaObject, ...]) -> bool:
    return any(kind in _KINDS_WITH_DATA for kind, _ in gone)


def _incomplete(gone: tuple[SchemaObject, ...]) -> SchemaMismatch:
    remedy = (
        "restore the database from a backup; no upgrade can restore their data"
        if _holds_data(gone)
        else "run `spsa-master db upgrade` to create them, then `spsa-master grant` again"
    )
    return SchemaMismatch(f"the database says schema {REVISION} and lacks {listed(gone)}: {remedy}")


def install_programs(connection: sa.Connection) -> None:
    """Create or replace the triggers that count games, and the functions for workers.

    The functions look for tables in the current schema only.
    """
    driver: Any = connection.connection.dbapi_connection
    cursor = driver.cursor()
    if connection.dialect.name == "postgresql":
        schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
        cursor.execute(f"SET LOCAL search_path = {schema}, pg_temp")
    for text in programs(connection.dialect.name):
        cursor.execute(text)
    cursor.close()
