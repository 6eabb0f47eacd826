"""`spsa-master voids`: the games that engines have spoilt."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from spsa.cli.common import config_option, database_option, opened, run_option
from spsa.errors import NothingToDo
from spsa.output import echo, echo_json
from spsa.report.text import terminal
from spsa.report.voids import place, void_lines, void_pgn, voids_json, voids_table

if TYPE_CHECKING:
    from spsa.db.read_queries import VoidGame


@click.command()
@config_option
@database_option
@run_option
@click.argument("batch", required=False, metavar="[ITERATION.BATCH]")
@click.option(
    "--last",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Batches to look at: the last ones with void games.",
)
@click.option(
    "--pgn", type=click.Path(dir_okay=False, path_type=Path), help="File to write the games to."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def voids(
    config: str | None,
    database_url: str | None,
    run: str | None,
    batch: str | None,
    last: int,
    pgn: Path | None,
    as_json: bool,
) -> None:
    """List void games; with ITERATION.BATCH show all that is known of those of one batch.

    Workers keep the moves of the first few void games of a batch, and the last lines of the engine
    at fault. None of them counts; their pairs are played again.
    """
    with opened(config, database_url) as store:
        found = store.run(run)
        games = _chosen(store.void_games(found.id, last), batch)
    if pgn is not None:
        pgn.write_text("".join(void_pgn(game, found) for game in games), encoding="utf-8")
    if as_json:
        echo_json({"run": found.name, "void_games": voids_json(games)})
    elif batch is not None:
        for game in games:
            echo(*void_lines(game, found))
    elif games:
        terminal().print(voids_table(games))
        echo(f"`spsa-master voids {place(games[-1])}` shows the last one")
    else:
        echo(f"run {found.name} has no void games")


def _chosen(games: "list[VoidGame]", batch: str | None) -> "list[VoidGame]":
    chosen = [game for game in games if batch in (None, place(game))]
    if batch is not None and not chosen:
        known = ", ".join(dict.fromkeys(place(game) for game in games)) or "none"
        raise NothingToDo(f"no void game of a batch {batch} is kept; batches with some: {known}")
    return chosen
