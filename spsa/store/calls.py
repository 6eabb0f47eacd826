"""A worker's verbs on a PostgreSQL server: each is a call of one of its `functions`."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func
from sqlalchemy.dialects.postgresql import ARRAY

from spsa.store import turns
from spsa.store.claims import ClaimDesk
from spsa.store.database import tally_from
from spsa.store.entries import BatchResult, WorkerInfo
from spsa.store.exchange import Exchanged, ExchangeDesk, Report, exchanged
from spsa.store.exchange_function import TOLD
from spsa.store.reports import Answer, ReportDesk, answer_again, told
from spsa.store.roster import FACTS, Roster
from spsa.store.rows import Claim

_ANSWERED: list[sa.ColumnClause[Any]] = [
    sa.column("outcome", sa.Text),
    sa.column("known", ARRAY(sa.Integer)),
    *(sa.column(column.name, column.type) for column in TOLD.selected_columns),
]


class CallDesk(Roster, ExchangeDesk, ClaimDesk, ReportDesk):
    """The desk of a worker that may call functions, and need not be allowed anything else."""

    def register_worker(self, info: WorkerInfo) -> int:
        """As in Roster."""
        facts = [getattr(info, fact) for fact in FACTS]
        with self._call() as connection:
            told = sa.select(func.spsa_register_worker(info.name, *facts))
            return int(connection.scalar(told) or 0)

    def touch_worker(self, worker_id: int, nps: float | None = None) -> None:
        """As in Roster."""
        with self._call() as connection:
            connection.execute(sa.select(func.spsa_touch_worker(worker_id, nps)))

    def _exchange(
        self,
        reported: Sequence[Report],
        claim_ids: Sequence[str],
        worker_id: int | None,
        lease_seconds: float,
    ) -> Exchanged:
        call: Any = func.spsa_exchange(
            sa.cast([_sent(*report) for report in reported], sa.JSON),
            sa.cast(list(claim_ids), ARRAY(sa.Text)),
            sa.cast([turns.lot_of(claim_id) for claim_id in claim_ids], ARRAY(sa.Double)),
            worker_id,
            lease_seconds,
        )
        with self._call() as connection:
            rows = connection.execute(sa.select(call.table_valued(*_ANSWERED))).all()
        answers = [
            _answer(claim, result, row)
            for (claim, result), row in zip(reported, rows, strict=False)
        ]
        return exchanged(answers, rows[len(answers) :], claim_ids, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """As in ClaimDesk."""
        if not claim_ids:
            return frozenset()
        mine = sa.cast(list(claim_ids), ARRAY(sa.Text))
        with self._call() as connection:
            return frozenset(connection.scalars(sa.select(func.spsa_renew(mine, lease_seconds))))

    def release(self, claim: Claim) -> None:
        """As in ReportDesk."""
        with self._call() as connection:
            connection.execute(sa.select(func.spsa_release(claim.batch_id, claim.claim_id)))

    def fail(self, claim: Claim, reason: str, void_games: int = 0) -> None:
        """As in ReportDesk."""
        told = func.spsa_fail(claim.batch_id, claim.claim_id, reason, void_games)
        with self._call() as connection:
            connection.execute(sa.select(told))

    def engine_bytes(self, sha256: str) -> bytes | None:
        """As in ClaimDesk."""
        with self._call() as connection:
            content: Any = connection.scalar(sa.select(func.spsa_engine_bytes(sha256)))
            return None if content is None else bytes(content)

    def work_left(self) -> bool:
        """As in ClaimDesk."""
        with self._call() as connection:
            return bool(connection.scalar(sa.select(func.spsa_work_left())))


def _sent(claim: Claim, result: BatchResult) -> dict[str, Any]:
    return {"batch_id": claim.batch_id, "claim_id": claim.claim_id, **told(result)}


def _answer(claim: Claim, result: BatchResult, row: Any) -> Answer:
    if row.outcome == "accepted":
        return "accepted"
    return answer_again(claim, result, None if row.known is None else tally_from(row.known))
