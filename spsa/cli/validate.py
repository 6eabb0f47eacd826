"""`spsa-master validate`."""

from collections.abc import Sequence
from typing import Any

import click

from spsa.cli.common import json_option, run_option, with_config
from spsa.cli.held_run import held_run, interruptible, play_match, validation_game_settings
from spsa.config.settings import Config
from spsa.core.game_settings import MAX_NELO, MIN_NELO_APART, TimeControl
from spsa.core.params import PlayedValues
from spsa.db import Store
from spsa.db.tables import Compared, Iteration
from spsa.live_display import working
from spsa.output import echo, echo_json
from spsa.report.matches import MATCHES, Match, named_theta
from spsa.report.notify import addresses
from spsa.report.run_watch import watching
from spsa.report.table import TextTable, records, terminal

_MAX_GAMES = 1_000_000


def _sprt(
    _context: click.Context, _option: click.Parameter, given: tuple[float, float] | None
) -> tuple[float, float] | None:
    if given is None:
        return None
    if not all(-MAX_NELO <= nelo <= MAX_NELO for nelo in given):  # nor nan
        raise click.BadParameter(f"normalised Elo is from {-MAX_NELO:g} to {MAX_NELO:g}")
    if given[1] - given[0] < MIN_NELO_APART:
        raise click.BadParameter(f"ELO0 has to be less than ELO1, by {MIN_NELO_APART:g} at least")
    return given


def limit(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> TimeControl | None:
    """The value of an option that is a time control."""
    try:
        return None if text is None else TimeControl.parse(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not [MOVES/]BASE[+INC] in seconds, as in 10+0.1, nor movetime=SECONDS, "
            "nodes=N or depth=N"
        ) from None


@click.command()
@with_config
@run_option
@click.option(
    "--games",
    type=click.IntRange(2, _MAX_GAMES),
    help="How many; default: [validation] games. With --sprt: the most it may take.",
)
@click.option(
    "--sprt",
    type=(float, float),
    callback=_sprt,
    metavar="ELO0 ELO1",
    help="End when a sequential test of these two, in normalised Elo, is decided (5% errors).",
)
@click.option(
    "--theta",
    default="final",
    show_default=True,
    metavar="final|averaged|supported|ITERATION",
    help="Where the rule ended, the average, in which late iterations weigh more, where all games "
    "together put the optimum, or theta after a result.",
)
@click.option(
    "--against",
    default="start",
    show_default=True,
    metavar="start|ITERATION",
    help="The values the run was started with, or theta after a result.",
)
@click.option(
    "--also",
    callback=limit,
    metavar="TIMECONTROL",
    help="Then play the same under another time control, as 60+0.6 or nodes=50000.",
)
@json_option
def validate(
    config: Config, run: str | None, games: int | None, as_json: bool, **given: Any
) -> int:
    """Play one theta of a run against another, usually the tuned values against the start.

    The same workers play it as play the tuning, with the same game settings. If you interrupt
    it, the same command continues the match.
    """
    sprt: tuple[float, float] | None = given["sprt"]
    usual = _MAX_GAMES if sprt else config.validation.games or 1000
    wanted, told = _in_pairs(games or usual), addresses(config)
    console = terminal(stderr=True)
    played: list[Iteration] = []
    with (
        interruptible() as stopping,
        Store(config.database.url, is_stopping=stopping.is_set) as store,
    ):
        chosen = store.run(run)
        with working("computing both thetas"):
            plus, k = named_theta(store, chosen, given["theta"])
            minus, _ = named_theta(store, chosen, given["against"])
        sides = PlayedValues(plus=plus, minus=minus)
        compared = Compared(theta=given["theta"], against=given["against"], sprt=sprt)
        own = validation_game_settings(config, chosen.game_settings)
        also = given["also"]
        with (
            held_run(store, config, chosen, console, stopping) as held,
            watching(config, held.master_lease, chosen.name, told),
        ):
            for game_settings in (own, own.under(also)) if also else (own,):
                row = play_match(held, chosen, sides, wanted, game_settings, compared, k)
                if row is None:
                    return 130
                played.append(row)
    _show(chosen.name, played, as_json=as_json)
    return 0


def _show(run: str, played: Sequence[Iteration], *, as_json: bool) -> None:
    matches = [Match(row) for row in played]
    if as_json:
        echo_json({"run": run, "matches": records(MATCHES, matches)})
        return
    echo(f"run {run}")
    terminal().print(TextTable(MATCHES, matches))
    for match in matches:
        echo(*match.sentences())


def _in_pairs(games: int) -> int:
    if games % 2:
        echo(f"note: games come in pairs: {games + 1:,} are played, not {games:,}", err=True)
    return games + games % 2
