"""`spsa-master db`: the tables."""

import click

from spsa.cli.common import config_option, database_option, settings


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
    from spsa import migrate

    found = settings(config, database_url)
    done = migrate.upgrade(found.database_url)
    click.echo("upgraded" if done else "already at this program's schema")


@db.command()
@config_option
@database_option
def check(config: str | None, database_url: str | None) -> None:
    """Say whether this program can work with the database."""
    from spsa.schema import REVISION
    from spsa.store import open_store

    with open_store(settings(config, database_url).database_url) as store:
        click.echo(f"{store.where}: schema {REVISION}, as this program needs it")
