"""Brings a database to the schema of this program, and restores what is missing from it."""

from typing import Any

import sqlalchemy as sa

from spsa.db.connection import create_engine, parse_url, translated
from spsa.db.inventory import SchemaObject, changed, listed, missing
from spsa.db.lock_wait import waiting_transaction
from spsa.db.schema import PRIVATE_VIEWS, REVISION, VIEWS
from spsa.db.schema_version import check, confirm, refuse_newer, revision
from spsa.db.sql_files import programs, worker_functions
from spsa.errors import SchemaMismatch
from spsa.output import echo

__all__ = ["check", "check_complete", "confirm", "install_programs", "upgrade"]

# the key of the advisory lock that every upgrade takes, so that only one runs at a time
_UPGRADE_LOCK = 0x5B5A

_KINDS_WITH_DATA = ("table", "column")


def upgrade(url: str) -> bool:
    """Bring the database at `url` to this program's schema; True if anything had to be done.

    Any number of processes may do this at once: one upgrades, the others wait and find it done.
    Missing views, triggers and functions are created again, and changed ones are replaced.

    Raises:
        SchemaMismatch: a newer program made the tables, or no migration leads from them to these,
            or only the owner of the tables may replace what differs.
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
    """Refuse a database in which any part of this program's schema is missing or different.

    Raises:
        SchemaMismatch: names each missing table, column, view, trigger and function, or each
            trigger and function with another definition.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True).execution_options(reads_only=True)
    try:
        with translated(target), engine.begin() as connection:
            check(connection)
            if gone := missing(connection):
                raise _incomplete(gone)
            if differing := changed(connection):
                raise SchemaMismatch(_different(differing))
    finally:
        engine.dispose()


def _print(sentence: str) -> None:
    echo(sentence, err=True)


def _is_complete(connection: sa.Connection) -> bool:
    current = revision(connection) == REVISION
    return current and not missing(connection) and not changed(connection)


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
    """Create again what holds no data; False if nothing was missing or different."""
    gone, differing = missing(connection), changed(connection)
    if _holds_data(gone):
        raise _incomplete(gone)
    if differing and not _is_owner(connection):
        raise SchemaMismatch(f"{_different(differing)} as the owner of the tables")
    views = {**PRIVATE_VIEWS, **VIEWS}
    for name in [name for kind, name in gone if kind == "view"]:
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {views[name]}")
    if gone or differing:
        install_programs(connection)
    return bool(gone or differing)


def _is_owner(connection: sa.Connection) -> bool:
    if connection.dialect.name == "sqlite":
        return True
    owned = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'spsa_run'::regclass"
    return bool(connection.scalar(sa.text(owned)))


def _different(differing: tuple[SchemaObject, ...]) -> str:
    return (
        f"the database says schema {REVISION} and has another definition of {listed(differing)} "
        "than this program: run `spsa-master db upgrade`"
    )


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

    The functions look for tables in the current schema only. A login that may call one of those for
    workers may call all of them afterwards.
    """
    driver: Any = connection.connection.dbapi_connection
    cursor = driver.cursor()
    logins: list[str] = []
    if connection.dialect.name == "postgresql":
        logins = _logins_of_workers(connection)
        _drop_other_signatures(connection)
        schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
        cursor.execute(f"SET LOCAL search_path = {schema}, pg_temp")
    for text in programs(connection.dialect.name):
        cursor.execute(text)
    for login in logins:
        cursor.execute(f"GRANT EXECUTE ON FUNCTION {', '.join(worker_functions())} TO {login}")
    cursor.close()


def _logins_of_workers(connection: sa.Connection) -> list[str]:
    """The logins that may call a function for workers, quoted."""
    query = sa.text(
        "SELECT DISTINCT acl.grantee::regrole::text FROM pg_proc, aclexplode(proacl) AS acl"
        " WHERE proname = ANY (:names) AND pg_function_is_visible(pg_proc.oid)"
        " AND acl.grantee NOT IN (0, proowner)"
    )
    return list(connection.scalars(query, {"names": list(worker_functions())}))


def _drop_other_signatures(connection: sa.Connection) -> None:
    """Drop the functions that differ: CREATE OR REPLACE keeps arguments and their names.

    Those of triggers stay, because a trigger needs them; they have no arguments.
    """
    query = sa.text(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = ANY (:names)"
        " AND pg_function_is_visible(oid) AND prorettype <> 'trigger'::regtype"
    )
    names = [name for kind, name in changed(connection) if kind == "function"]
    for signature in connection.scalars(query, {"names": names}).all():
        connection.exec_driver_sql(f"DROP FUNCTION {signature}")
