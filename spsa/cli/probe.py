"""`spsa-master probe`: what each parameter changes, before any game is played."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import attrgetter

import click

from spsa.cli.common import json_option, with_both
from spsa.config.settings import Config
from spsa.config.space import write_keys
from spsa.core.parameter import Parameter
from spsa.live_display import counting, working
from spsa.master.delivery_setup import temporary_delivery
from spsa.master.probe import Probed, Prober, Tried
from spsa.master.start import checked_space
from spsa.openings.book import load
from spsa.output import echo, echo_json
from spsa.report.table import Column, TextTable, View, percent, records, terminal
from spsa.text import plural

_MOST_GAMES = 40
"""Games that the engine plays with itself; positions come from each."""

_LEAST_GROUP = 3
"""Fewer parameters are not worth a build for all of them at once."""

_TABLE = View(
    "what a step changes",
    (
        Column("name", "name", "parameter.name", kind="name"),
        Column("step", "step", "parameter.step"),
        Column("dead", "", "is_dead"),
        Column("moves_changed", "moves", show=percent),
        Column("score_change", "score, cp", show="{:.1f}".format),
        Column("findings"),
    ),
)


@click.command()
@with_both
@click.option(
    "--nodes",
    type=click.IntRange(1, 10_000_000),
    help="Nodes of a search; default: as far as each time control lets the engine search.",
)
@click.option("--no-bounds", is_flag=True, help="Try plus and minus alone: half the builds.")
@click.option("--only", metavar="NAMES", multiple=True, help="Probe these alone: a,b; repeatable.")
@click.option("--write", is_flag=True, help="Leave those out: write `active = false` there.")
@json_option
def probe(
    config: Config,
    nodes: int | None,
    no_bounds: bool,
    only: tuple[str, ...],
    write: bool,
    as_json: bool,
) -> int:
    """Search with each parameter at plus, minus and its bounds; no games.

    Shows what a step of each changes, and names the parameters that change nothing, that crash the
    engine, and whose bounds change no more than a step does.
    Ends with 1 if a parameter is useless: dead, failing, or one that changes nearly every move.
    Ctrl-C ends it with what was found so far.
    """
    with working("checking params.toml against the engine"):
        space = checked_space(config)
    names = {name.strip() for each in only for name in each.split(",")}
    if unknown := sorted(names - {p.name for p in space.active}):
        raise click.BadParameter(f"{unknown[0]!r} is no active parameter", param_hint="--only")
    wanted = [p for p in space.active if not only or p.name in names]
    openings = _openings(config)
    with temporary_delivery(config, space) as delivery:
        prober = Prober(space, delivery, config.game_settings, openings, nodes)
        with working("building the engine and searching with its start values"):
            start, reproducible = prober.start()
        searched = " and ".join(limit.go.decode().strip() for limit in prober.limits)
        if prober.against_nodes:
            echo(
                f"warning: `go nodes` is no limit for the engine ({prober.against_nodes}); "
                "it searches by depth instead",
                err=True,
            )
        if not reproducible:
            echo(
                "warning: the same engine finds something else when asked twice, because of the "
                "clock, of several threads (set Threads = 1), or of what it searched before; "
                "trust no finding below; --write writes none",
                err=True,
            )
        probed: list[Probed] = []
        with suppress(KeyboardInterrupt):
            probed.extend(_dead_groups(prober, wanted, start))
            dead = {one.parameter.name for one in probed}
            living = [parameter for parameter in wanted if parameter.name not in dead]
            with counting(f"probing {plural(len(living), 'parameter')}", len(living)) as advance:
                for n, parameter in enumerate(living, start=1):
                    echo(f"{n} of {len(living)}: {parameter.name}", err=True)
                    probed.append(prober.probed(parameter, start, bounds=not no_bounds))
                    advance(1)
    if as_json:
        told = {
            "limit": searched,
            "positions": len(prober.positions),
            "reproducible": reproducible,
            "parameters": records(_TABLE, probed),
        }
        echo_json(told)
    else:
        rows = sorted(probed, key=lambda one: -one.score_change)
        terminal().print(TextTable(_TABLE, rows))
        echo(f"{len(prober.positions)} positions, each searched by {searched}", *_told(probed))
    useless = [one.parameter.name for one in probed if one.is_useless]
    if write and useless and reproducible:
        write_keys(config.run.params, "active", dict.fromkeys(useless, False))
        echo(f"{config.run.params}: not tuned any more: {', '.join(useless)}", err=True)
    return 130 if len(probed) < len(wanted) else int(bool(useless))


def _dead_groups(prober: Prober, wanted: Sequence[Parameter], start: Tried) -> Iterator[Probed]:
    """The parameters of each group that changes nothing as a whole."""
    by_group = attrgetter("group")
    for name, members in groupby(sorted(wanted, key=by_group), by_group):
        group = list(members)
        if len(group) < _LEAST_GROUP:
            continue
        with working(f"trying the {len(group)} parameters of the group {name!r} at once"):
            dead = prober.group_if_dead(group, start)
        if dead:
            echo(
                f"the group {name!r}: all {len(group)} parameters moved at once change nothing; "
                "does the engine use them, or a network instead?",
                err=True,
            )
        yield from dead


def _openings(config: Config) -> tuple[str, ...]:
    """FENs from the whole length of the run's book."""
    openings = load(config.game_settings.book).openings
    count = min(_MOST_GAMES, len(openings))
    places = (i * len(openings) // count for i in range(count))
    return tuple(openings[place].board().fen() for place in places)


def _told(probed: Sequence[Probed]) -> Iterator[str]:
    faulty = [one for one in probed if one.findings]
    yield from (f"{one.parameter.name}: {finding}" for one in faulty for finding in one.findings)
    dead = sum(one.is_dead for one in probed)
    yield f"{plural(len(probed), 'parameter')} probed, {dead} dead, {len(faulty)} with findings"
