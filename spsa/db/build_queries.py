"""Engines that workers build: a master orders them, a worker leases the order and publishes them.

An order is named by a hash of all its inputs, so it serves every run and master that needs these
engines. It moves no run, and a repeated call changes nothing.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy import and_, func, or_, select, update

from spsa.core import limits
from spsa.db.database import Database
from spsa.db.entries import NewEngine
from spsa.db.exhausted_batches import ACTIVE_SECONDS
from spsa.db.row_values import provided_text, required_pattern, words_of
from spsa.db.rows import RegisteredWorker
from spsa.db.schema import (
    Json,
    build_failures,
    builds,
    engines,
    files,
    seconds_from_now,
    set_aside,
    workers,
)
from spsa.db.worker_queries import machine_of, statement
from spsa.errors import IllegalTransition, OutOfRange
from spsa.lifecycle import BatchStatus

WANTED_SECONDS = 60
"""An order that no master asks about for so long is leased to no worker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBuild:
    """An order; a worker that provides the words of `requires` may carry it out."""

    key: str
    requires: Sequence[str]
    archive_sha256: str
    recipe: Mapping[str, Any]
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedBuild:
    """What has become of an order: `engines` are plus and minus, without their bytes, when they are
    published, and require the words of `requires`.

    `failures` are machines and why they could not build, `builders` is how many active workers may
    still do so, or are doing so.
    """

    key: str
    engines: tuple[NewEngine, NewEngine] | None
    requires: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]
    builders: int


@dataclass(frozen=True, slots=True)
class LeasedBuild:
    """An order that a worker carries out."""

    id: int
    claim_id: str
    recipe: Mapping[str, Any]
    archive_sha256: str


class BuildOrderQueries(Database):
    """What a master asks for."""

    def active_machines(self) -> list[tuple[tuple[str, ...], int]]:
        """The words and the slots of every worker that was seen recently."""
        statement = select(workers.c.provides, workers.c.concurrency).where(_is_active())
        with self._read() as connection:
            rows = connection.execute(statement.order_by(workers.c.id))
            return [(words_of(row.provides), row.concurrency) for row in rows]

    def keep_archive(self, sha256: str, content: bytes) -> None:
        """Keep the archive of a source for the workers, unless it is there."""
        with self._write() as connection:
            known = connection.scalar(select(files.c.sha256).where(files.c.sha256 == sha256))
            if known is None:
                connection.execute(files.insert().values(sha256=sha256, bytes=content))

    def order_build(self, new: NewBuild) -> None:
        """Order two engines, also where an earlier order has failed or its binaries are deleted."""
        columns = {"recipe": dict(new.recipe), "max_attempts": new.max_attempts}
        columns |= {"wanted_until": seconds_from_now(WANTED_SECONDS)}
        with self._write() as connection:
            row = connection.execute(_locked(new.key)).one_or_none()
            if row is None:
                pattern = required_pattern(new.requires)
                names = {"build_key": new.key, "requires": pattern}
                archive = {"archive_sha256": new.archive_sha256}
                connection.execute(builds.insert().values(**names, **archive, **columns))
            elif _is_over(connection, row):
                fresh = dict.fromkeys(("claim_id", "lease_expires_at", *_RESULT))
                again = {"status": BatchStatus.READY, "attempt": 0, **fresh, **columns}
                connection.execute(update(builds).where(builds.c.id == row.id).values(again))
                failed = build_failures.c.build_id == row.id
                connection.execute(build_failures.delete().where(failed))

    def ordered_builds(self, keys: Sequence[str]) -> list[OrderedBuild]:
        """What has become of these orders, which are wanted for another while."""
        mine = builds.c.build_key.in_(keys)
        with self._write() as connection:
            wanted = {"wanted_until": seconds_from_now(WANTED_SECONDS)}
            connection.execute(update(builds).where(mine).values(wanted))
            rows = connection.execute(select(builds).where(mine).order_by(builds.c.id)).all()
            return [_ordered(connection, row) for row in rows]


