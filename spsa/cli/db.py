"""`spsa-master db` and `doctor`: the tables, and whether what they hold is sound."""

from pathlib import Path

import click

from spsa.cli.common import FileToWrite, config_option, database_option, opened, settings
from spsa.db import migrate
from spsa.db.schema import REVISION
from spsa.db.store import Run, Store, open_store
from spsa.history.doctor import Violation, check_run
from spsa.live_display import working
from spsa.master.session import tuning_of
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


@click.command()
@config_option
@database_option
@click.option("--run", "name", metavar="NAME", help="Only this run; default: all.")
def doctor(config: str | None, database_url: str | None, name: str | None) -> int:
    """Check every invariant of the database, and compute theta once more from the start.

    Changes nothing. Exit code 1 and a line for each violation, or 0 and a sentence.
    """
    url = settings(config, database_url).database_url
    migrate.check_complete(url)
    with open_store(url) as store:
        chosen = store.runs() if name is None else [store.run(name)]
        violations = [str(found) for run in chosen for found in _violations(store, run)]
    for violation in violations:
        echo(violation)
    if not violations:
        names = ", ".join(run.name for run in chosen) or "no run yet"
        echo(f"all is well: {names}")
    return 1 if violations else 0


def _violations(store: Store, run: Run) -> list[Violation]:
    with working(f"checking run {run.name}, {run.applied} results"):
        return check_run(store, run, tuning_of(run))
