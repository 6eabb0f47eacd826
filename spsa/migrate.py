"""Brings a database to the tables of `schema`, and refuses to work with any others."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from spsa.connection import create_engine, parse_url, translated
from spsa.errors import SchemaMismatch, TablesMissing
from spsa.schema import REVISION
from spsa.sql_files import programs

if TYPE_CHECKING:
    from alembic.config import Config

# one number that every upgrade locks, so that processes started together take turns
_UPGRADE_LOCK = 0x5B5A

_VERSION = sa.text("SELECT version_num FROM alembic_version")


def upgrade(url: str) -> bool:
    """Bring the database at `url` to this program's schema; True if anything had to be done.

    Safe to run by any number of processes at once: they take turns, and all but one find it done.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True, create=True)
    try:
        with translated(target), engine.begin() as connection:
            return revision(connection) != REVISION and _upgraded(connection)
    finally:
        engine.dispose()


def _upgraded(connection: sa.Connection) -> bool:
    if connection.dialect.name == "postgresql":
        _take_turns(connection)
    before = revision(connection)
    _refuse_newer(before)
    if before != REVISION:
        _run_migrations(connection)
    return before != REVISION


def _take_turns(connection: sa.Connection) -> None:
    from spsa import deadline  # loads PostgreSQL's driver, which an SQLite file needs not

    deadline.unhurried(connection.connection.dbapi_connection)
    connection.execute(sa.text("SET LOCAL statement_timeout = 0"))
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))


def revision(connection: sa.Connection) -> str | None:
    """The migration a database is at; None where there has been none."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version: str | None = connection.scalar(_VERSION)
    return version


def check(connection: sa.Connection) -> None:
    """Refuse a database that is not at this program's schema.

    Raises:
        SchemaMismatch: says which of the two has to be upgraded, and how.
    """
    found = revision(connection)
    _refuse_newer(found)
    if found is None:
        raise TablesMissing(
            "the database has no tables of the tuner yet: run `spsa-master run` or "
            "`spsa-master db upgrade`"
        )
    if found != REVISION:
        raise SchemaMismatch(
            f"the database is at schema {found}, this program needs {REVISION}: "
            "run `spsa-master db upgrade`"
        )


def confirm(connection: sa.Connection) -> None:
    """Refuse to commit to tables that have become others since they were opened.

    The last statement of a transaction that writes. On PostgreSQL an upgrade that alters what the
    transaction wrote waits for it, and sees it; one that has gone by is seen here.

    Raises:
        SchemaMismatch: nothing of this transaction is to be kept.
    """
    found = connection.scalar(_VERSION)
    if found != REVISION:
        raise SchemaMismatch(
            f"the database was brought to schema {found} while this program, which needs "
            f"{REVISION}, was running: install that version of the tuner here and start it again"
        )


def _refuse_newer(found: str | None) -> None:
    if found is not None and found > REVISION:
        raise SchemaMismatch(
            f"the database is at schema {found}, newer than this program's {REVISION}: "
            "install the newer version of the tuner here"
        )


def _run_migrations(connection: sa.Connection) -> None:
    from alembic import command  # half a second to import, and only ever needed here

    config = configuration()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    install_programs(connection)


def install_programs(connection: sa.Connection) -> None:
    """Bring the triggers that count, and a worker's functions, to this program's text.

    The functions look for tables in the schema that is current now, and nowhere else.
    """
    driver: Any = connection.connection.dbapi_connection
    cursor = driver.cursor()
    if connection.dialect.name == "postgresql":
        schema = connection.scalar(sa.text("SELECT quote_ident(current_schema())"))
        cursor.execute(f"SET LOCAL search_path = {schema}, pg_temp")
    for text in programs(connection.dialect.name):
        cursor.execute(text)
    cursor.close()


def configuration() -> "Config":
    """Alembic's configuration for the migrations that belong to this program."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_migrations()))
    return config


def _migrations() -> Path:
    packaged = Path(str(files("spsa"))) / "_migrations"
    checkout = Path(__file__).resolve().parent.parent / "migrations"
    return checkout if (checkout / "env.py").is_file() else packaged
