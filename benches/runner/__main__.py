"""`python -m benches.runner`: plays what it is asked to and prints Markdown."""

import os
import platform
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from operator import truediv
from pathlib import Path
from typing import Any

import click

from benches.runner.agreement import chi_square, identical
from benches.runner.contenders import Contender, Limit, Plan, compete, earlier, fastchess, naive
from benches.runner.delays import delays, echoes
from benches.runner.games import played
from benches.runner.matches import Outcome, folder, plan, play
from benches.runner.measuring import ContenderFailed
from benches.runner.tables import markdown, middle, percentile

LIMITS = {
    Limit("nodes", "1000"): (25, 200),
    Limit("nodes", "5000"): (6, 200),
    Limit("movetime", "0.1"): (1, 20),
    Limit("tc", "1+0.01"): (3, 40),
}
"""Pairs a slot and run, so that a run takes about 15 seconds on two cores; moves of each side."""

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n"
ECHO_PLIES = 200

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ONE = click.IntRange(min=1)
_peer = click.option("--peer", type=_FILE, help="A fastchess binary; else a python-chess loop.")
_engine = click.option("--engine", type=_FILE, default="/usr/games/stockfish", show_default=True)
_runs = click.option("--runs", type=_ONE, default=7, show_default=True, help="Of each, in turns.")
_slots = click.option("-c", "--concurrency", "slots", type=_ONE, multiple=True, default=(1, 2, 4))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """What the match runner costs, beside another."""


@main.command()
@_peer
@_engine
@_runs
@_slots
@click.option(
    "--limit",
    "limits",
    type=click.Choice([str(limit) for limit in LIMITS]),
    multiple=True,
    default=("nodes 1000", "tc 1+0.01"),
    show_default=True,
)
@click.option("--pairs", type=_ONE, help="A slot and run.  [default: by the limit]")
@click.option("--max-moves", type=_ONE, help="Of each side; then a draw.  [default: by the limit]")
@click.option("--with-naive", is_flag=True, help="The python-chess loop too, beside a peer.")
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with an earlier state of this repository, beside --peer if that is given.",
)
@click.option("--results", type=_FILE, help="A file with the marks between which the table goes.")
def speed(
    peer: Path | None,
    engine: Path,
    runs: int,
    slots: Sequence[int],
    limits: Sequence[str],
    pairs: int | None,
    max_moves: int | None,
    with_naive: bool,
    before: Path | None,
    results: Path | None,
) -> None:
    """Games an hour, CPU of the runner in 1,000 moves, memory, and losses on time.

    The ratio is that of the games an hour to those of the last runner in the same turn.

    Engines that play by time play no two games alike. Where most games are cut at --max-moves, all
    are about as long, and games an hour tell of the runner.
    """
    alone = before is not None and peer is None
    contenders = [compete()] if alone else _contenders(peer, naive_too=with_naive)
    if before is not None:
        contenders = [earlier(before.resolve()), *contenders]
    rows = []
    with folder() as place:
        for limit, (usual, most) in LIMITS.items():
            if str(limit) not in limits:
                continue
            for concurrency in slots:
                matches = plan((engine, engine), place, limit, 1, concurrency)
                matches = matches.of(
                    pairs=(pairs or usual) * concurrency, max_moves=max_moves or most
                )
                rows += _speed_rows(_in_turns(contenders, matches, runs, place), matches)
    table = markdown(SPEED_HEAD, rows)
    click.echo(table)
    if results is not None:
        _write(table, runs, results)


def _write(table: str, runs: int, results: Path) -> None:
    """Put the table between the marks of this file."""
    above, _, below = results.read_text(encoding="utf-8").split(MARK)
    told = f"{date.today()}, Python {platform.python_version()}, {os.cpu_count()} cores"
    text = f"\n{told}, medians of {runs} runs:\n\n{table}\n\n"
    results.write_text(MARK.join((above, text, below)), encoding="utf-8")


MARK = "<!-- speed -->"
"""Stands before and after the table in a file of results."""

SPEED_HEAD = (
    "limit",
    "plies a game",
    "games at a time",
    "runner",
    "games/h",
    "ratio",
    "CPU ms",
    "MiB",
    "on time lost",
)


def _speed_rows(outcomes: dict[str, list[Outcome]], matches: Plan) -> list[tuple[str, ...]]:
    rates = {name: [one.games_per_hour for one in found] for name, found in outcomes.items()}
    *_, last = rates.values()
    return [
        (
            str(matches.limit),
            middle(outcome.games.plies / outcome.games.tally.games for outcome in found),
            str(matches.concurrency),
            name,
            middle(rates[name], ",.0f"),
            middle(map(truediv, rates[name], last), ".3f"),
            middle(outcome.cpu for outcome in found),
            middle((outcome.used.memory for outcome in found), ".1f"),
            str(sum(outcome.games.time_losses for outcome in found)),
        )
        for name, found in outcomes.items()
    ]