_RESULT = ("plus_sha256", "minus_sha256", "plus_bench", "minus_bench", "binary_requires")


def _is_active() -> sa.ColumnElement[bool]:
    return workers.c.last_seen_at > seconds_from_now(-ACTIVE_SECONDS)


def _locked(key: str) -> sa.Select[Any]:
    return select(builds).where(builds.c.build_key == key).with_for_update()


def _is_over(connection: sa.Connection, row: Any) -> bool:
    """Whether an order has failed, or its binaries are not in the database any more."""
    if row.status == BatchStatus.DONE:
        return None in _engines(connection, row)
    return not _builders(connection, row)


def _ordered(connection: sa.Connection, row: Any) -> OrderedBuild:
    found = _engines(connection, row) if row.status == BatchStatus.DONE else (None, None)
    plus, minus = found
    failed = select(build_failures.c.machine, build_failures.c.reason)
    failed = failed.where(build_failures.c.build_id == row.id).order_by(build_failures.c.machine)
    return OrderedBuild(
        key=row.build_key,
        engines=(plus, minus) if plus is not None and minus is not None else None,
        requires=words_of(row.binary_requires),
        failures=tuple((one.machine, one.reason) for one in connection.execute(failed)),
        builders=_builders(connection, row),
    )


def _engines(connection: sa.Connection, row: Any) -> tuple[NewEngine | None, NewEngine | None]:
    """Plus and minus of an order, with what its worker says of their bench."""
    plus = _engine(connection, row.plus_sha256, row.plus_bench)
    return plus, _engine(connection, row.minus_sha256, row.minus_bench)


def _engine(connection: sa.Connection, sha256: str, bench: int | None) -> NewEngine | None:
    columns = (engines.c.build_key, engines.c.target, engines.c.size, engines.c.path)
    kept = and_(engines.c.sha256 == sha256, engines.c.bytes.is_not(None))
    row = connection.execute(select(*columns).where(kept)).one_or_none()
    return None if row is None else NewEngine(sha256=sha256, bench=bench, **row._mapping)


def _builders(connection: sa.Connection, row: Any) -> int:
    """How many active workers may carry out an order, or do so now."""
    failed = select(build_failures.c.machine).where(build_failures.c.build_id == row.id)
    out = select(set_aside.c.machine).where(set_aside.c.sha256.is_(None))
    may = and_(
        sa.literal(row.attempt < row.max_attempts),
        workers.c.provides.like(row.requires),
        workers.c.host.not_in(failed),
        workers.c.host.not_in(out),
    )
    leased = select(builds.c.worker_id).where(
        builds.c.id == row.id,
        builds.c.status == BatchStatus.LEASED,
        builds.c.lease_expires_at >= seconds_from_now(0),
    )
    counted = select(func.count()).select_from(workers)
    found = counted.where(or_(and_(_is_active(), may), workers.c.id.in_(leased)))
    return connection.scalar(found) or 0


