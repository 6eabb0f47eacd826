"""The tables of runs: their iterations, steps, purges and events.

The columns of the first version's `spsa_iteration` keep their names and meaning, because people
query them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from spsa.core.estimates import Estimates
from spsa.core.game_settings import GameSettings
from spsa.core.stored_json import as_written, finite
from spsa.db.base import (
    GAMES,
    HALF_POINTS_AGREE,
    PAIRS,
    Base,
    Counts,
    Identity,
    Json,
    Stored,
    UtcTime,
    json_column,
    now_column,
    number_column,
    one_of,
    optional,
    partial_index,
    status_column,
    text_column,
    written_out,
)
from spsa.db.entries import Compared, Values
from spsa.lifecycle import IterationStatus, Purpose, RunStatus


def _theta(values: Any) -> Values:
    with as_written("a column of theta"):
        return finite(values)


def _game_settings_column() -> Any:
    return mapped_column(Stored(GameSettings.from_json))


class Run(Base, kw_only=True):
    """A run; theta holds the results of `applied` iterations, without what `purges` removed.

    `start_state` is what its rule knew at the start, if it began where another run was.
    """

    __tablename__ = "spsa_run"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    name: Mapped[str] = text_column(unique=True)
    status: Mapped[RunStatus] = status_column(RunStatus, RunStatus.RUNNING)
    reason: Mapped[str | None] = optional()  # why it is paused or stopped
    seed: Mapped[int] = mapped_column(sa.BigInteger)
    algorithm: Mapped[str] = text_column()
    settings: Mapped[Mapping[str, Any]] = json_column()
    space: Mapped[Mapping[str, Any]] = json_column()
    game_settings: Mapped[GameSettings] = _game_settings_column()
    source_sha256: Mapped[str | None] = optional()
    max_iterations: Mapped[int]
    start_theta: Mapped[Values] = mapped_column(Stored(_theta), default_factory=dict)
    theta: Mapped[Values] = mapped_column(Stored(_theta))  # the current values of the parameters
    theta_averaged: Mapped[Values | None] = optional(Json)  # see Estimates
    theta_averaged_sd: Mapped[Values | None] = optional(Json)
    theta_supported: Mapped[Values | None] = optional(Json)
    theta_supported_sd: Mapped[Values | None] = optional(Json)
    state: Mapped[Mapping[str, Any]] = json_column()
    start_state: Mapped[Mapping[str, Any] | None] = optional(Json)
    applied: Mapped[int] = number_column()
    master_id: Mapped[str | None] = optional()
    epoch: Mapped[int] = number_column(kind=sa.BigInteger)
    lease_expires_at: Mapped[datetime | None] = optional(UtcTime)
    builds: Mapped[Mapping[str, Any] | None] = optional(Json)  # see core.builds
    created_at: Mapped[datetime] = now_column()
    finished_at: Mapped[datetime | None] = optional(UtcTime)
    # scheduling: the highest priority first, and equal ones by their shares of the slots
    priority: Mapped[int] = number_column()
    share: Mapped[float] = number_column(1, sa.Double)
    purges: Mapped[int] = number_column()  # how many; theta is computed without their results

    __table_args__ = (
        CheckConstraint("share > 0", name="share"),
        one_of("status", RunStatus, "status"),
        CheckConstraint("applied >= 0 AND applied <= max_iterations", name="applied"),
        CheckConstraint(
            "(status IN ('finished', 'stopped')) = (finished_at IS NOT NULL)", name="finished"
        ),
    )

    @property
    def estimates(self) -> Estimates:
        return Estimates(
            averaged=self.theta_averaged,
            averaged_sd=self.theta_averaged_sd,
            supported=self.theta_supported,
            supported_sd=self.theta_supported_sd,
        )


def estimate_columns(estimates: Estimates) -> dict[str, Any]:
    """The columns of a run for these estimates."""
    return {
        f"theta_{name}": None if values is None else dict(values)
        for name, values in estimates.by_name().items()
    }


class Iteration(Counts, Base, kw_only=True):
    """An iteration.

    When it was opened, theta held the results through `opened_on`, and the run had had
    `opened_purges` purges. `compared` and `match_number` are those of a validation: the rounds of
    one match have the number of the first of them.
    """

    __tablename__ = "spsa_iteration"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"))
    iteration_number: Mapped[int]
    purpose: Mapped[Purpose] = status_column(Purpose, Purpose.TUNE)
    k: Mapped[int | None] = optional(sa.Integer)  # in the gain schedule; NULL for a validation
    opened_on: Mapped[int]
    in_flight: Mapped[int]
    a_k: Mapped[float | None] = optional(sa.Double)
    c_k: Mapped[float | None] = optional(sa.Double)
    plus_engine_path: Mapped[str] = text_column(default="")
    minus_engine_path: Mapped[str] = text_column(default="")
    plus_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_engine.sha256"))
    minus_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_engine.sha256"))
    plus_options: Mapped[Mapping[str, str]] = json_column(default_factory=dict)
    minus_options: Mapped[Mapping[str, str]] = json_column(default_factory=dict)
    game_settings: Mapped[GameSettings] = _game_settings_column()
    timelow_ms: Mapped[int] = mapped_column(default=0)
    timehigh_ms: Mapped[int] = mapped_column(default=0)
    first_pair: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    rng_seed: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    target_games: Mapped[int]
    games_played: Mapped[int] = number_column()
    purged_games: Mapped[int] = number_column()  # and not played again
    status: Mapped[IterationStatus] = status_column(IterationStatus, IterationStatus.PENDING)
    base_parameters: Mapped[Values] = json_column()
    plus_parameters: Mapped[Values] = json_column()
    minus_parameters: Mapped[Values] = json_column()
    perturbation_signs: Mapped[Mapping[str, int]] = json_column(default_factory=dict)
    # the gradient from this iteration's games alone, in Elo per step: E / (plus - minus), where
    # the divisor is at least 2 c_k; 0 for a parameter that was equal on both sides
    gradient_estimate: Mapped[Values | None] = optional(Json)
    elo_diff: Mapped[float | None] = optional(sa.Double)
    opened_by_epoch: Mapped[int] = mapped_column(sa.BigInteger, default=0)
    completed_by_epoch: Mapped[int | None] = optional(sa.BigInteger)
    created_at: Mapped[datetime] = now_column()
    completed_at: Mapped[datetime | None] = optional(UtcTime)
    opened_purges: Mapped[int] = number_column()
    requires: Mapped[str | None] = optional()  # of a worker: a pattern that `provides` is like
    # for a level of x86-64, or for a pattern like `requires`: sha256 and path of plus and minus
    variants: Mapped[Mapping[str, Any] | None] = optional(Json)
    match_number: Mapped[int | None] = optional(sa.Integer)
    compared: Mapped[Compared | None] = optional(Stored(Compared.from_json))

    __table_args__ = (
        UniqueConstraint("run_id", "iteration_number"),
        UniqueConstraint("run_id", "k"),
        one_of("status", IterationStatus, "status"),
        one_of("purpose", Purpose, "purpose"),
        CheckConstraint("(purpose = 'tune') = (k IS NOT NULL)", name="k"),
        CheckConstraint("target_games > 0 AND target_games % 2 = 0", name="whole_pairs"),
        CheckConstraint(
            f"games_played = {GAMES} AND games_played = 2 * {PAIRS}"
            f" AND games_played + purged_games <= target_games AND {HALF_POINTS_AGREE}",
            name="counts",
        ),
        CheckConstraint(
            "status <> 'complete' OR (games_played + purged_games = target_games"
            " AND completed_at IS NOT NULL)",
            name="complete",
        ),
        CheckConstraint(
            "purged_games = 0 OR (purged_games > 0 AND purged_games % 2 = 0"
            " AND status IN ('complete', 'abandoned'))",
            name="purged",
        ),
    )

    @property
    def is_background(self) -> bool:
        """Whether it is a round of a validation that is played while the run goes on."""
        return self.compared is not None and self.compared.background

    @property
    def is_played(self) -> bool:
        """Whether all its games have been reported."""
        return self.games_played + self.purged_games == self.target_games


IS_OPEN = written_out(Iteration.status, IterationStatus.PENDING, IterationStatus.IN_PROGRESS)
"""An iteration that waits to be played or is being played."""

IS_ABANDONED = written_out(Iteration.status, IterationStatus.ABANDONED)
IS_VALIDATION = written_out(Iteration.purpose, Purpose.VALIDATE)


class Step(Base, kw_only=True):
    """One row of the append-only log of steps; `epoch` is of the master that applied it."""

    __tablename__ = "spsa_step"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"))
    iteration_id: Mapped[int] = mapped_column(
        Identity, ForeignKey("spsa_iteration.id"), unique=True
    )
    k: Mapped[int]
    theta_before: Mapped[Values] = json_column()
    delta: Mapped[Values] = json_column()
    theta_after: Mapped[Values] = json_column()
    bounded: Mapped[bool]
    epoch: Mapped[int] = mapped_column(sa.BigInteger)
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (UniqueConstraint("run_id", "k"),)


class Purge(Base, kw_only=True):
    """One purge of a run: `number` counts from 1.

    Theta held the results through `applied`, and changed from `theta_before` to `theta_after`.
    """

    __tablename__ = "spsa_purge"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    run_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_run.id"))
    number: Mapped[int]
    applied: Mapped[int]
    theta_before: Mapped[Values] = json_column()
    theta_after: Mapped[Values] = json_column()
    games: Mapped[int]
    selection: Mapped[Mapping[str, Any]] = json_column()
    actor: Mapped[str] = text_column()
    reason: Mapped[str] = text_column()
    at: Mapped[datetime] = now_column()

    __table_args__ = (
        UniqueConstraint("run_id", "number"),
        CheckConstraint("number > 0 AND applied >= 0 AND games >= 0", name="numbers"),
    )


class Event(Base, kw_only=True):
    """What was changed in a run, when and by whom."""

    __tablename__ = "spsa_event"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    at: Mapped[datetime] = now_column()
    run_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_run.id"))
    kind: Mapped[str] = text_column()
    actor: Mapped[str] = text_column()
    detail: Mapped[Mapping[str, Any]] = json_column()


partial_index("ix_spsa_iteration_open", IS_OPEN, Iteration.run_id, Iteration.id)
partial_index("ix_spsa_iteration_abandoned", IS_ABANDONED, Iteration.run_id)
partial_index(
    "ix_spsa_iteration_validation", IS_VALIDATION, Iteration.run_id, Iteration.iteration_number
)
Index("ix_spsa_iteration_completed", Iteration.run_id, Iteration.completed_at)
