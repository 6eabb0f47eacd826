"""The master lease: at most one master advances a run at a time.

The lease is in the run's row, with an epoch that grows with every acquisition. Every write of a
master checks it; if the lease has another holder, the write raises MasterLeaseLost.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.core.builds import Builds
from spsa.db.base import time_from_now
from spsa.db.database import Database, rows
from spsa.db.run_tables import Run
from spsa.errors import MasterLeaseLost


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterLease:
    """The right to advance a run; each acquisition has its own `epoch`."""

    run_id: int
    master_id: str
    epoch: int


class MasterLeaseQueries(Database):
    """Acquire, check and release the master lease of a run."""

    def acquire_master_lease(
        self,
        run_id: int,
        master_id: str,
        lease_seconds: float,
        abandoned: datetime | None = None,
    ) -> MasterLease:
        """Become the master of a run.

        A lease has expired when the database's clock says so. A clock that was set back, as a
        laptop's may be, would say so too late, and the clocks of two processes that share an SQLite
        file may differ. So a lease has expired, too, if its holder has not renewed it for as long
        as it lasts; the caller has to watch that.

        Args:
            abandoned: the end of a lease that the caller has seen unchanged for longer than a lease
                lasts.

        Raises:
            MasterLeaseLost: another master's lease is live; has its end.
        """
        free = sa.or_(
            Run.master_id.is_(None),
            Run.master_id == master_id,
            Run.lease_expires_at < time_from_now(0),
            Run.lease_expires_at == abandoned,
        )
        taken = {"epoch": Run.epoch + 1, "master_id": master_id}
        taken |= {"lease_expires_at": time_from_now(lease_seconds)}
        taking = update(Run).where(Run.id == run_id, free).values(taken).returning(Run.epoch)
        with self._write() as connection:
            epoch = connection.scalar(taking)
            if epoch is None:
                lease = select(Run.master_id, Run.lease_expires_at).where(Run.id == run_id)
                holder, end = connection.execute(lease).one()
                raise MasterLeaseLost(f"the master {holder} holds this run", end)
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def release_master_lease(self, master_lease: MasterLease) -> None:
        """Release the lease, so that the next master need not wait until it expires."""
        free = {"master_id": None, "lease_expires_at": None}
        own = (Run.id == master_lease.run_id, Run.epoch == master_lease.epoch)
        with self._write() as connection:
            connection.execute(update(Run).where(*own).values(free))


def locked_run(
    connection: sa.Connection,
    master_lease: MasterLease,
    *,
    lease_seconds: float | None = None,
    builds: Builds | None = None,
) -> Run:
    """The run's row, locked, if this lease is still valid; else MasterLeaseLost.

    `lease_seconds` renews the lease, `builds` tells what the master builds.
    """
    changed: dict[str, Any] = {"epoch": Run.epoch}
    if lease_seconds is not None:
        changed["lease_expires_at"] = time_from_now(lease_seconds)
    if builds is not None:
        changed["builds"] = builds.to_json()
    own = (
        Run.id == master_lease.run_id,
        Run.epoch == master_lease.epoch,
        Run.master_id == master_lease.master_id,
    )
    if connection.scalar(update(Run).where(*own).values(changed).returning(Run.id)) is None:
        raise MasterLeaseLost("another master holds this run now; this one stops")
    return rows(connection, select(Run).where(Run.id == master_lease.run_id))[0]