class BuildQueries(Database):
    """What a worker that builds asks for, as statements for SQLite."""

    def claim_build(
        self, claim_id: str, worker: RegisteredWorker, lease_seconds: float
    ) -> LeasedBuild | None:
        """Lease an order that this machine may carry out; None if there is none.

        A claim that already has one gets the same one. IllegalTransition: this worker is not
        registered.
        """
        limits.check_lease(lease_seconds)
        limits.check_values("spsa_build", {"claim_id": claim_id})
        row = self._claim_build(claim_id, worker, lease_seconds)
        if row is None:
            return None
        return LeasedBuild(row.build_id, claim_id, row.order_json, row.archive)

    def renew_build(self, build: LeasedBuild, lease_seconds: float) -> bool:
        """Renew the lease; False if it is lost, or no master wants the engines any more."""
        limits.check_lease(lease_seconds)
        return self._renew_build(build.claim_id, lease_seconds)

    def publish_build(
        self,
        build: LeasedBuild,
        target: str,
        requires: Collection[str],
        plus: "Published",
        minus: "Published",
    ) -> Literal["accepted", "already", "lost"]:
        """Publish both engines; only the holder of the lease can. The database hashes them.

        Raises:
            OutOfRange: an engine or a text is too long.
        """
        _check_published(target, plus, minus)
        facts = {"target": target, "binary_requires": provided_text(requires)}
        limits.check_values("spsa_build", facts)
        return self._publish_build(build, facts, plus, minus)

    def fail_build(self, build: LeasedBuild, reason: str | None) -> None:
        """Return an order that this machine cannot carry out: it is not asked again.

        Without a reason it is handed back.
        """
        limits.check_values("spsa_build_failure", {"reason": reason})
        self._fail_build(build, reason)

    def _claim_build(self, claim_id: str, worker: RegisteredWorker, lease_seconds: float) -> Any:
        values = {"claim_id": claim_id, "worker_id": worker.id, "lease_seconds": lease_seconds}
        with self._write() as connection:
            machine = machine_of(connection, worker)
            if machine is None:
                raise IllegalTransition(f"worker {worker.id} is not registered by this machine")
            connection.execute(_CLAIM, {**values, "machine": machine})
            return connection.execute(_CLAIMED, values).one_or_none()

    def _renew_build(self, claim_id: str, lease_seconds: float) -> bool:
        values = {"claim_id": claim_id, "lease_seconds": lease_seconds}
        with self._write() as connection:
            return connection.scalar(_RENEW, values) is not None

    def _fail_build(self, build: LeasedBuild, reason: str | None) -> None:
        values = {"build_id": build.id, "claim_id": build.claim_id, "reason": reason}
        with self._write() as connection:
            worker_id = connection.scalar(_FAIL, values)
            if worker_id is not None and reason is not None:
                connection.execute(_FAIL_REASON, {**values, "worker_id": worker_id})

    def _publish_build(
        self, build: LeasedBuild, facts: Mapping[str, str], plus: "Published", minus: "Published"
    ) -> Literal["accepted", "already", "lost"]:
        mine = {"build_id": build.id, "claim_id": build.claim_id}
        with self._write() as connection:
            row = connection.execute(_STATUS, mine).one_or_none()
            if row is None or row.status != BatchStatus.LEASED:
                return "already" if row is not None and row.status == BatchStatus.DONE else "lost"
            values: dict[str, Any] = {**mine, **facts}
            for side, engine in (("plus", plus), ("minus", minus)):
                common = {"build_key": row.build_key, "size": len(engine.content), **facts}
                sha256, bench = hashlib.sha256(engine.content).hexdigest(), engine.bench
                found = {"sha256": sha256, "bench": bench, "bytes": engine.content}
                connection.execute(_ENGINE, {**common, **found})
                values |= {f"{side}_sha256": sha256, f"{side}_bench": bench}
            connection.execute(_PUBLISH, values)
            return "accepted"


@dataclass(frozen=True, slots=True)
class Published:
    """The bytes of an engine, and the nodes of its bench if it has one."""

    content: bytes
    bench: int | None


def _check_published(target: str, plus: Published, minus: Published) -> None:
    if not 1 <= len(target) <= limits.TARGET_LENGTH or not target.isprintable():
        raise OutOfRange(f"the target {target[:80]!a} is no text of 1 to {limits.TARGET_LENGTH}")
    for side in (plus, minus):
        if not 1 <= len(side.content) <= limits.ENGINE_BYTES:
            raise OutOfRange(
                f"an engine of {len(side.content)} bytes; allowed: 1 to {limits.ENGINE_BYTES}"
            )
        limits.check_values("spsa_build", {"plus_bench": side.bench})


_CLAIM, _CLAIMED = statement("claim_build"), statement("claim_build.claimed", order_json=Json)
_RENEW, _PUBLISH = statement("renew_build"), statement("publish_build")
_STATUS, _ENGINE = statement("publish_build.status"), statement("publish_build.engine")
_FAIL, _FAIL_REASON = statement("fail_build"), statement("fail_build.reason")
