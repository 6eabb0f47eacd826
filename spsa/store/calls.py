"""A worker's verbs on a PostgreSQL server: each is a call of one of its `functions`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.exc import DBAPIError

from spsa.errors import LeaseLost, ReportConflict, TuningError
from spsa.store import turns
from spsa.store.claims import ClaimDesk, telling
from spsa.store.entries import BatchResult, WorkerInfo
from spsa.store.functions import CONFLICT, LOST
from spsa.store.reading import claim_of
from spsa.store.reports import ReportDesk, place_of, reported
from spsa.store.roster import FACTS, Roster
from spsa.store.rows import Claim

_REFUSED: dict[str, type[TuningError]] = {LOST: LeaseLost, CONFLICT: ReportConflict}
_TOLD = [sa.column(c.name, c.type) for c in telling(sa.literal(0)).selected_columns]


class CallDesk(Roster, ClaimDesk, ReportDesk):
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

    def _claim(self, claim_id: str, worker_id: int, lease_seconds: float) -> Claim | None:
        lot = turns.lot_of(claim_id)
        asked = func.spsa_claim(claim_id, worker_id, lease_seconds, lot).table_valued(*_TOLD)
        with self._call() as connection, _refusals():
            row = connection.execute(sa.select(asked)).one_or_none()
            return None if row is None else claim_of(row, lease_seconds)

    def renew(self, claim_ids: Sequence[str], lease_seconds: float) -> frozenset[str]:
        """As in ClaimDesk."""
        if not claim_ids:
            return frozenset()
        mine = sa.cast(list(claim_ids), ARRAY(sa.Text))
        with self._call() as connection:
            return frozenset(connection.scalars(sa.select(func.spsa_renew(mine, lease_seconds))))

    def report(self, claim: Claim, result: BatchResult) -> Literal["accepted", "already"]:
        """As in ReportDesk."""
        voids, results = sum(result.voids.values()), reported(result)
        results["voids"] = sa.cast(results["voids"], sa.JSON)
        told = func.spsa_report(claim.batch_id, claim.claim_id, voids, *results.values())
        with self._call() as connection, _refusals(place_of(claim)):
            answer: Any = connection.scalar(sa.select(told))
            return "accepted" if answer == "accepted" else "already"

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


@contextmanager
def _refusals(place: str = "") -> Iterator[None]:
    """What a function says no to, as the error that it means."""
    try:
        yield
    except DBAPIError as error:
        refused = _REFUSED.get(getattr(error.orig, "pgcode", None) or "")
        if refused is None:
            raise
        said = str(error.orig).splitlines()[0]
        raise refused(place + said) from None
