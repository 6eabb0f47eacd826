"""`spsa-master validate`."""

import click

from spsa.cli.common import (
    config_option,
    database_option,
    run_option,
    settings,
    theta_option,
)
from spsa.cli.master_session import (
    held_run,
    interruptible,
    play_match,
    tuned_against_start,
    validation_terms,
)
from spsa.db.store import open_store
from spsa.output import echo
from spsa.report.text import iterations_table, terminal
from spsa.report.theta import Theta


@click.command()
@config_option
@database_option
@run_option
@click.option(
    "--games",
    type=click.IntRange(2, 1_000_000),
    help="How many; default: [validation] games.",
)
@theta_option
def validate(
    config: str | None,
    database_url: str | None,
    run: str | None,
    games: int | None,
    theta: str | None,
) -> int:
    """Play the tuned values of a run against those it was started with.

    The games are handed out to the same workers as those of the tune. Interrupted, the same command
    goes on with the match.
    """

    found = settings(config, database_url)
    wanted = games or found.validation.games or 1000
    which = Theta(theta or Theta.FINAL)
    console = terminal(stderr=True)
    with (
        interruptible() as stopping,
        open_store(found.database_url, is_stopping=stopping.is_set) as store,
    ):
        chosen = store.run(run)
        terms = validation_terms(found, chosen.terms)
        sides = tuned_against_start(chosen, which)
        with held_run(store, found, chosen, console, stopping) as seat:
            row = play_match(seat, chosen, sides, _in_pairs(wanted), terms)
    if row is None:
        return 130
    title = f"{chosen.name}: {which} theta against start"
    terminal().print(iterations_table(title, (row,)))
    return 0


def _in_pairs(games: int) -> int:
    if games % 2:
        echo(f"note: games come in pairs: {games + 1} are played, not {games}", err=True)
    return games + games % 2
