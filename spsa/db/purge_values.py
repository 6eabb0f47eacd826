"""What a purge selects, what it strikes and what it leaves, as frozen values; no SQL here."""

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
    """Which results are meant: what meets everything that is said here.

    The places add up: a result of any of `iterations` or of any of `batches`. Times are of the
    report, by the database's clock: from `since` on, and before `until`.
    """

    worker: str | None = None
    host: str | None = None
    iterations: tuple[int, ...] = ()
    batches: tuple[Place, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_empty(self) -> bool:
        return not any(asdict(self).values())

    def to_json(self) -> dict[str, Any]:
        """What was said, for the record; times in ISO 8601."""
        return {name: _plain(value) for name, value in asdict(self).items() if value}


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMatch:
    """A result that counts and that a selection means; `k` is None in a validation.

    `is_open`: its iteration is still being played, so that the batch can be played again.
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
    """A result that counts no more, as it was reported; `purge` is the number of what struck it."""

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
    """What the games that an applied iteration has left say; None where none are left."""

    gradient: Values | None
    elo: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPurge:
    """A purge as it was decided on: which results, what the run was, and what it is without them.

    `judgements` has every applied iteration that loses games, by its row's id.
    """

    selection: Selection
    actor: str
    reason: str
    purges: int
    applied: int
    theta_before: Values
    theta_after: Values
    estimates: Estimates
    state: Mapping[str, Any]
    judgements: Mapping[int, PurgeVerdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """One row of the purges of a run: `number` counts from 1.

    Theta held the results through `applied`, and went from `theta_before` to `theta_after`.
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
    """How many games of a run were struck, how many of them were free to be played again.

    `emptied` applied iterations have no game left.
    """

    games: int
    played_again: int
    emptied: int
