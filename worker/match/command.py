"""A match from its command line to its report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from spsa.core.game_settings import (
    MIN_NELO_APART,
    Adjudication,
    Book,
    DrawRule,
    GameSettings,
    ResignRule,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.uci_options import CHESS960
from spsa.errors import InvalidInput
from spsa.openings import builtin_book
from spsa.openings.book import BookOrder, load
from spsa.output import echo, echo_json
from spsa.protocol import BatchResult
from spsa.text import NAME_LENGTH, printable
from spsa.uci.engine import EngineSpec
from spsa.uci.spawning import EngineLimits
from worker.match.report import Match, as_json, pgn_writer, report_lines
from worker.runner.adjudication import open_tables
from worker.runner.game import Pair, VoidGame, counts
from worker.runner.loop import INTERRUPTED, JobList, interrupts
from worker.runner.pool import PairPlayed, PairVoid, Pool, tune_interpreter
from worker.settings import Settings

_PAIRS_A_LINE = 10


def run_match(first: Path, second: Path, settings: Settings, limits: EngineLimits) -> int:
    """Play a match and report it; the exit code."""
    match, began = match_of(first, second, settings), time.monotonic()
    names, control = (match.first.name, match.second.name), match.settings.time_control
    with (
        interrupts() as received,
        pgn_writer(settings.pgn, *names, control) as write,
        Pool(settings.concurrency, limits) as pool,
    ):
        tune_interpreter()
        pool.check_room(match.job(0))
        jobs = map(match.job, range(match.pairs))
        loop = JobList(jobs, pool, received, partial(_is_decided, match, write))
        loop.play()
    told = as_json(match, loop.played, time.monotonic() - began, loop.failure)
    if settings.json:
        echo_json(told, indent=2)
    else:
        echo(*report_lines(match, loop.played.tally, told))
    if received.count:
        return received.exit_code or INTERRUPTED
    return 0 if loop.failure is None else 1


def _is_decided(
    match: Match, write: Callable[[Pair], None], event: PairPlayed | PairVoid, played: BatchResult
) -> bool:
    """Write down a pair; whether the sequential test ends the match with it.

    InvalidInput: the first game did not begin, because an engine does not speak UCI or refuses an
    option.
    """
    tally = played.tally
    if isinstance(event, PairVoid):
        if not tally.pairs and not event.fault.position:
            raise _unusable(event.fault)
        echo(f"pair {event.pairing.number + 1} void: {event.fault}", err=True)
        return False
    write(event.pair)
    if tally.pairs % _PAIRS_A_LINE == 0:
        echo(f"{tally.games} of {2 * match.pairs} games: {counts(tally)}", err=True)
    return match.decided(tally)


def _unusable(fault: VoidGame) -> InvalidInput:
    remedy = "name two programs that speak UCI"
    if fault.reason == "refused option":
        remedy = "correct it, or name an engine that has it"
    return InvalidInput.of("compete", "engine", str(fault), remedy)


def match_of(first: Path, second: Path, settings: Settings) -> Match:
    """The match that the command line describes."""
    games, bounds, chess960 = settings.games, settings.sprt, settings.chess960
    if games is None:
        raise click.UsageError("a match needs --games")
    if games % 2:
        raise click.BadParameter(
            f"{games} is odd, and games are played in pairs", param_hint="--games"
        )
    if chess960 and builtin_book(settings.book) is not None:
        raise click.UsageError(
            "--chess960 needs a --book of its positions; the built-in ones have none"
        )
    if bounds is not None and not bounds[1] - bounds[0] >= MIN_NELO_APART:
        raise click.BadParameter(
            f"ELO0 has to be less than ELO1, by {MIN_NELO_APART:g} at least", param_hint="--sprt"
        )
    rules = _adjudication(settings)
    both = dict(settings.option) | ({CHESS960: "true"} if chess960 else {})
    names = [printable(path.name, NAME_LENGTH - len(" (1)")) for path in (first, second)]
    if names[0] == names[1]:
        names = [f"{name} ({number})" for number, name in enumerate(names, start=1)]
    return Match(
        first=_spec(names[0], first, both | dict(settings.option1)),
        second=_spec(names[1], second, both | dict(settings.option2)),
        pairs=games // 2,
        seed=settings.seed,
        book=load(Book(name=settings.book, plies=settings.plies, chess960=chess960)),
        order=BookOrder(settings.order),
        bounds=bounds,
        settings=GameSettings(time_control=_time_control(settings), adjudication=rules),
        tables=open_tables(rules.syzygy, settings.syzygy),
    )


def _spec(name: str, path: Path, options: Mapping[str, str]) -> EngineSpec:
    return EngineSpec(name=name, path=str(path.resolve()), options=options)


def _time_control(settings: Settings) -> TimeControl:
    """The one that is given; 0.1 s a move when none is."""
    limits = {
        TimeKind.MOVETIME: settings.movetime,
        TimeKind.NODES: settings.nodes,
        TimeKind.DEPTH: settings.depth,
    }
    found = {kind: value for kind, value in limits.items() if value is not None}
    if len(found) + (settings.tc is not None) > 1:
        raise click.UsageError("give one of --movetime, --tc, --nodes and --depth")
    if settings.tc is not None:
        return replace(settings.tc, margin=settings.margin)
    kind, value = next(iter(found.items()), (TimeKind.MOVETIME, 0.1))
    return TimeControl(kind=kind, low=value, high=value)


def _adjudication(settings: Settings) -> Adjudication:
    """The rules that the options name; with --no-adjudication only --max-moves, if given."""
    max_moves, pieces = settings.max_moves, settings.tb_pieces
    if settings.no_adjudication:
        return Adjudication(draw=None, resign=None, max_moves=max_moves)
    move_number, draw_count, draw_score = settings.draw
    resign_count, resign_score = settings.resign
    return Adjudication(
        draw=DrawRule(move_number=move_number, count=draw_count, score=draw_score),
        resign=ResignRule(count=resign_count, score=resign_score),
        max_moves=Adjudication().max_moves if max_moves is None else max_moves,
        syzygy=None if pieces is None else TablebaseRule(pieces=pieces),
    )
