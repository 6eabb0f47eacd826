"""Writes a new iteration: its engines, its batches and the seeds of its games."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy import insert, select, update

from spsa.core.game_settings import GameSettings, TimeKind
from spsa.core.seeds import derived_seed
from spsa.core.words import required_pattern
from spsa.db.batch_tables import Batch
from spsa.db.database import add, rows
from spsa.db.engine_tables import EngineFile
from spsa.db.entries import NewIteration
from spsa.db.run_status import write_event
from spsa.db.run_tables import IS_VALIDATION, Event, Iteration, Run
from spsa.lifecycle import Purpose

REFUSED = "level_refused"
"""The kind of the event that binaries for a level of x86-64 are not used."""


def number_of(connection: sa.Connection, run_id: int, k: int | None) -> int | None:
    """The number of the run's iteration k, if it was opened."""
    if k is None:
        return None
    number = select(Iteration.iteration_number)
    found: int | None = connection.scalar(
        number.where(Iteration.run_id == run_id, Iteration.k == k)
    )
    return found


def _write_engine(connection: sa.Connection, engine: EngineFile) -> None:
    """Insert an engine's row, or update where its bytes are."""
    location = {"path": engine.path, "content": engine.content}
    own = EngineFile.sha256 == engine.sha256
    known = update(EngineFile).where(own).values(location).returning(EngineFile.sha256)
    if connection.scalar(known) is None:
        add(connection, engine)


def open_one(connection: sa.Connection, run: Run, epoch: int, new: NewIteration) -> int:
    """Write the next iteration of a run with its engines and all its batches; its number."""
    for engine in (new.plus, new.minus, *chain.from_iterable(new.variants.values())):
        _write_engine(connection, engine)
    _write_refused(connection, run.id, new.refused)
    return _insert(connection, run, epoch, new)


def _write_refused(connection: sa.Connection, run_id: int, refused: Mapping[str, str]) -> None:
    """Write an event for each level that is refused, the first time."""
    if not refused:
        return
    told = select(Event.detail).where(Event.run_id == run_id, Event.kind == REFUSED)
    known = {detail["level"] for detail in connection.scalars(told)}
    for level, reason in refused.items():
        if level not in known:
            write_event(connection, run_id, REFUSED, "master", {"level": level, "reason": reason})


def joined(connection: sa.Connection, run_id: int, new: NewIteration) -> NewIteration:
    """A round of a background validation with the number of its match, if that has begun."""
    begun = select(Iteration).where(
        Iteration.run_id == run_id,
        IS_VALIDATION,
        Iteration.opened_on == new.opened_on,
        Iteration.match_number == Iteration.iteration_number,
    )
    found = [
        one.iteration_number
        for one in rows(connection, begun.order_by(Iteration.iteration_number))
        if _is_same_match(one, new)
    ]
    return replace(new, match_number=found[0] if found else None)


def _is_same_match(one: Iteration, new: NewIteration) -> bool:
    sides = (dict(new.plus_parameters), dict(new.minus_parameters))
    found = (one.plus_parameters, one.minus_parameters, one.compared, one.game_settings)
    return found == (*sides, new.compared, new.game_settings)


def _insert(connection: sa.Connection, run: Run, epoch: int, new: NewIteration) -> int:
    """Write the next iteration of a run with all its batches; returns its number.

    Pairs are numbered through the whole run, so that no opening repeats before the book is used up.
    Each batch has its own seed, so what is played is fixed before a worker claims it.
    """
    number, first_pair = _place(connection, run.id)
    values = {
        "run_id": run.id,
        "iteration_number": number,
        "first_pair": first_pair,
        "rng_seed": derived_seed(run.seed, "iteration", number),
        "opened_by_epoch": epoch,
        "plus_engine_path": new.plus.path,
        "minus_engine_path": new.minus.path,
        "plus_sha256": new.plus.sha256,
        "minus_sha256": new.minus.sha256,
        "match_number": _match_number(new, number),
        "requires": required_pattern(new.requires),
        "variants": {level: _located(*sides) for level, sides in new.variants.items()} or None,
        **_milliseconds(new.game_settings),
        **{name: getattr(new, name) for name in _COPIED},
    }
    iteration_id = connection.scalar(insert(Iteration).values(values).returning(Iteration.id))
    connection.execute(
        insert(Batch), _batch_rows(int(iteration_id or 0), run.seed, number, first_pair, new)
    )
    return number


def _place(connection: sa.Connection, run_id: int) -> tuple[int, int]:
    """The number of the next iteration, and that of its first pair."""
    last = connection.execute(
        select(Iteration.iteration_number, Iteration.first_pair, Iteration.target_games)
        .where(Iteration.run_id == run_id)
        .order_by(Iteration.iteration_number.desc())
        .limit(1)
    ).one_or_none()
    if last is None:
        return 1, 0
    return last.iteration_number + 1, last.first_pair + last.target_games // 2


def _located(plus: EngineFile, minus: EngineFile) -> dict[str, dict[str, str]]:
    """Two binaries in the column `variants`."""
    sides = {"plus": plus, "minus": minus}
    return {name: {"sha256": side.sha256, "path": side.path} for name, side in sides.items()}


_COPIED = (
    *("purpose", "k", "opened_on", "in_flight", "a_k", "c_k", "plus_options", "minus_options"),
    *("target_games", "base_parameters", "plus_parameters", "minus_parameters"),
    *("perturbation_signs", "opened_purges", "game_settings", "compared"),
)


def _match_number(new: NewIteration, number: int) -> int | None:
    """A validation that goes on with no match begins one."""
    return None if new.purpose is Purpose.TUNE else new.match_number or number


def _milliseconds(game_settings: GameSettings) -> dict[str, int]:
    """The columns of the time range; 0 where the limit is not a time."""
    control = game_settings.time_control
    timed = control.kind in (TimeKind.MOVETIME, TimeKind.CLOCK)
    low, high = (control.low, control.high) if timed else (0, 0)
    return {"timelow_ms": round(1000 * low), "timehigh_ms": round(1000 * high)}


def _batch_rows(
    iteration_id: int, run_seed: int, number: int, first_pair: int, new: NewIteration
) -> list[dict[str, Any]]:
    starts = accumulate(new.batches, initial=0)
    return [
        {
            "iteration_id": iteration_id,
            "seq": seq,
            "games": games,
            "first_pair": first_pair + start // 2,
            "seed": derived_seed(run_seed, "batch", number, seq),
            "max_attempts": new.max_attempts,
        }
        for seq, (games, start) in enumerate(zip(new.batches, starts, strict=False))
    ]
