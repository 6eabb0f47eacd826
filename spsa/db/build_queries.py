"""Engines that workers build: a master orders them, a worker leases the order and publishes them.

An order is named by a hash of all its inputs, so it serves every run and master that needs these
engines. It moves no run, and a repeated call changes nothing.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey, delete, insert, select, update
from sqlalchemy.orm import Mapped, Session, mapped_column

from spsa import protocol
from spsa.core.json_values import checked, to_json
from spsa.db.base import (
    HAS_LEASE,
    Base,
    Identity,
    Leased,
    Numbered,
    execute,
    not_registered,
    now_column,
    optional,
    time_from_now,
)
from spsa.db.database import Database, rows
from spsa.db.tables import EngineRow, Machine, SetAsideRow, Worker
from spsa.errors import LeaseLost, OutOfRange
from spsa.lifecycle import BatchStatus
from spsa.text import plural


class Build(Leased, Numbered, Base, kw_only=True):
    """Two engines that a master wants for one kind of machine, and the worker that builds them."""

    __tablename__ = "spsa_build"

    build_key: Mapped[str] = mapped_column(unique=True)
    requires: Mapped[str]  # of the worker that builds, see spsa_iteration
    archive_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_file.sha256"))
    recipe: Mapped[Mapping[str, Any]]  # empty when it is done
    wanted_until: Mapped[datetime]  # no worker leases it later
    plus_sha256: Mapped[str | None] = optional(ForeignKey("spsa_engine.sha256"))
    minus_sha256: Mapped[str | None] = optional(ForeignKey("spsa_engine.sha256"))
    plus_bench: Mapped[protocol.Bench | None] = optional(sa.BigInteger)
    minus_bench: Mapped[protocol.Bench | None] = optional(sa.BigInteger)
    # words, as spsa_worker.provides
    binary_requires: Mapped[Annotated[str, protocol.SHORT] | None] = optional()
    # the engines that a remote worker has sent, until they are published
    plus_content: Mapped[bytes | None] = optional("plus_bytes", deferred=True)
    minus_content: Mapped[bytes | None] = optional("minus_bytes", deferred=True)
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (
        CheckConstraint("status IN ('ready', 'leased', 'done')", name="possible"),
        CheckConstraint(HAS_LEASE, name="leased"),
        CheckConstraint(
            "(status = 'done') = (plus_sha256 IS NOT NULL AND minus_sha256 IS NOT NULL)",
            name="done",
        ),
    )


class BuildFailure(Base, kw_only=True):
    """A machine that could not build, and is not asked again."""

    __tablename__ = "spsa_build_failure"

    build_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_build.id"), primary_key=True)
    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"), primary_key=True)
    reason: Mapped[protocol.Reason]
    at: Mapped[datetime] = now_column()


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedBuild:
    """What has become of an order: `engines` are plus and minus, without their bytes, when they are
    published, and require the words of `requires`.

    `failures` are machines and why they could not build, `builders` is how many active workers may
    still do so, or are doing so.
    """

    key: str
    engines: tuple[EngineRow, EngineRow] | None
    requires: tuple[str, ...]
    failures: tuple[tuple[str, str], ...]
    builders: int


WANTED_SECONDS = 60
"""An order that no master asks about for so long is leased to no worker."""


class BuildQueries(Database):
    """What a master asks for, and the engines that a worker sends."""

    def active_workers(self) -> list[tuple[Worker, Machine]]:
        """Every worker that was seen recently; not of a machine that was revoked or set aside."""
        present = (
            Worker.last_seen_at > time_from_now(-protocol.ACTIVE_SECONDS),
            Machine.revoked_at.is_(None),
            Machine.name.not_in(select(SetAsideRow.machine).where(SetAsideRow.sha256.is_(None))),
        )
        active = select(Worker, Machine).join(Machine, Machine.name == Worker.host).where(*present)
        with self._read() as connection, Session(connection) as session:
            return [(worker, machine) for worker, machine in session.execute(active)]

    def order_build(
        self,
        key: str,
        requires: Sequence[str],
        archive_sha256: str,
        recipe: Mapping[str, Any],
        *,
        max_attempts: int,
    ) -> None:
        """Order two engines, also where an earlier order has failed or its binaries are deleted.

        A worker that provides the words of `requires` may carry it out.
        """
        facts = {
            "recipe": dict(recipe),
            "max_attempts": max_attempts,
            "wanted_until": time_from_now(WANTED_SECONDS),
            "requires": protocol.required_pattern(requires),
            "archive_sha256": archive_sha256,
        }
        known = select(Build).where(Build.build_key == key).with_for_update()
        with self._write() as connection:
            found = rows(connection, known)
            if not found:
                connection.execute(insert(Build).values(build_key=key, **facts))
            elif _is_over(connection, found[0]):
                again = update(Build).where(Build.id == found[0].id)
                connection.execute(again.values(**_FRESH, **facts))
                its = delete(BuildFailure).where(BuildFailure.build_id == found[0].id)
                connection.execute(its)

    def ordered_builds(self, keys: Sequence[str]) -> list[OrderedBuild]:
        """What has become of these orders, which are wanted for another while."""
        mine = Build.build_key.in_(keys)
        wanted = {"wanted_until": time_from_now(WANTED_SECONDS)}
        with self._write() as connection:
            connection.execute(update(Build).where(mine).values(wanted))
            found = rows(connection, select(Build).where(mine).order_by(Build.id))
            return [_ordered(connection, build) for build in found]

    def may_upload(self, machine: str, build_id: int, claim_id: str) -> int | None:
        """The id of the machine's worker that holds this build and may send its engines."""
        held = {"machine": machine, "build_id": build_id, "claim_id": claim_id}
        with self._read() as connection:
            found: int | None = execute(connection, "upload.holder", **held).scalar()
            return found

    def upload_build(
        self, held: protocol.HeldBuild, side: str, content: bytes
    ) -> protocol.BuiltFile:
        """Keep one engine until it is published; one that was kept before is replaced.

        Raises LeaseLost: the worker does not hold the build any more. OutOfRange: it is empty or
        too long.
        """
        built = checked(
            protocol.BuiltFile(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        )
        mine = update(Build).where(_is_held(held), Build.status == BatchStatus.LEASED)
        with self._write() as connection:
            if not connection.execute(mine.values({f"{side}_content": content})).rowcount:
                raise LeaseLost(f"build {held.build_id} is no longer held by claim {held.claim_id}")
        return built


def _is_over(connection: sa.Connection, build: Build) -> bool:
    """Whether an order has failed, or its binaries are not in the database any more."""
    if build.status is BatchStatus.DONE:
        return _engines(connection, build) is None
    return not execute(connection, "builders", build_id=build.id).scalar_one()


_RESULT = ("plus_sha256", "minus_sha256", "plus_bench", "minus_bench", "binary_requires")
_FRESH: Mapping[str, Any] = {
    **dict.fromkeys(("claim_id", "lease_expires_at", *_RESULT)),
    "status": BatchStatus.READY,
    "attempt": 0,
}


def _ordered(connection: sa.Connection, build: Build) -> OrderedBuild:
    failed = select(BuildFailure).where(BuildFailure.build_id == build.id)
    failures = rows(connection, failed.order_by(BuildFailure.machine))
    return OrderedBuild(
        key=build.build_key,
        engines=_engines(connection, build) if build.status is BatchStatus.DONE else None,
        requires=protocol.words_of(build.binary_requires),
        failures=(*((one.machine, one.reason) for one in failures), *_lost(build, len(failures))),
        builders=execute(connection, "builders", build_id=build.id).scalar_one(),
    )


def _lost(build: Build, failed: int) -> list[tuple[str, str]]:
    """The failure of an order that no worker may lease any more; one may hold it still."""
    left = build.attempt - failed
    is_lost = left and build.attempt >= build.max_attempts and build.status is not BatchStatus.DONE
    gone = f"left {plural(left, 'time')} while they built, see their logs and memory"
    return [("all workers", gone)] if is_lost else []


def _engines(connection: sa.Connection, build: Build) -> tuple[EngineRow, EngineRow] | None:
    """Plus and minus of an order, with what its worker says of their bench."""
    both = (build.plus_sha256, build.minus_sha256)
    kept = select(EngineRow).where(EngineRow.sha256.in_(both), EngineRow.content.is_not(None))
    found = {engine.sha256: engine for engine in rows(connection, kept)}
    if build.plus_sha256 not in found or build.minus_sha256 not in found:
        return None
    plus = replace(found[build.plus_sha256], bench=build.plus_bench, content=None)
    return plus, replace(found[build.minus_sha256], bench=build.minus_bench, content=None)


def claim_build(
    connection: sa.Connection, request: protocol.BuildClaim
) -> protocol.LeasedBuild | None:
    """A claim that already has a build gets the same one."""
    mine = select(Build).where(
        Build.claim_id == request.claim_id,
        Build.worker_id == request.worker_id,
        Build.status == BatchStatus.LEASED,
    )
    if connection.scalar(select(Worker.id).where(Worker.id == request.worker_id)) is None:
        raise not_registered(request.worker_id)
    execute(connection, "claim_build", **to_json(request))
    for build in rows(connection, mine):
        return protocol.LeasedBuild(
            build_id=build.id,
            claim_id=request.claim_id,
            worker_id=request.worker_id,
            recipe=build.recipe,
            archive_sha256=build.archive_sha256,
        )
    return None


def renew_build(connection: sa.Connection, renewal: protocol.BuildRenewal) -> bool:
    return execute(connection, "renew_build", **to_json(renewal)).scalar() is not None


def publish_build(
    connection: sa.Connection, result: protocol.BuildResult
) -> Literal["accepted", "already", "lost"]:
    uploaded = (Build.plus_content.label("plus"), Build.minus_content.label("minus"))
    held = (
        select(Build.status, Build.build_key, *uploaded).where(_is_held(result)).with_for_update()
    )
    build = connection.execute(held).one_or_none()
    if build is None:
        return "lost"
    if build.status is BatchStatus.DONE:
        return "already"
    columns: dict[str, Any] = {"binary_requires": protocol.provided_text(result.requires)}
    for side, built in (("plus", result.plus), ("minus", result.minus)):
        sent = bytes(getattr(build, side) or b"")
        if (hashlib.sha256(sent).hexdigest(), len(sent)) != (built.sha256, built.size):
            field = f"BuildResult.{side}"
            raise OutOfRange(f"{field} is not the engine of {len(sent)} bytes that was sent", field)
        facts = {"build_key": build.build_key, "target": result.target, "bytes": sent}
        execute(connection, "publish_build.engine", **facts, **to_json(built))
        columns |= {f"{side}_sha256": built.sha256, f"{side}_bench": built.bench}
    execute(connection, "publish_build", **to_json(result), **columns)
    return "accepted"


def return_build(connection: sa.Connection, returned: protocol.BuildReturn) -> None:
    held = to_json(returned)
    failed = execute(connection, "fail_build", **held, attempts=int(returned.reason is None))
    if failed.scalar() is not None and returned.reason is not None:
        execute(connection, "fail_build.machine", **held)


def _is_held(held: protocol.HeldBuild) -> sa.ColumnElement[bool]:
    is_its = sa.and_(Build.claim_id == held.claim_id, Build.worker_id == held.worker_id)
    return sa.and_(Build.id == held.build_id, is_its)
