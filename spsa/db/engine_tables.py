"""The tables of engines: published binaries, stored files, and builds that workers carry out."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from spsa.db.base import (
    Base,
    Identity,
    Json,
    UtcTime,
    limited,
    now_column,
    number_column,
    optional,
    status_column,
    text_column,
)
from spsa.lifecycle import BatchStatus
from spsa.protocol import BuildResult, BuiltFile, ClaimRequest, HeldBuild


class EngineFile(Base, kw_only=True):
    """A published binary; the bytes only if workers get it from here."""

    __tablename__ = "spsa_engine"

    sha256: Mapped[str] = text_column(primary_key=True)
    build_key: Mapped[str] = text_column()
    target: Mapped[str] = text_column()
    size: Mapped[int] = mapped_column(sa.BigInteger)
    bench: Mapped[int | None] = optional(sa.BigInteger)
    path: Mapped[str] = text_column()
    content: Mapped[bytes | None] = mapped_column(
        "bytes", sa.LargeBinary, default=None, deferred=True, nullable=True
    )
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (CheckConstraint("length(sha256) = 64", name="sha256"),)


class StoredFile(Base, kw_only=True):
    """A book, a side file or the archive of a source, for workers that get their files here."""

    __tablename__ = "spsa_file"

    sha256: Mapped[str] = text_column(primary_key=True)
    content: Mapped[bytes] = mapped_column("bytes", sa.LargeBinary, deferred=True)
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (CheckConstraint("length(sha256) = 64", name="sha256"),)


class Build(Base, kw_only=True):
    """Two engines that a master wants for one kind of machine, and the worker that builds them."""

    __tablename__ = "spsa_build"

    id: Mapped[int] = mapped_column(Identity, primary_key=True, default=None)
    build_key: Mapped[str] = text_column(unique=True)
    requires: Mapped[str] = text_column()  # of the worker that builds, see spsa_iteration
    archive_sha256: Mapped[str] = mapped_column(ForeignKey("spsa_file.sha256"))
    recipe: Mapped[Mapping[str, Any] | None] = optional(Json)  # NULL when it is done
    wanted_until: Mapped[datetime] = mapped_column(UtcTime)  # no worker leases it later
    status: Mapped[BatchStatus] = status_column(BatchStatus, BatchStatus.READY)
    attempt: Mapped[int] = number_column()
    max_attempts: Mapped[int]
    claim_id: Mapped[str | None] = optional(unique=True)
    worker_id: Mapped[int | None] = optional(Identity, ForeignKey("spsa_worker.id"))
    leased_at: Mapped[datetime | None] = optional(UtcTime)
    lease_expires_at: Mapped[datetime | None] = optional(UtcTime)
    plus_sha256: Mapped[str | None] = optional(sa.Text, ForeignKey("spsa_engine.sha256"))
    minus_sha256: Mapped[str | None] = optional(sa.Text, ForeignKey("spsa_engine.sha256"))
    plus_bench: Mapped[int | None] = optional(sa.BigInteger)
    minus_bench: Mapped[int | None] = optional(sa.BigInteger)
    binary_requires: Mapped[str | None] = optional()  # words, as spsa_worker.provides
    created_at: Mapped[datetime] = now_column()

    __table_args__ = (
        CheckConstraint("status IN ('ready', 'leased', 'done')", name="status"),
        CheckConstraint("attempt >= 0", name="attempt"),
        CheckConstraint(
            "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL"
            " AND worker_id IS NOT NULL AND recipe IS NOT NULL)",
            name="leased",
        ),
        CheckConstraint(
            "(status = 'done') = (plus_sha256 IS NOT NULL AND minus_sha256 IS NOT NULL)",
            name="done",
        ),
        *limited(ClaimRequest, "claim_id"),
        *limited(BuiltFile, plus_bench="bench", minus_bench="bench"),
        *limited(BuildResult, binary_requires="requires"),
    )


class Upload(Base, kw_only=True):
    """One engine of a build, sent by a remote worker and not published yet."""

    __tablename__ = "spsa_upload"

    build_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_build.id"), primary_key=True)
    side: Mapped[str] = text_column(primary_key=True)
    claim_id: Mapped[str] = text_column()
    sha256: Mapped[str] = text_column()
    size: Mapped[int] = mapped_column(sa.BigInteger)
    content: Mapped[bytes] = mapped_column("bytes", sa.LargeBinary, deferred=True)

    __table_args__ = (
        CheckConstraint("side IN ('plus', 'minus')", name="side"),
        *limited(BuiltFile, "sha256", "size"),
        *limited(ClaimRequest, "claim_id"),
    )


class BuildFailure(Base, kw_only=True):
    """A machine that could not build, and is not asked again."""

    __tablename__ = "spsa_build_failure"

    build_id: Mapped[int] = mapped_column(Identity, ForeignKey("spsa_build.id"), primary_key=True)
    machine: Mapped[str] = mapped_column(ForeignKey("spsa_machine.name"), primary_key=True)
    reason: Mapped[str] = text_column()
    at: Mapped[datetime] = now_column()

    __table_args__ = tuple(limited(HeldBuild, "reason"))
