"""A match from its command line to its report."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Self, TextIO

import click

from spsa.core.game_settings import Book, TimeControl
from spsa.core.game_settings.options import CHESS960
from spsa.openings import builtin_book
from spsa.openings.book import BookOrder, load
from spsa.output import echo, echo_json
from spsa.text import printable
from spsa.uci.engine import EngineSpec, UciTimeouts
from spsa.uci.spawning import EngineLimits
from worker.logs import set_up
from worker.match.games import Match, play_match
from worker.match.report import as_json, report_lines
from worker.runner.adjudication import open_tables
from worker.runner.count import GameTotals
from worker.runner.game import Conditions, Pair
from worker.runner.interrupts import INTERRUPTED, interrupts
from worker.runner.pool import PairVoid, Pool, objection_to, tune_interpreter
from worker.settings import (
    adjudication,
    engine_limits,
    engine_names,
    settings,
    sprt_bounds,
    time_control,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCommand:
    """A match, and what is printed and written of it."""

    match: Match
    concurrency: int
    limits: EngineLimits
    pgn: Path | None
    as_json: bool
    progress: int

    @property
    def games_at_once(self) -> int:
        """As many as have room: a game takes a slot for each thread of an engine."""
        return max(1, min(self.concurrency // self.match.job(0).slots, self.match.pairs))

    @classmethod
    def of(cls, first: Path, second: Path, given: Mapping[str, Any]) -> Self:
        """From the values of the command line, by their options' names."""
        set_up(given["log_format"], verbose=given["verbose"])
        match, limits = _match(first, second, given), engine_limits(given)
        if (objection := objection_to(match.job(0), given["concurrency"], limits)) is not None:
            raise click.UsageError(objection)
        return cls(
            match=match,
            concurrency=given["concurrency"],
            limits=limits,
            pgn=given["pgn"],
            as_json=given["as_json"],
            progress=given["progress"],
        )


def run_match(command: MatchCommand) -> int:
    """Play the match and report it; the exit code."""
    match = command.match
    timeouts = match.conditions.timeouts
    with (
        interrupts() as received,
        pgn_writer(
            command.pgn, match.first.name, match.second.name, match.conditions.time_control
        ) as write,
        Pool(command.games_at_once, timeouts, command.limits) as pool,
    ):
        tune_interpreter()
        on_pair = _on_pair(command, write)
        played = play_match(match, pool, received, on_pair=on_pair, on_void=_print_void)
    if command.as_json:
        echo_json(as_json(match, played), indent=2)
    else:
        echo(*report_lines(match, played))
    if played.interrupted:
        return received.exit_code or INTERRUPTED
    return 0 if played.failure is None else 1


def _match(first: Path, second: Path, given: Mapping[str, Any]) -> Match:
    names, common = engine_names(first, second), {CHESS960: "true"} if given["chess960"] else {}
    return Match(
        first=_spec(names[0], first, common | settings(given["option"], given["option1"])),
        second=_spec(names[1], second, common | settings(given["option"], given["option2"])),
        pairs=_pairs(given["games"]),
        seed=given["seed"],
        book=load(_book(given)),
        order=BookOrder(given["order"]),
        start=given["start"] - 1,
        bounds=sprt_bounds(given["sprt"]),
        conditions=_conditions(given),
    )


def _book(given: Mapping[str, Any]) -> Book:
    if given["chess960"] and builtin_book(given["book"]) is not None:
        raise click.UsageError(
            "--chess960 needs a --book of its positions; the built-in ones have none"
        )
    return Book(name=given["book"], plies=given["plies"], chess960=given["chess960"])


def _pairs(games: int | None) -> int:
    if games is None:
        raise click.UsageError("a match needs --games")
    if games % 2:
        raise click.BadParameter(
            f"{games} is odd, and games are played in pairs", param_hint="--games"
        )
    return games // 2


def _conditions(given: Mapping[str, Any]) -> Conditions:
    limits = {name: given[name] for name in ("movetime", "tc", "nodes", "depth", "margin")}
    named = {name: given[name] for name in ("draw", "resign", "max_moves", "tb_pieces")}
    rules = adjudication(none=given["no_adjudication"], **named)
    return Conditions(
        time_control=time_control(**limits),
        adjudication=rules,
        timeouts=UciTimeouts(),
        tables=None if rules.syzygy is None else open_tables(rules.syzygy, given["syzygy"]),
    )


def _spec(name: str, path: Path, options: Mapping[str, str]) -> EngineSpec:
    return EngineSpec(name=name, path=str(path.resolve()), options=options)


@contextmanager
def pgn_writer(
    path: Path | None, plus: str, minus: str, time_control: TimeControl
) -> Iterator[Callable[[Pair], None]]:
    """Appends each pair to the file as soon as it is over; does nothing where no file is named.

    `plus` and `minus` are the names of the engines.
    """
    if path is None:
        yield lambda pair: None
        return
    # Imported late: chess.pgn brings asyncio, and few matches write PGN.
    from worker.match.pgn import PgnFormat

    pgn = PgnFormat(
        plus=plus, minus=minus, time_control=time_control, date=f"{date.today():%Y.%m.%d}"
    )
    with _opened(path) as file:
        yield lambda pair: print(pgn.pair(pair), end="", file=file, flush=True)


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(
            f"'{printable(str(path), 80)}': {error.strerror}", param_hint="--pgn"
        ) from None


def _on_pair(
    command: MatchCommand, write: Callable[[Pair], None]
) -> Callable[[Pair, GameTotals], None]:
    def on_pair(pair: Pair, count: GameTotals) -> None:
        write(pair)
        pairs = count.tally.pairs
        if pairs % command.progress == 0:
            echo(f"{2 * pairs} of {2 * command.match.pairs} games: {count}", err=True)

    return on_pair


def _print_void(event: PairVoid) -> None:
    echo(f"pair {event.pairing.number + 1} void: {event.detail}", err=True)
