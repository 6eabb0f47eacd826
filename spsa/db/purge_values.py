"""The values of a purge: what it selects, what it removes and what remains; no SQL here."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from spsa.core.estimates import Estimates
from spsa.core.scoring import Tally
from spsa.db.entries import Values
from spsa.lifecycle import Purpose

Place = tuple[int, int]
"""An iteration's number in its run, and a batch's sequence number in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results to purge: those that meet every condition given here.

    `iterations` and `batches` are one condition: the result is in any of them. Times are those of
    the report, by the database's clock: from `since` on, and before `until`.
    """

    worker: str | None = None
    host: str | None = None
    iterations: tuple[int, ...] = ()
    batches: tuple[Place, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The conditions that are given; times in ISO 8601."""
        return {name: _plain(value) for name, value in asdict(self).items() if value}


def _plain(value: Any) -> Any:
    """The value in the form in which JSON returns it."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMatch:
    """A counted result that a selection matches; `k` is None in a validation.

    `is_open`: its iteration is still open, so that the batch can be played again.
    """

    iteration_id: int
    iteration_number: int
    purpose: Purpose
    k: int | None
    is_open: bool
    seq: int
    worker: str
    host: str
    tally: Tally
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedBatch:
    """A purged result, as it was reported; `purge` is the number of the purge."""

    purge: int
    iteration_id: int
    iteration_number: int
    seq: int
    games: int
    played_again: bool
    worker: str
    tally: Tally
    void_games: int
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeVerdict:
    """The estimates from the games that an applied iteration has left; None if it has none."""

    gradient: Values | None
    elo: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPurge:
    """A planned purge: which results, the run before it, and the run without them.

    `verdicts` has every applied iteration that loses games, by its row's id.
    """

    selection: Selection
    actor: str
    reason: str
    purges: int
    changes: int = 0
    applied: int
    theta_before: Values
    theta_after: Values
    estimates: Estimates
    state: Mapping[str, Any]
    verdicts: Mapping[int, PurgeVerdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """One purge of a run: `number` counts from 1.

    Theta held the results through `applied`, and changed from `theta_before` to `theta_after`.
    """

    number: int
    applied: int
    theta_before: Values
    theta_after: Values
    games: int
    selection: Mapping[str, Any]
    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedTotals:
    """How many games of a run were purged, and how many of them were to be played again.

    `emptied` applied iterations have no game left.
    """

    games: int
    played_again: int
    emptied: int
