"""`spsa-master doctor`."""

import click

from spsa.cli.common import config_option, database_option, settings
from spsa.db import migrate
from spsa.db.store import Run, Store, open_store
from spsa.history.doctor import Violation, check_run
from spsa.live_display import working
from spsa.master.start import tuning_of
from spsa.output import echo


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
