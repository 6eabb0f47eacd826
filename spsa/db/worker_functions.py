"""The queries of a worker on PostgreSQL: each calls one function of the server.

The functions are in sql/worker_functions.sql. A worker's login needs only the right to call them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import func

from spsa.core.limits import COUNTS
from spsa.db.build_queries import BuildQueries, LeasedBuild, Published
from spsa.db.row_values import COSTS, words_of
from spsa.db.rows import Claim, RegisteredWorker
from spsa.db.schema import Json
from spsa.db.worker_queries import (
    CLAIMED_TYPES,
    Outcome,
    WorkerQueries,
    random_fraction,
)

_CLAIM = sa.text(
    "SELECT * FROM spsa_claim(:worker_id, :secret, :claim_id, :draw, :lease_seconds)"
).columns(**CLAIMED_TYPES)
_REPORTED = (*COUNTS, "void_games", "voids", "void_log", *COSTS)


class WorkerFunctions(WorkerQueries):
    """The queries of `WorkerQueries`, with one call and one round trip each."""

    def release(self, claim: Claim) -> None:
        """As in WorkerQueries."""
        self._scalar(func.spsa_release(claim.batch_id, claim.claim_id))

    def engine_bytes(self, sha256: str) -> bytes | None:
        """As in WorkerQueries."""
        content: Any = self._scalar(func.spsa_engine_bytes(sha256))
        return None if content is None else bytes(content)

    def work_left(self) -> list[tuple[str, tuple[str, ...]]]:
        """As in WorkerQueries."""
        with self._call() as connection:
            return [(row.run, words_of(row.requires)) for row in connection.execute(_WORK_LEFT)]

    def _register(self, facts: Mapping[str, Any], secret: str) -> tuple[int | None, str]:
        values = {**facts, "secret": secret}
        with self._call() as connection:
            row = connection.execute(_REGISTER, values).one()
            return row.worker_id, row.machine

    def _touch(self, worker: RegisteredWorker, facts: Mapping[str, Any]) -> str | None:
        known = (facts["nps"], facts["scale"])
        reason: str | None = self._scalar(func.spsa_touch_worker(worker.id, worker.secret, *known))
        return reason

    def _claim(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Any:
        values = {
            "worker_id": worker.id,
            "secret": worker.secret,
            "claim_id": claim_id,
            "draw": random_fraction(claim_id),
            "lease_seconds": lease_seconds,
        }
        with self._call() as connection:
            return connection.execute(_CLAIM, values).one_or_none()

    def _renew(self, claim_ids: Sequence[str], lease_seconds: float) -> list[str]:
        mine = sa.cast(list(claim_ids), sa.ARRAY(sa.Text))
        with self._call() as connection:
            return list(connection.scalars(sa.select(func.spsa_renew(mine, lease_seconds))))

    def _report(self, claim: Claim, columns: Mapping[str, Any]) -> Outcome:
        values = {**columns, "batch_id": claim.batch_id, "claim_id": claim.claim_id}
        with self._call() as connection:
            outcome: Outcome = connection.execute(_REPORT, values).scalar_one()
            return outcome

    def _fail(self, claim: Claim, values: Mapping[str, Any]) -> None:
        self._scalar(
            func.spsa_fail(
                claim.batch_id,
                claim.claim_id,
                values["sha256"],
                values["reason"],
                values["void_games"],
                sa.cast(sa.cast(values["void_log"], sa.Text), sa.JSON),
            )
        )

    def _scalar(self, call: Any) -> Any:
        with self._call() as connection:
            return connection.scalar(sa.select(call))


class BuildFunctions(BuildQueries):
    """The queries of `BuildQueries`, with one call and one round trip each."""

    def _renew_build(self, claim_id: str, lease_seconds: float) -> bool:
        with self._call() as connection:
            call = func.spsa_renew_build(claim_id, lease_seconds)
            return bool(connection.scalar(sa.select(call)))

    def _fail_build(self, build: LeasedBuild, reason: str | None) -> None:
        with self._call() as connection:
            connection.scalar(sa.select(func.spsa_fail_build(build.id, build.claim_id, reason)))

    def _claim_build(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Any:
        values = {"worker_id": worker.id, "secret": worker.secret}
        values |= {"claim_id": claim_id, "lease_seconds": lease_seconds}
        with self._call() as connection:
            return connection.execute(_CLAIM_BUILD, values).one_or_none()

    def _publish_build(
        self, build: LeasedBuild, facts: Mapping[str, str], plus: Published, minus: Published
    ) -> Literal["accepted", "already", "lost"]:
        values = {
            "build_id": build.id,
            "claim_id": build.claim_id,
            **facts,
            "plus": plus.content,
            "minus": minus.content,
            "plus_bench": plus.bench,
            "minus_bench": minus.bench,
        }
        with self._call() as connection:
            outcome: Literal["accepted", "already", "lost"]
            outcome = connection.execute(_PUBLISH_BUILD, values).scalar_one()
            return outcome


def _called(function: str, names: Sequence[str]) -> sa.TextClause:
    """A call with named arguments, so that their order is written in the SQL only."""
    arguments = ", ".join(f"p_{name} => :{name}" for name in names)
    return sa.text(f"SELECT * FROM {function}({arguments})")  # noqa: S608


_REGISTER = _called(
    "spsa_register_worker",
    (
        *("name", "secret", "host", "platform", "cores", "concurrency", "version", "confinement"),
        *("provides", "only_runs", "not_runs"),
    ),
)
_WORK_LEFT = sa.text("SELECT * FROM spsa_work_left()")
_REPORT = _called("spsa_report", ("batch_id", "claim_id", *_REPORTED))
_CLAIM_BUILD = _called(
    "spsa_claim_build", ("worker_id", "secret", "claim_id", "lease_seconds")
).columns(order_json=Json)
_PUBLISH_BUILD = _called(
    "spsa_publish_build",
    (
        *("build_id", "claim_id", "target", "binary_requires"),
        *("plus", "minus", "plus_bench", "minus_bench"),
    ),
)
