"""Runs the migrations with alembic, which takes half a second to import."""

from importlib.resources import files
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError

from spsa.db.schema import REVISION
from spsa.db.schema_version import revision
from spsa.errors import SchemaMismatch


def run_migrations(connection: sa.Connection) -> None:
    """Bring the tables to REVISION.

    Raises:
        SchemaMismatch: no migration leads there.
    """
    config = configuration()
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SchemaMismatch(
            f"the database is at schema {revision(connection)}, and this program has no migration "
            f"from there to {REVISION} ({error}): upgrade it with the next version of the tuner"
        ) from None


def configuration() -> Config:
    """Alembic's configuration for the migrations that belong to this program."""
    config = Config()
    config.set_main_option("script_location", str(_migrations()))
    return config


def _migrations() -> Path:
    packaged = Path(str(files("spsa"))) / "_migrations"
    checkout = Path(__file__).resolve().parents[2] / "migrations"
    return checkout if (checkout / "env.py").is_file() else packaged
