"""Which schema version a database has, and whether this program can work with it."""

from collections.abc import Sequence

import sqlalchemy as sa

from spsa.db.schema import REVISION, metadata
from spsa.errors import SchemaMismatch, TablesMissing

_VERSIONS = sa.text("SELECT version_num FROM alembic_version")
_TABLE = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY); "
_ROW = "INSERT INTO alembic_version VALUES ('{}')"


def revision(connection: sa.Connection) -> str | None:
    """The migration that a database is at; None where it has no tables of the tuner.

    Raises:
        SchemaMismatch: alembic_version is not as the migrations leave it; says what to do.
    """
    # Tables first: an upgrade that commits between the two queries creates both.
    names = set(sa.inspect(connection).get_table_names())
    tables = sorted(names & set(metadata.tables))
    known = "alembic_version" in names
    versions = _versions(connection) if known else []
    if len(versions) > 1:
        raise SchemaMismatch(
            f"alembic_version has {len(versions)} rows ({_listed(versions)}) and must have one: "
            f"delete the others; the tables of this program are at {REVISION}"
        )
    if tables and not versions:
        raise SchemaMismatch(
            f"the database has tables of the tuner ({_listed(tables)}) and alembic_version is "
            f"{'empty' if known else 'missing'}: restore it from a backup, or if these tables are "
            f"of this version of the program, run: {'' if known else _TABLE}{_ROW.format(REVISION)}"
        )
    if versions and not names & set(metadata.tables):
        raise SchemaMismatch(
            f"alembic_version says {versions[0]} and the database has no table of the tuner: "
            "restore them from a backup, or use another database for the tuner"
        )
    return versions[0] if versions else None


def check(connection: sa.Connection) -> None:
    """Refuse a database that is not at this program's schema.

    Raises:
        SchemaMismatch: says whether to upgrade the database or the program, and how.
    """
    found = revision(connection)
    refuse_newer(found)
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
    """Refuse to commit if the schema was upgraded since the database was opened.

    The last statement of a transaction that writes. On PostgreSQL an upgrade that alters what the
    transaction wrote waits for its end; one that has ended before is noticed here.

    Raises:
        SchemaMismatch: the transaction has to be rolled back.
    """
    found = _versions(connection)
    if len(found) != 1:
        raise SchemaMismatch(
            f"alembic_version has {len(found)} rows now and must have one: "
            "`spsa-master db check` says what to do"
        )
    if found != [REVISION]:
        raise SchemaMismatch(
            f"the database was brought to schema {found[0]} while this program, which needs "
            f"{REVISION}, was running: install that version of the tuner here and start it again"
        )


def refuse_newer(found: str | None) -> None:
    """Refuse the schema of a later version of this program."""
    if found is not None and found > REVISION:
        raise SchemaMismatch(
            f"the database is at schema {found}, newer than this program's {REVISION}: "
            "install the newer version of the tuner here"
        )


def _versions(connection: sa.Connection) -> list[str]:
    return [str(version) for version in connection.scalars(_VERSIONS)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
