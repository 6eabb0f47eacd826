"""`spsa-master validate`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from spsa.cli.common import chosen_run, json_option, run_option, with_config
from spsa.cli.held_run import held_run, interruptible, play_match
from spsa.config.settings import Config
from spsa.core.game_settings import (
    MAX_HANDICAP,
    MAX_NELO,
    MIN_NELO_APART,
    TimeControl,
    divided_by_shares,
)
from spsa.core.params import PlayedValues
from spsa.db import Store, migrate
from spsa.db.tables import Compared, Iteration, Run
from spsa.errors import InvalidInput
from spsa.live_display import working
from spsa.master.match import MAX_GAMES, ValidationMatch, left_match, match_of, settings_of_match
from spsa.master.match_engines import foreign_engine, named_engine, run_of_match
from spsa.output import Within, echo, echo_json
from spsa.report.matches import MATCHES, is_theta, matches_of, named_theta
from spsa.report.notify import addresses
from spsa.report.run_watch import watching
from spsa.report.table import TextTable, records, terminal

_USUAL_GAMES = 1000


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
    type=click.IntRange(2, MAX_GAMES),
    help="How many, in pairs; default: [validation] games. With --sprt: the most it may take.",
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
    metavar="final|supported|ITERATION",
    help="Where the rule ended, where all games together put the optimum, or theta after a result.",
)
@click.option(
    "--against",
    default="start",
    show_default=True,
    metavar="start|ITERATION|ENGINE",
    help="The values the run was started with, theta after a result, or another engine: the path "
    "of a binary, which gets those of [engine.options] that it has, and one thread.",
)
@click.option(
    "--plus",
    metavar="SOURCE[@COMMIT]",
    help="With --minus, instead of thetas: two engines. Each is a binary, a folder that is built "
    "as [build] says, a commit of it, or the address of a repository of git.",
)
@click.option("--minus", metavar="SOURCE[@COMMIT]", help="What --plus is compared with.")
@click.option(
    "--handicap",
    type=Within(1.0, MAX_HANDICAP),
    default=1.0,
    show_default=True,
    metavar="N",
    help="Divides the time, nodes or depth that the other side gets: with 4 it has a quarter.",
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

    With --plus and --minus it plays two engines, such as a patch and what it changes. They need no
    run: if a master moves the run of config.toml, or there is none, they play in NAME-matches.
    """
    is_of_engines, told = _asks_for_engines(given), addresses(config)
    wanted = games or (MAX_GAMES if given["sprt"] else config.validation.games)
    wanted += wanted % 2  # games come in pairs
    console = terminal(stderr=True)
    played: list[Iteration] = []
    if is_of_engines:
        migrate.upgrade(config.database.url)
    with (
        interruptible() as stopping,
        Store(config.database.url, is_stopping=stopping.is_set) as store,
    ):
        chosen = run_of_match(config, store, run) if is_of_engines else chosen_run(store, run)
        wanted = wanted or _usual_games(settings_of_match(config, chosen).shares)
        made = _of_engines if is_of_engines else _of_thetas
        match = made(config, store, chosen, wanted, given)
        asked, own, also = match.asked, match.game_settings, given["also"]
        echo(f"{asked.theta} against {asked.against}, in run {chosen.name}", err=True)
        with (
            held_run(store, config, chosen, console, stopping) as held,
            watching(config, held.master_lease, chosen.name, told),
        ):
            for settings in (own, own.under(also)) if also else (own,):
                row = play_match(held, chosen, replace(match, game_settings=settings))
                if row is None:
                    return 130
                played.append(row)
    matches = matches_of(chosen, played)
    if as_json:
        echo_json({"run": chosen.name, "matches": records(MATCHES, matches)})
        return 0
    echo(f"run {chosen.name}")
    terminal().print(TextTable(MATCHES, matches))
    echo(*(line for match in matches for line in match.sentences()))
    return 0


def _usual_games(shares: Sequence[float]) -> int:
    """The games where a person names no number, as many as the shares divide; tells another one."""
    games = divided_by_shares(_USUAL_GAMES, shares)
    if games != _USUAL_GAMES:
        divided = f"{games:,} games, which the shares of [[time_control]] divide"
        echo(f"{divided}; --games plays another number", err=True)
    return games


def _asks_for_engines(given: Mapping[str, Any]) -> bool:
    """Whether two engines are to be played; UsageError for what does not go together."""
    named = [given[side] is not None for side in ("plus", "minus")]
    if any(named) and not all(named):
        raise click.UsageError("--plus and --minus go together: name both engines")
    if all(named) and (given["theta"], given["against"]) != ("final", "start"):
        raise click.UsageError("--theta and --against are of a run, --plus and --minus are not")
    return all(named)


def _of_engines(
    config: Config, store: Store, run: Run, games: int, given: Mapping[str, Any]
) -> ValidationMatch:
    """The match of two engines that the command line names."""
    settings, handicap = settings_of_match(config, run), given["handicap"]
    with working("pinning both engines"):
        plus, minus = (
            named_engine(config, store, settings, given[side], side) for side in ("plus", "minus")
        )
    if plus.sha256 == minus.sha256 and handicap == 1.0:
        found = f"both sides are the same: {plus.name}"
        raise InvalidInput.of("validate", "--minus", found, "name another engine, or a --handicap")
    sides = PlayedValues({}, {})
    asked = Compared(theta=plus.name, against=minus.name, sprt=given["sprt"])
    return match_of(config, run, sides, asked, games, handicap, plus=plus, minus=minus)


def _of_thetas(
    config: Config, store: Store, run: Run, games: int, given: Mapping[str, Any]
) -> ValidationMatch:
    """The match of a theta against another one, or against another program."""
    engine, against, values = None, given["against"], dict[str, float]()
    if not run.tunes:
        return left_match(config, store, run)
    with working("computing both thetas"):
        plus, k = named_theta(store, run, given["theta"])
        if is_theta(against) or not ("/" in against or Path(against).exists()):
            values, _ = named_theta(store, run, against)
    if not values:
        refused = partial(InvalidInput.of, "validate", "--against")
        engine = foreign_engine(config, settings_of_match(config, run), Path(against), refused)
        against = engine.name
    sides = PlayedValues(plus=plus, minus=values)
    asked = Compared(theta=given["theta"], against=against, sprt=given["sprt"])
    return match_of(config, run, sides, asked, games, given["handicap"], k=k, minus=engine)
