"""The schema: creates it in an empty database, refuses one with another; copies an SQLite file."""

import hashlib
import os
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

import spsa.db.build_queries
import spsa.db.tables  # noqa: F401  both declare the tables of `metadata`
from spsa.db.base import PLACES, Base, named_texts
from spsa.db.database import BUSY_SECONDS, create_engine, translated
from spsa.db.url import displayed, is_file, parse_url
from spsa.errors import InvalidInput, SchemaMismatch, TablesMissing

metadata = Base.metadata

VIEWS = {name: text.format_map(PLACES) for (_, name), text in named_texts("views.sql").items()}
"""The views for people: name -> query."""

_UPGRADE_LOCK = 0x5B5A
"""The key of the advisory lock that every upgrade takes, so that only one runs at a time."""

_SERVER_ONLY = (
    # every result updates the row of its iteration; free space on its page keeps the update away
    # from the indexes
    "ALTER TABLE spsa_iteration SET (fillfactor = 50, toast_tuple_target = 512)"
)


def _revision_of_this_program() -> str:
    made = [str(CreateTable(table)) for table in metadata.sorted_tables]
    indexes = [
        f"{CreateIndex(index)} {index.dialect_options['sqlite']['where']}"
        for table in metadata.sorted_tables
        for index in table.indexes
    ]
    words = " ".join(sorted([*made, *indexes, *VIEWS, *VIEWS.values(), _SERVER_ONLY])).split()
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]


REVISION = _revision_of_this_program()
"""The first and only revision. Nothing has been released yet, so any change of the schema makes
another first revision, and a database of an earlier one is refused."""


def upgrade(url: str) -> bool:
    """Create the schema in the database at `url`; True if anything had to be done.

    Any number of processes may do this at once: one does it, the others wait and find it done.
    """
    target = parse_url(url)
    engine = create_engine(target, durable=True, create=True)
    try:
        with translated(target), engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
            try:
                check(connection)
                return False
            except TablesMissing:
                _run_migrations(connection)
                return True
    finally:
        engine.dispose()


def backup(where: str, file: Path) -> None:
    """Copy a database as it is at one moment, while other processes go on writing.

    The copy is complete or absent. Raises InvalidInput: the database is on a server, or `file`
    exists, or its folder does not.
    """
    url = parse_url(where)
    if not is_file(url):
        raise _not_copied(file, f"{displayed(url)} is no file", "use pg_dump --format=custom")
    if file.exists() or not file.parent.is_dir():
        found = "it exists" if file.exists() else f"there is no folder {file.parent}"
        raise _not_copied(file, found, "name a file that does not exist yet")
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(str(url.database), timeout=BUSY_SECONDS)) as source:
        source.execute("VACUUM INTO ?", (str(unfinished),))
    with unfinished.open("rb+") as written:
        os.fsync(written)
    unfinished.rename(file)


def _not_copied(file: Path, found: str, remedy: str) -> InvalidInput:
    return InvalidInput.of(file, "db backup", found, remedy)


def check(connection: sa.Connection) -> None:
    """Refuse a database with other tables: TablesMissing if it has none of the tuner."""
    has_table = sa.inspect(connection).has_table
    if not (is_versioned := has_table("alembic_version")) and not has_table("spsa_run"):
        raise TablesMissing(
            "the database has no tables of the tuner yet: run `spsa-master run` or "
            "`spsa-master db upgrade`"
        )
    version = sa.text("SELECT version_num FROM alembic_version")
    found = [*connection.scalars(version)] if is_versioned else []
    if found != [REVISION]:
        raise SchemaMismatch(
            f"the database has the tables of another version of this program (schema "
            f"{', '.join(found) or 'unknown'}; this one needs {REVISION}), and no upgrade leads "
            "from there: use the version that made it, or a new database"
        )


def create(connection: sa.Connection) -> None:
    """Create everything in an empty database; only the first revision calls this."""
    metadata.create_all(connection)
    for name, query in VIEWS.items():
        connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(_SERVER_ONLY)


def _run_migrations(connection: sa.Connection) -> None:
    # late: alembic takes half a second
    from alembic import command, config

    packaged = Path(str(files("spsa"))) / "_migrations"
    checkout = Path(__file__).resolve().parents[2] / "migrations"
    settings = config.Config()
    folder = checkout if (checkout / "env.py").is_file() else packaged
    settings.set_main_option("script_location", str(folder))
    settings.attributes["connection"] = connection
    command.upgrade(settings, "head")
