"""A claim ends, in one of three ways: its games count, or it is given back, or it cannot be played.

Only the holder of a batch's present claim may end it. As with claims, every step is a statement of
its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.errors import IllegalTransition, LeaseLost, ReportConflict
from spsa.lifecycle import BATCH, BatchStatus, IterationStatus
from spsa.schema import batches, iterations, seconds_from_now
from spsa.scoring import Tally
from spsa.store.claims import IS_BEING_PLAYED, Given, given
from spsa.store.database import COUNTS, Database, counts_of, may_become, tally_of
from spsa.store.entries import BatchResult
from spsa.store.halting import lock_run, pause_for_failure
from spsa.store.rows import Claim

Answer = Literal["accepted", "already"] | LeaseLost | ReportConflict
"""What becomes of a report; the errors are values here, because others may go with it."""

REPORTED = (
    *COUNTS,
    *("voids", "plus_nodes", "minus_nodes", "moves", "plus_time_losses", "minus_time_losses"),
    *("seconds", "think_seconds", "slot"),
)
"""The columns of a batch that a report fills; `void_games` it adds to."""


def settling(
    batch_id: Given, claim_id: Given, reported: Mapping[str, Any], void_games: Given
) -> sa.Update:
    """Write a result into its batch; answers with the iteration it counts for."""
    return (
        _own(batch_id, claim_id, BatchStatus.DONE)
        .where(IS_BEING_PLAYED)
        .values(
            status=BatchStatus.DONE,
            void_games=batches.c.void_games + void_games,
            reported_at=seconds_from_now(0),
            **reported,
        )
        .returning(batches.c.iteration_id)
    )


def counting(iteration_id: Given, counts: Mapping[str, Any], void_games: Given) -> sa.Update:
    """Add a result to its iteration; answers with nothing where that has been abandoned."""
    return (
        update(iterations)
        .where(
            iterations.c.id == iteration_id,
            iterations.c.status == IterationStatus.IN_PROGRESS,
        )
        .values(
            games_played=iterations.c.games_played
            + (counts["plus_wins"] + counts["minus_wins"] + counts["draws"]),
            void_games=iterations.c.void_games + void_games,
            **{name: iterations.c[name] + n for name, n in counts.items()},
        )
        .returning(iterations.c.id)
    )


def reported_by(batch_id: Given, claim_id: Given) -> sa.Select[Any]:
    """The counts of a batch, if it was this claim that reported it."""
    return select(*(batches.c[name] for name in COUNTS)).where(
        batches.c.id == batch_id,
        batches.c.claim_id == claim_id,
        batches.c.status == BatchStatus.DONE,
    )


def releasing(batch_id: Given, claim_id: Given) -> sa.Update:
    """Hand a batch back as it was."""
    return _own(batch_id, claim_id, BatchStatus.READY).values(
        status=BatchStatus.READY,
        claim_id=None,
        attempt=batches.c.attempt - 1,
        lease_expires_at=None,
    )


def failing(batch_id: Given, claim_id: Given, reason: Given, void_games: Given) -> sa.Update:
    """Hand a batch back as impossible; answers with what has become of it."""
    exhausted = batches.c.attempt >= batches.c.max_attempts
    failed, free = sa.literal(BatchStatus.FAILED, sa.Text), sa.literal(BatchStatus.READY, sa.Text)
    return (
        _own(batch_id, claim_id, BatchStatus.FAILED)
        .values(
            status=sa.case((exhausted, failed), else_=free),
            claim_id=None,
            lease_expires_at=None,
            last_error=reason,
            void_games=batches.c.void_games + void_games,
        )
        .returning(batches.c.status, batches.c.iteration_id, batches.c.seq)
    )


def adding_voids(iteration_id: Given, void_games: Given) -> sa.Update:
    """Count the void games of a batch that came to nothing."""
    return (
        update(iterations)
        .where(iterations.c.id == iteration_id)
        .values(void_games=iterations.c.void_games + void_games)
    )


def _own(batch_id: Given, claim_id: Given, to: BatchStatus) -> sa.Update:
    # so spelled that PostgreSQL does not read all of the index of leased batches for it, which it
    # takes for empty: it looks at the one batch
    status = batches.c.status.concat(sa.literal_column("''", sa.Text))
    return update(batches).where(
        batches.c.id == batch_id,
        batches.c.claim_id == claim_id,
        status == BatchStatus.LEASED,  # what was reported is a purge's to hand out again
        may_become(status, BATCH, to),
    )


_BATCH_ID, _CLAIM_ID = given("batch_id", sa.BigInteger), given("claim_id", sa.Text)
_VOID_GAMES = given("void_games", sa.Integer)
_RESULTS = {name: given(name, batches.c[name].type) for name in REPORTED}
_SETTLING = settling(_BATCH_ID, _CLAIM_ID, _RESULTS, _VOID_GAMES)
_COUNTING = counting(
    given("iteration_id", sa.BigInteger), {name: _RESULTS[name] for name in COUNTS}, _VOID_GAMES
)


class ReportDesk(Database):
    """Where a worker says what became of its claim."""

    def release(self, claim: Claim) -> None:
        """Give a batch back unplayed; the attempt does not count. Nothing if it is not held."""
        with self._write() as connection:
            connection.execute(releasing(*_names(claim)))

    def fail(self, claim: Claim, reason: str, void_games: int = 0) -> None:
        """Give a batch back as impossible to play, with the reason.

        Out of attempts it is `failed` for good and its run is paused with the reason, in the same
        transaction: an engine that cannot play is never tuned silently.
        """
        voids = sa.literal(void_games)
        with self._write() as connection:
            lock_run(connection, claim.run_id)
            failed = failing(*_names(claim), sa.literal(reason), voids)
            row = connection.execute(failed).one_or_none()
            if row is None:
                return
            connection.execute(adding_voids(sa.literal(claim.iteration_id), voids))
            if row.status == BatchStatus.FAILED:
                place = f"iteration {claim.iteration_number} batch {claim.seq}"
                pause_for_failure(connection, claim.run_id, "worker", f"{place}: {reason}")


def told(result: BatchResult) -> dict[str, Any]:
    """The columns of a batch that a result fills, and the void games that it adds."""
    others = {name: getattr(result, name) for name in REPORTED if name not in (*COUNTS, "voids")}
    voids = {"voids": dict(result.voids), "void_games": sum(result.voids.values())}
    return {**counts_of(result.tally), **voids, **others}


def place_of(claim: Claim) -> str:
    """What a person calls the batch of a claim."""
    return f"iteration {claim.iteration_number} batch {claim.seq} of run {claim.run_name}"


def _names(claim: Claim) -> tuple[Given, Given]:
    return sa.literal(claim.batch_id), sa.literal(claim.claim_id)


def _given_by(claim: Claim, result: BatchResult) -> dict[str, Any]:
    return {
        "p_batch_id": claim.batch_id,
        "p_claim_id": claim.claim_id,
        **{f"p_{name}": value for name, value in told(result).items()},
    }


@dataclass(frozen=True, slots=True)
class Counted:
    """What is to be added to an iteration."""

    tally: Tally = field(default_factory=Tally)
    void_games: int = 0

    def __add__(self, result: BatchResult) -> "Counted":
        return Counted(self.tally + result.tally, self.void_games + sum(result.voids.values()))


def settle(connection: sa.Connection, claim: Claim, result: BatchResult) -> int | None:
    """Write a result into its batch, if it is this claim's; the iteration that it counts for."""
    iteration_id: int | None = connection.scalar(_SETTLING, _given_by(claim, result))
    return iteration_id


def count(connection: sa.Connection, iteration_id: int, counted: Counted) -> None:
    """Add what was settled to its iteration.

    Raises:
        IllegalTransition: it has been abandoned meanwhile; what was settled must not be kept.
    """
    numbers = counts_of(counted.tally) | {"void_games": counted.void_games}
    values = {"p_iteration_id": iteration_id} | {f"p_{name}": n for name, n in numbers.items()}
    if connection.scalar(_COUNTING, values) is None:
        raise IllegalTransition(f"iteration row {iteration_id} was abandoned meanwhile")


def known(connection: sa.Connection, claim: Claim) -> Tally | None:
    """The counts that this claim has reported before; None where it did not, and has no batch."""
    row = connection.execute(reported_by(*_names(claim))).one_or_none()
    return None if row is None else tally_of(row)


def answer_again(claim: Claim, result: BatchResult, before: Tally | None) -> Answer:
    """What is said to a report that was not settled, from what the claim had reported before."""
    place = place_of(claim)
    if before is None:
        return LeaseLost(f"{place} is no longer held by claim {claim.claim_id}, or abandoned")
    if before != result.tally:
        return ReportConflict(f"{place}: reported as {before}, and now as {result.tally}")
    return "already"
