"""Brings a database to the tables of `schema`, and refuses to work with any others."""

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from spsa.db.connection import create_engine, parse_url, translated
from spsa.db.inventory import Thing, missing, named
from spsa.db.lock_wait import patient_transaction
from spsa.db.schema import REVISION, VIEWS
from spsa.db.schema_version import check, confirm, refuse_newer, revision
from spsa.db.sql_files import programs
from spsa.errors import SchemaMismatch
from spsa.output import echo

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = ["check", "check_complete", "configuration", "confirm", "install_programs", "upgrade"]

# one number that every upgrade locks, so that processes started together take turns
_UPGRADE_LOCK = 0x5B5A

_WITH_DATA = ("table", "column")


def upgrade(url: str) -> bool:
    """Bring the database at `url` to this program's schema; True if anything had to be done.

    Safe to run by any number of processes at once: they take turns, and all but one find it done.
    Views, triggers and functions that are gone are made again.

    Raises:
        SchemaMismatch: a newer program made the tables, or there is no way from them to these.
        DatabaseUnreachable: another process held a lock for too long; names it.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True, create=True)
    try:
        with translated(target), patient_transaction(engine, _tell) as connection:
            return not _is_complete(connection) and _upgraded(connection)
    finally:
        engine.dispose()


def check_complete(url: str) -> None:
    """Refuse a database that lacks anything of this program's schema.

    Raises:
        SchemaMismatch: names each table, column, view, trigger and function that is gone.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True).execution_options(reads_only=True)
    try:
        with translated(target), engine.begin() as connection:
            check(connection)
            if lacking := missing(connection):
                raise _incomplete(lacking)
    finally:
        engine.dispose()


def _tell(sentence: str) -> None:
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
    _run_migrations(connection)
    return True


def _restored(connection: sa.Connection) -> bool:
    """Make again what holds no data; False if nothing was gone."""
    lacking = missing(connection)
    if any(kind in _WITH_DATA for kind, _ in lacking):
        raise _incomplete(lacking)
    for name in [name for kind, name in lacking if kind == "view"]:
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {VIEWS[name]}")
    if lacking:
        install_programs(connection)
    return bool(lacking)


def _incomplete(lacking: tuple[Thing, ...]) -> SchemaMismatch:
    data = any(kind in _WITH_DATA for kind, _ in lacking)
    remedy = (
        "put the database back from a backup; no upgrade can make what was in them"
        if data
        else "`spsa-master db upgrade` makes them again (`spsa-master grant` again afterwards)"
    )
    return SchemaMismatch(
        f"the database says schema {REVISION} and lacks {named(lacking)}: {remedy}"
    )


def _run_migrations(connection: sa.Connection) -> None:
    from alembic import command  # half a second to import, and only ever needed here
    from alembic.util.exc import CommandError

    config = configuration()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SchemaMismatch(
            f"the database is at schema {revision(connection)}, from which this program knows no "
            f"way to {REVISION} ({error}): upgrade it by the version of the tuner that came next"
        ) from None
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
    checkout = Path(__file__).resolve().parents[2] / "migrations"
    return checkout if (checkout / "env.py").is_file() else packaged
