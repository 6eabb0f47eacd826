"""`spsa-master db` and `doctor`: the tables, and whether what they hold is sound."""

from pathlib import Path

import click

from spsa.cli.common import (
    FILE,
    config_option,
    database_of,
    settings,
    url_option,
    with_store,
    with_url,
)
from spsa.config.settings import Config
from spsa.config.space import says
from spsa.db import Store, migrate
from spsa.errors import NothingToDo
from spsa.history.doctor import check_run
from spsa.live_display import working
from spsa.master.session import tuning_of
from spsa.output import echo
from spsa.report.notify import Message, NotSent, addresses
from spsa.report.run_watch import text_of
from spsa.text import plural


@click.group()
def db() -> None:
    """Create the tables, or copy the database."""


@db.command()
@with_url
def upgrade(url: str) -> None:
    """Create the tables in a new database.

    Safe to run at any time, on a live run too: it says if there is nothing to do. A database of
    another version of this program is refused.
    """
    with working("creating the tables"):
        done = migrate.upgrade(url)
    echo("the tables are created" if done else "the tables are there already")


@db.command()
@with_store
@click.argument("file", type=FILE)
def backup(store: Store, file: Path) -> None:
    """Copy an SQLite database to FILE.

    Masters and workers go on with it meanwhile. Of a PostgreSQL server `pg_dump --format=custom`
    makes one.
    """
    with working(f"copying {store.where}"):
        migrate.backup(store.where, file)
    echo(f"{store.where} is copied to {file}")


@click.command()
@config_option
@url_option
@click.option("--run", "name", metavar="NAME", help="Only this run; default: all.")
@click.option("--notify", is_flag=True, help="Instead, send a test message by [notify].")
def doctor(config: str | None, database_url: str | None, name: str | None, notify: bool) -> int:
    """Check every invariant of the database and params.toml, and compute theta once more.

    Changes nothing. Exit code 1 and a line for each violation, or 0 and a sentence. With --notify a
    line for each address, and exit code 1 if one of them could not be told.
    """
    if notify:
        return _send_test(settings(config, database_url))
    files = settings(config, database_url) if Path(config or "config.toml").exists() else None
    with Store(files.database.url if files else database_of(config, database_url)) as store:
        chosen = store.runs() if name is None else [store.run(name)]
        violations = _unwritten(files, store) if files and name in (None, files.run.name) else []
        for run in chosen:
            with working(f"checking run {run.name}, {plural(run.applied, 'result')}"):
                violations += check_run(store, run, tuning_of(run))
        echo(*violations)
        if not violations:
            echo(f"all is well: {', '.join(run.name for run in chosen) or 'no run yet'}")
        return 1 if violations else 0


def _unwritten(config: Config, store: Store) -> list[str]:
    """Whether params.toml lacks theta of its run, which goes on, and no master writes it."""
    run = next((one for one in store.run_overviews() if one.name == config.run.name), None)
    if run is None or run.has_master or run.has_ended:
        return []
    lacks = not says(config.run.params, store.run(run.name).theta)
    told = f"{config.run.params} has not its theta, which `spsa-master run` writes there"
    return [f"run {run.name}: {told}"] if lacks else []


def _send_test(config: Config) -> int:
    told, failed = addresses(config), False
    if not told:
        raise NothingToDo('config.toml names no one: write urls = ["https://..."] into [notify]')
    text = text_of(config.run.name, ["test: messages about this run arrive here"])
    for one in told:
        said = "sent"
        try:
            one.send(Message(run=config.run.name, kind="test", text=text))
        except NotSent as error:
            failed, said = True, f"not sent: {error}"
        echo(f"{one.shown}: {said}")
    return int(failed)
