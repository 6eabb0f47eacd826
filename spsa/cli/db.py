"""`spsa-master db`: the tables."""

from pathlib import Path

import click

from spsa.cli.common import FileToWrite, config_option, database_option, opened, settings
from spsa.db import migrate
from spsa.db.schema import REVISION
from spsa.db.store import open_store
from spsa.live_display import working
from spsa.output import echo


@click.group()
def db() -> None:
    """Create or upgrade the tables, or check them."""


@db.command()
@config_option
@database_option
def upgrade(config: str | None, database_url: str | None) -> None:
    """Bring the tables to this program's schema.

    Safe to run at any time, on a live run too.
    """
    found = settings(config, database_url)
    with working("bringing the tables to this program's schema"):
        done = migrate.upgrade(found.database_url)
    echo("upgraded" if done else "already at this program's schema")


@db.command()
@config_option
@database_option
def check(config: str | None, database_url: str | None) -> None:
    """Say whether this program can work with the database."""
    url = settings(config, database_url).database_url
    migrate.check_complete(url)
    with open_store(url) as store:
        echo(f"{store.where}: schema {REVISION}, as this program needs it")


@db.command()
@config_option
@database_option
@click.argument("file", type=FileToWrite())
def backup(config: str | None, database_url: str | None, file: Path) -> None:
    """Copy an SQLite database to FILE.

    Masters and workers go on with it meanwhile. Of a PostgreSQL server `pg_dump --format=custom`
    makes one.
    """
    with opened(config, database_url) as store:
        with working(f"copying {store.where}"):
            store.copy_to(file)
        echo(f"{store.where} is copied to {file}")
