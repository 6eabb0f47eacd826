"""How a worker's claim finds a batch: which run is served, which iteration, which batch of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Any

import sqlalchemy as sa

from spsa.core.game_settings import GameSettings
from spsa.core.json_values import to_json
from spsa.db.statements import execute
from spsa.errors import IllegalTransition, LeaseLost, TooManyRequests
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose
from spsa.protocol import Claim, ClaimRequest, Engine, Failure


def not_registered(worker_id: int) -> IllegalTransition:
    return IllegalTransition(f"worker {worker_id} is not registered")


def leased(connection: sa.Connection, request: ClaimRequest) -> dict[str, Any] | None:
    """Lease the first free batch of the iterations in their order."""
    rows = execute(connection, "claim.iterations", worker_id=request.worker_id).all()
    if not rows:
        raise not_registered(request.worker_id)
    if rows[0].held >= 2 * rows[0].concurrency + 2:
        if (again := claimed_before(connection, request)) is not None:
            return again
        raise TooManyRequests(f"worker {request.worker_id} holds {rows[0].held} batches already")
    for row in _in_order(connection, [row for row in rows if row.id is not None], request):
        for statement in ["claim.tried"] * bool(row.has_tried) + ["claim"]:
            found = _lease(connection, row, statement, request)
            if found is not None:
                return found
    return None


def _in_order(
    connection: sa.Connection, rows: Sequence[Any], request: ClaimRequest
) -> Iterator[Any]:
    """The iterations by priority, and those of equal priority in the order in which runs are drawn.

    A run whose batches this machine may not have is drawn like the others, and the next draw is
    among the rest.
    """
    chance, slots = Random(request.claim_id), None
    for _, level in groupby(rows, key=lambda row: row.priority):
        runs: dict[int, list[Any]] = {}
        for row in level:
            runs.setdefault(row.run_id, []).append(row)
        while runs:
            if slots is None and len(runs) > 1:
                slots = {row.run_id: row.slots for row in execute(connection, "claim.slots")}
            shares = {run: own[0].share for run, own in runs.items()}
            yield from runs.pop(next_run(shares, slots or {}, chance.random()))


def next_run(shares: Mapping[int, float], slots: Mapping[int, int], draw: float) -> int:
    """The run that is served next, drawn at random among those with free batches.

    A run is entitled to its share of all slots in use; its deficit is its weight in the draw, so
    that no run starves if there are fewer slots than runs.

    Args:
        shares: of the runs.
        slots: that each of them uses now.
        draw: a number in [0, 1).
    """
    used = sum(slots.get(run, 0) for run in shares)
    whole = sum(shares.values())
    reached = 0.0
    deficits = {
        run: max(0.0, (1 + used) * share / whole - slots.get(run, 0))
        for run, share in sorted(shares.items())
    }
    goal = draw * sum(deficits.values())
    for run, deficit in deficits.items():
        reached += deficit
        if reached > goal:
            return run
    return max(shares)


def _lease(
    connection: sa.Connection, iteration: Any, statement: str, request: ClaimRequest
) -> dict[str, Any] | None:
    wanted = {**to_json(request), "iteration_id": iteration.id}
    row = execute(connection, statement, **wanted).one_or_none()
    if row is None:
        return None
    if row.expired_worker_id is not None:
        record_failure(connection, {"batch_id": row.id, "worker_id": row.expired_worker_id}, None)
    if iteration.status == IterationStatus.PENDING:
        execute(connection, "claim.begin", iteration_id=iteration.id)
    return {**row._mapping, "iteration_id": iteration.id}


def record_failure(
    connection: sa.Connection, held: Mapping[str, Any], failure: Failure | None
) -> None:
    """Record that a worker's machine failed a batch, or without a failure, lost its lease."""
    values = {
        "failures": int(failure is not None),
        "sha256": failure and failure.sha256,
        "reason": failure and failure.reason,
    }
    place = {name: held[name] for name in ("batch_id", "worker_id")}
    execute(connection, "fail.machine", **place, **values)


def claimed_before(connection: sa.Connection, request: ClaimRequest) -> dict[str, Any] | None:
    """The batch of a claim that was answered before, but the answer was lost."""
    row = execute(connection, "claim.again", claim_id=request.claim_id).one_or_none()
    if row is None:
        return None
    if row.status != BatchStatus.LEASED or row.worker_id != request.worker_id:
        raise LeaseLost(
            f"claim {request.claim_id} was already reported; new work needs a new claim"
        )
    return dict(row._mapping)


def shared(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What all claims of an iteration have in common."""
    settings, variants, plus, minus = map(
        _decoded,
        (row["game_settings"], row["variants"], row["plus_options"], row["minus_options"]),
    )
    sides = [
        Engine(sha256=row[f"{side}_sha256"], path=row[f"{side}_engine_path"], options=options)
        for side, options in (("plus", plus), ("minus", minus))
    ]
    names = ("run_id", "run_name", "run_seed", "iteration_number")
    return {
        **{name: row[name] for name in names},
        "purpose": Purpose(row["purpose"]),
        "plus": sides[0],
        "minus": sides[1],
        "variants": {
            kind: (_variant(found["plus"], plus), _variant(found["minus"], minus))
            for kind, found in (variants or {}).items()
        },
        "game_settings": GameSettings.from_json(settings),
    }


def _decoded(value: Any) -> Any:
    """The value of a JSON column, which SQLite returns as text."""
    return json.loads(value) if isinstance(value, str) else value


def _variant(side: Mapping[str, str], options: Mapping[str, str]) -> Engine:
    return Engine(sha256=side["sha256"], path=side["path"], options=options)


_NAMED = (
    *("run_id", "run_name", "run_seed", "iteration_id", "iteration_number", "purpose"),
    *("seq", "attempt", "first_pair", "seed", "plus", "minus", "variants"),
)


def claim_of(row: Mapping[str, Any], request: ClaimRequest) -> Claim:
    return Claim(
        claim_id=request.claim_id,
        worker_id=request.worker_id,
        batch_id=row["id"],
        pairs=row["games"] // 2,
        game_settings=row["game_settings"],
        lease_seconds=request.lease_seconds,
        **{name: row[name] for name in _NAMED},
    )