@main.command()
@_peer
@_runs
@_slots
@click.option("--pause", type=float, multiple=True, default=(0.0, 0.1), help="Seconds a move.")
@click.option("--pairs", type=_ONE, help="A slot and run.  [default: 10, or 1 with a pause]")
@click.option("--with-naive", is_flag=True, help="The python-chess loop too, beside a peer.")
def delay(
    peer: Path | None,
    runs: int,
    slots: Sequence[int],
    pause: Sequence[float],
    pairs: int | None,
    with_naive: bool,
) -> None:
    """Microseconds from one engine's bestmove to the other engine's go."""
    rows = []
    for seconds in pause:
        for concurrency in slots:
            number = (pairs or (1 if seconds else 10)) * concurrency
            for contender in _contenders(peer, naive_too=with_naive):
                waits = [_delays(contender, seconds, number, concurrency) for _ in range(runs)]
                rows.append(_delay_row(contender.name, seconds, concurrency, waits))
    click.echo(markdown(DELAY_HEAD, rows))


DELAY_HEAD = ("engine answers after", "games at a time", "runner", "median us", "99 % us")


def _delay_row(
    name: str, seconds: float, concurrency: int, waits: list[list[float]]
) -> tuple[str, ...]:
    medians, tails = (
        middle((percentile(run, share) for run in waits), ",.0f") for share in (0.5, 0.99)
    )
    return f"{1000 * seconds:g} ms", str(concurrency), name, medians, tails


def _delays(contender: Contender, seconds: float, pairs: int, concurrency: int) -> list[float]:
    with folder() as place:
        book = place / "start.epd"
        book.write_text(START, encoding="utf-8")
        matches = Plan(
            engines=echoes(place, ECHO_PLIES, seconds),
            options=(),
            book=book,
            limit=Limit("movetime", f"{seconds + 1:g}"),
            pairs=pairs,
            concurrency=concurrency,
            max_moves=ECHO_PLIES // 2,
        )
        play(contender, matches, place / "match")
        return delays(place)


@main.command()
@_peer
@_engine
@click.option("--second", type=_FILE, help="The second engine.  [default: the same]")
@click.option("--limit", default="nodes 1000", show_default=True)
@click.option("--pairs", type=_ONE, default=1000, show_default=True)
@click.option("-c", "--concurrency", type=_ONE, default=2, show_default=True)
@click.option("--other-concurrency", type=_ONE, help="Of the other runner.  [default: the same]")
@click.option("--itself", is_flag=True, help="Beside compete itself.")
def agreement(
    peer: Path | None,
    engine: Path,
    second: Path | None,
    limit: str,
    pairs: int,
    concurrency: int,
    other_concurrency: int | None,
    itself: bool,
) -> int:
    """One match by two runners: the games that are the same, and the pentanomials' chi-square."""
    kind, value = limit.split()
    first, other = compete(), compete() if itself else _contenders(peer)[-1]
    with folder() as place:
        match = plan((engine, second or engine), place, Limit(kind, value), pairs, concurrency)
        one = play(first, match, place / "one")
        again = match.of(concurrency=other_concurrency or concurrency)
        two = play(other, again, place / "two")
        return _compared(one, two, other.name)


def _compared(one: Outcome, two: Outcome, name: str) -> int:
    same = identical(list(played(one.pgn)), list(played(two.pgn)))
    test = chi_square(one.games.tally.pentanomial, two.games.tally.pentanomial)
    for who, outcome in (("compete", one), (name, two)):
        tally = outcome.games.tally
        counts = f"+{tally.wins} -{tally.losses} ={tally.draws}"
        click.echo(f"{who}: {counts}, Ptnml(0-2) {list(tally.pentanomial)}")
    click.echo(f"same games, move for move: {same} of {one.games.tally.games}")
    click.echo(f"chi-square {test.statistic:.2f}, {test.degrees} degrees, p = {test.p:.3f}")
    return 0 if test.p > 0.01 else 1


def _contenders(peer: Path | None, *, naive_too: bool = False) -> list[Contender]:
    if peer is None:
        return [compete(), naive()]
    return [compete(), *([naive()] if naive_too else []), fastchess(peer.resolve())]


def _in_turns(
    contenders: Sequence[Contender], matches: Plan, runs: int, place: Path
) -> dict[str, list[Outcome]]:
    """The outcomes of each, all contenders playing before the first one plays again."""
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    for _ in range(runs):
        for contender in contenders:
            number = len(list(place.iterdir()))
            outcomes[contender.name].append(play(contender, matches, place / f"match{number}"))
    return outcomes


def _run() -> None:
    """Failures of a contender end in one sentence."""
    try:
        code: Any = main.main(standalone_mode=False)
    except ContenderFailed as error:
        click.echo(f"bench-runner: {error}", err=True)
        code = 1
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code)


if __name__ == "__main__":
    _run()
