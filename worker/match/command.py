"""A match from its command line to its report."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from spsa.core.game_settings import (
    MAX_OPTION_LENGTH,
    MAX_SECONDS,
    MIN_NELO_APART,
    Adjudication,
    Book,
    DrawRule,
    ResignRule,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.uci_options import CHESS960
from spsa.openings import builtin_book
from spsa.openings.book import BookOrder, load
from spsa.output import echo, echo_json
from spsa.protocol import BatchResult
from spsa.text import NAME_LENGTH, is_printable, printable
from spsa.uci.engine import EngineSpec, UciTimeouts
from worker.machine import room_objection
from worker.match.games import Match, play_match
from worker.match.report import as_json, pgn_writer, report_lines
from worker.runner.adjudication import open_tables
from worker.runner.game import Conditions, Pair, counts
from worker.runner.interrupts import INTERRUPTED, interrupts
from worker.runner.pool import PairVoid, Pool, tune_interpreter
from worker.settings import engine_limits

_KINDS = {"movetime": TimeKind.MOVETIME, "nodes": TimeKind.NODES, "depth": TimeKind.DEPTH}


def run_match(first: Path, second: Path, given: Mapping[str, Any]) -> int:
    """Play a match and report it; the exit code. `given` has values by their options' names."""
    match, limits = match_of(first, second, given), engine_limits(given)
    job, slots, timeouts = match.job(0), given["concurrency"], match.conditions.timeouts
    objection = room_objection(job.slots, job.hash_mebibytes, slots, limits)
    if objection is not None:
        raise click.UsageError(objection)
    names, control = (match.first.name, match.second.name), match.conditions.time_control
    with (
        interrupts() as received,
        pgn_writer(given["pgn"], *names, control) as write,
        Pool(min(slots // job.slots, match.pairs), timeouts, limits) as pool,
    ):
        tune_interpreter()

        def on_pair(pair: Pair, count: BatchResult) -> None:
            write(pair)
            if (pairs := count.tally.pairs) % given["progress"] == 0:
                tally = counts(count.tally)
                echo(f"{2 * pairs} of {2 * match.pairs} games: {tally}", err=True)

        played = play_match(match, pool, received, on_pair=on_pair, on_void=_print_void)
    if given["as_json"]:
        echo_json(as_json(match, played), indent=2)
    else:
        echo(*report_lines(match, played))
    if played.interrupted:
        return received.exit_code or INTERRUPTED
    return 0 if played.failure is None else 1


def _print_void(event: PairVoid) -> None:
    echo(f"pair {event.pairing.number + 1} void: {event.fault}", err=True)


def match_of(first: Path, second: Path, given: Mapping[str, Any]) -> Match:
    """The match that the command line describes."""
    names, common = _engine_names(first, second), {CHESS960: "true"} if given["chess960"] else {}
    options = (given["option1"], given["option2"])
    specs = [
        EngineSpec(
            name=name,
            path=str(path.resolve()),
            options=common | _engine_options(*given["option"], *own),
        )
        for name, path, own in zip(names, (first, second), options, strict=True)
    ]
    return Match(
        first=specs[0],
        second=specs[1],
        pairs=_pairs(given["games"]),
        seed=given["seed"],
        book=load(_book(given)),
        order=BookOrder(given["order"]),
        start=given["start"] - 1,
        bounds=_sprt_bounds(given["sprt"]),
        conditions=_conditions(given),
    )


def _engine_names(first: Path, second: Path) -> tuple[str, str]:
    """Printable names of two engines: their file names, or their paths where those are equal."""
    shown = [(first.name, second.name)]
    if first.resolve() != second.resolve():
        shown.append((str(first), str(second)))
    for one, other in shown:
        names = printable(one, NAME_LENGTH), printable(other, NAME_LENGTH)
        if names[0] != names[1]:
            return names
    name = printable(first.name, NAME_LENGTH - len(" (1)"))
    return f"{name} (1)", f"{name} (2)"


def _engine_options(*texts: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; a later one overrides an earlier one."""
    found = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (equals and name):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        _refuse_unsendable(name, value)
        found[name] = value
    return found


def _refuse_unsendable(name: str, value: str) -> None:
    """Refuse what UCI cannot send: an option has one line, and a line break cannot be quoted."""
    for what in (name, value):
        if what and not is_printable(what, MAX_OPTION_LENGTH):
            raise click.BadParameter(
                f"'{printable(what, 80)}' is not a text of at most {MAX_OPTION_LENGTH} printable "
                "characters on one line",
                param_hint="--option",
            )


def _pairs(games: int | None) -> int:
    if games is None:
        raise click.UsageError("a match needs --games")
    if games % 2:
        raise click.BadParameter(
            f"{games} is odd, and games are played in pairs", param_hint="--games"
        )
    return games // 2


def _book(given: Mapping[str, Any]) -> Book:
    if given["chess960"] and builtin_book(given["book"]) is not None:
        raise click.UsageError(
            "--chess960 needs a --book of its positions; the built-in ones have none"
        )
    return Book(name=given["book"], plies=given["plies"], chess960=given["chess960"])


def _sprt_bounds(given: tuple[float, float] | None) -> tuple[float, float] | None:
    """The two hypotheses of --sprt, the smaller one first."""
    if given is not None and not given[1] - given[0] >= MIN_NELO_APART:
        raise click.BadParameter(
            f"ELO0 has to be less than ELO1, by {MIN_NELO_APART:g} at least", param_hint="--sprt"
        )
    return given


def _conditions(given: Mapping[str, Any]) -> Conditions:
    rules = _adjudication(given)
    return Conditions(
        time_control=_time_control(given),
        adjudication=rules,
        timeouts=UciTimeouts(),
        tables=None if rules.syzygy is None else open_tables(rules.syzygy, given["syzygy"]),
    )


def _time_control(given: Mapping[str, Any]) -> TimeControl:
    """The one that is given; 0.1 s a move when none is."""
    found = {kind: given[name] for name, kind in _KINDS.items() if given[name] is not None}
    if len(found) + (given["tc"] is not None) > 1:
        raise click.UsageError("give one of --movetime, --tc, --nodes and --depth")
    if given["tc"] is not None:
        return _clock(given["tc"], given["margin"])
    kind, value = next(iter(found.items()), (TimeKind.MOVETIME, 0.1))
    return TimeControl(kind=kind, low=value, high=value)


def _clock(text: str, margin: float) -> TimeControl:
    try:
        control = TimeControl.parse(text)
    except ValueError:
        control = None
    if control is None or control.kind is not TimeKind.CLOCK:
        raise click.BadParameter(
            f"{text!r} is not [MOVES/]BASE[+INC] in seconds, as in 10+0.1 or 40/60, with at least "
            f"0.001 and at most {MAX_SECONDS:g} seconds",
            param_hint="--tc",
        )
    return replace(control, margin=margin)


def _adjudication(given: Mapping[str, Any]) -> Adjudication:
    """The rules that the options name; with --no-adjudication only --max-moves, if given."""
    max_moves, pieces = given["max_moves"], given["tb_pieces"]
    if given["no_adjudication"]:
        if pieces is not None:
            raise click.UsageError("give --tb-pieces or --no-adjudication, not both")
        return Adjudication(draw=None, resign=None, max_moves=max_moves)
    move_number, draw_count, draw_score = given["draw"]
    resign_count, resign_score = given["resign"]
    return Adjudication(
        draw=DrawRule(move_number=move_number, count=draw_count, score=draw_score),
        resign=ResignRule(count=resign_count, score=resign_score),
        max_moves=Adjudication().max_moves if max_moves is None else max_moves,
        syzygy=None if pieces is None else TablebaseRule(pieces=pieces),
    )
