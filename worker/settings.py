"""Values of the command line as settings of games and engines."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from spsa.core.game_settings import (
    Adjudication,
    DrawRule,
    ResignRule,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.game_settings.numbers import MAX_OPTION_LENGTH, MAX_SECONDS, MIN_NELO_APART
from spsa.text import NAME_LENGTH, is_printable, printable
from spsa.uci.spawning import EngineLimits
from worker.machine import memory, pinning_order

_MIB = 2**20
_NUMBER = r"(\d{1,9}(?:\.\d*)?|\.\d+)"
_CLOCK = re.compile(rf"(?:(\d{{1,4}})/)?{_NUMBER}(?:\+{_NUMBER})?", re.ASCII)
_MIN_MEMORY = 256 * _MIB


def time_control(
    *, movetime: float | None, tc: str | None, nodes: int | None, depth: int | None, margin: float
) -> TimeControl:
    """The one that is given; 0.1 s a move when none is."""
    given = [value for value in (movetime, tc, nodes, depth) if value is not None]
    if len(given) > 1:
        raise click.UsageError("give one of --movetime, --tc, --nodes and --depth")
    if tc is not None:
        return _clock(tc, margin)
    if nodes is not None:
        return TimeControl(kind=TimeKind.NODES, low=nodes, high=nodes)
    if depth is not None:
        return TimeControl(kind=TimeKind.DEPTH, low=depth, high=depth)
    seconds = 0.1 if movetime is None else movetime
    return TimeControl(kind=TimeKind.MOVETIME, low=seconds, high=seconds)


def adjudication(
    *,
    none: bool,
    draw: tuple[int, int, int],
    resign: tuple[int, int],
    max_moves: int | None,
    tb_pieces: int | None,
) -> Adjudication:
    """The rules that these options name, or with `none` of them --max-moves alone."""
    if none and tb_pieces is not None:
        raise click.UsageError("give --tb-pieces or --no-adjudication, not both")
    if none:
        return Adjudication(draw=None, resign=None, max_moves=max_moves)
    move_number, draw_count, draw_score = draw
    resign_count, resign_score = resign
    return Adjudication(
        draw=DrawRule(move_number=move_number, count=draw_count, score=draw_score),
        resign=ResignRule(count=resign_count, score=resign_score),
        max_moves=Adjudication().max_moves if max_moves is None else max_moves,
        syzygy=None if tb_pieces is None else TablebaseRule(pieces=tb_pieces),
    )


def sprt_bounds(given: tuple[float, float] | None) -> tuple[float, float] | None:
    """The two hypotheses of --sprt, the smaller one first."""
    if given is not None and not given[1] - given[0] >= MIN_NELO_APART:
        raise click.BadParameter(
            f"ELO0 has to be less than ELO1, by {MIN_NELO_APART:g} at least", param_hint="--sprt"
        )
    return given


def settings(*groups: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; a later group overrides an earlier one."""
    found = {}
    for text in (text for group in groups for text in group):
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        _refuse_unsendable(name.strip(), value.strip())
        found[name.strip()] = value.strip()
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


def engine_limits(given: Mapping[str, Any]) -> EngineLimits:
    """The limits of every engine, from --pin, --engine-memory and the parts of the sandbox.

    An engine gets a quarter of a slot's share of the memory by default: each slot has two engines
    that play and two that start.
    """
    pin, mebibytes = given["pin"], given["engine_memory"]
    if pin and not hasattr(os, "sched_setaffinity"):
        raise click.UsageError("--pin: this system cannot keep a process on a core")
    return EngineLimits(
        memory=_memory_share(given["concurrency"]) if mebibytes is None else mebibytes * _MIB,
        cores=pinning_order() if pin else (),
        isolation=given["isolation"],
        orphan_reaper=given["orphan_reaper"],
        folders=given["folders"],
    )


def _memory_share(slots: int) -> int | None:
    installed = memory()
    return None if installed is None else max(_MIN_MEMORY, installed // (4 * slots))


def engine_names(first: Path, second: Path) -> tuple[str, str]:
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


def _clock(text: str, margin: float) -> TimeControl:
    found = _CLOCK.fullmatch(text)
    moves, base, increment = (float(part or 0) for part in found.groups()) if found else (0, 0, 0)
    if not (found and 0 < base <= MAX_SECONDS >= increment) or (found[1] and not moves):
        raise click.BadParameter(
            f"{text!r} is not [MOVES/]BASE[+INC] in seconds, as in 10+0.1 or 40/60, with at most "
            f"{MAX_SECONDS:g} seconds each",
            param_hint="--tc",
        )
    return TimeControl(
        kind=TimeKind.CLOCK,
        low=base,
        high=base,
        increment=increment,
        margin=margin,
        moves=int(moves),
    )
