"""Turns rows of the tables into the values of `rows`."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from spsa.core.estimates import NOTHING_KNOWN, Estimates
from spsa.core.game_settings import GameSettings
from spsa.core.limits import LENGTHS
from spsa.core.stored_json import as_written, built, finite
from spsa.db.database import counts_of, tally_of
from spsa.db.entries import BatchResult, Compared, KeptVoid
from spsa.db.history_rows import Change
from spsa.db.purge_values import Purge, PurgedBatch, PurgeMatch
from spsa.db.rows import BatchRow, Claim, Engine, Event, Iteration, Run, Step, WorkerRow
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose, RunStatus


def run_of(row: Any) -> Run:
    """The value of a row of `spsa_run`."""
    values = _named(row, Run, without={"status", "game_settings", "estimates"})
    with as_written("a column `theta` or `start_theta`"):
        for theta in (row.theta, row.start_theta):
            finite(theta)
    return Run(
        status=RunStatus(row.status),
        game_settings=GameSettings.from_json(row.terms),
        estimates=estimates_of(row),
        **values,
    )


def iteration_of(row: Any) -> Iteration:
    """The value of a row of `spsa_iteration`."""
    return Iteration(
        tally=tally_of(row),
        status=IterationStatus(row.status),
        purpose=Purpose(row.purpose),
        compared=None if row.compared is None else Compared.from_json(row.compared),
        **_named(row, Iteration, without={"tally", "status", "purpose", "compared"}),
    )


def batch_of(row: Any) -> BatchRow:
    """The value of a row of `spsa_batch` with its iteration's number."""
    values = _named(row, BatchRow, without={"tally", "status"})
    return BatchRow(tally=tally_of(row), status=BatchStatus(row.status), **values)


def claim_of(row: Any, lease_seconds: float) -> Claim:
    """The value of a row of `spsa_claimed`."""
    return Claim(
        claim_id=row.claim_id,
        batch_id=row.id,
        run_id=row.run_id,
        run_name=row.run_name,
        run_seed=row.run_seed,
        iteration_id=row.iteration_id,
        iteration_number=row.iteration_number,
        purpose=Purpose(row.purpose),
        signature=row.signature,
        seq=row.seq,
        attempt=row.attempt,
        first_pair=row.first_pair,
        pairs=row.games // 2,
        seed=row.seed,
        plus=Engine(sha256=row.plus_sha256, path=row.plus_engine_path, options=row.plus_options),
        minus=Engine(
            sha256=row.minus_sha256, path=row.minus_engine_path, options=row.minus_options
        ),
        variants={level: _variant(row, sides) for level, sides in (row.variants or {}).items()},
        game_settings=GameSettings.from_json(row.terms),
        lease_seconds=lease_seconds,
    )


def _variant(row: Any, sides: Mapping[str, Mapping[str, str]]) -> tuple[Engine, Engine]:
    """Plus and minus for another level, with the options of the row."""
    plus, minus = sides["plus"], sides["minus"]
    return (
        Engine(sha256=plus["sha256"], path=plus["path"], options=row.plus_options),
        Engine(sha256=minus["sha256"], path=minus["path"], options=row.minus_options),
    )


def provided_text(words: Collection[str]) -> str:
    """What a worker provides, for the column `provides`: in order, each between two spaces."""
    return "".join(f" {word} " for word in sorted(set(words)))


def required_pattern(words: Collection[str]) -> str | None:
    """A pattern that `provides` is like if it has these words, as `% linux % x86-64 %`."""
    return "".join(f"% {word} " for word in sorted(set(words))) + "%" if words else None


def words_of(pattern: str | None) -> tuple[str, ...]:
    """The words of such a pattern."""
    return tuple(word for word in (pattern or "").split() if word != "%")


COSTS = (
    *("plus_nodes", "minus_nodes", "moves", "plus_time_losses", "minus_time_losses"),
    *("seconds", "think_seconds", "slot", "scale"),
)
"""The columns of a batch for what its games cost."""


def result_columns(result: BatchResult) -> dict[str, Any]:
    """The columns of a batch for its result; void games are added to earlier ones."""
    return {
        **counts_of(result.tally),
        "void_games": sum(result.voids.values()),
        "voids": json.dumps(dict(result.voids)),
        "void_log": void_log(result.kept_voids),
        **{name: getattr(result, name) for name in COSTS},
    }


def void_log(kept: Sequence[KeptVoid]) -> str | None:
    """As many of these as fit their column, as JSON; None for none."""
    most = LENGTHS["spsa_batch"]["void_log"][1]
    texts = (json.dumps([asdict(one) for one in kept[:n]]) for n in range(len(kept), 0, -1))
    return next((text for text in texts if len(text) <= most), None)


def kept_voids_of(log: Any) -> Iterator[KeptVoid]:
    """What a worker has sent as `void_log`; a worker may send anything, so the rest is left out."""
    for one in log if isinstance(log, list) else ():
        try:
            yield built(KeptVoid, one)
        except (TypeError, AttributeError):  # other fields, or no object at all
            continue


def step_of(row: Any) -> Step:
    """The value of a row of `spsa_step`."""
    return Step(**_named(row, Step))


def change_of(row: Any) -> Change:
    """The value of a row of `spsa_change`."""
    return Change(**_named(row, Change))


def event_of(row: Any) -> Event:
    """The value of a row of `spsa_event`."""
    return Event(**_named(row, Event))


def match_of(row: Any) -> PurgeMatch:
    """The value of a row of `spsa_batch` with columns of its iteration and its worker."""
    values = _named(row, PurgeMatch, without={"tally", "purpose", "is_open"})
    return PurgeMatch(
        tally=tally_of(row), purpose=Purpose(row.purpose), is_open=bool(row.is_open), **values
    )


def purged_batch_of(row: Any) -> PurgedBatch:
    """The value of a row of `spsa_struck` with its purge's number and its worker's name."""
    return PurgedBatch(tally=tally_of(row), **_named(row, PurgedBatch, without={"tally"}))


def purge_of(row: Any) -> Purge:
    """The value of a row of `spsa_purge`."""
    return Purge(**_named(row, Purge))


def worker_of(row: Any) -> WorkerRow:
    """The value of a row of `spsa_worker` with its sums and the database's `now`."""
    silence = (row.now - row.last_seen_at).total_seconds()
    values = _named(row, WorkerRow, without={"seconds_since_seen", "provides"})
    words = tuple((row.provides or "").split())
    return WorkerRow(seconds_since_seen=max(0.0, silence), provides=words, **values)


def _named(row: Any, kind: Any, without: frozenset[str] | set[str] = frozenset()) -> dict[str, Any]:
    """The columns that are named like the fields of a value."""
    return {name: getattr(row, name) for name in kind.__dataclass_fields__ if name not in without}


def columns_of(estimates: Estimates) -> dict[str, Any]:
    """The columns of a row of `spsa_run` for these estimates."""
    return {
        f"theta_{name}": None if values is None else dict(values)
        for name, values in estimates.by_name().items()
    }


def estimates_of(row: Any) -> Estimates:
    """The estimates in a row of `spsa_run`."""
    names = NOTHING_KNOWN.by_name()
    return Estimates(**{name: getattr(row, f"theta_{name}") for name in names})
