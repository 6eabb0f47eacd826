"""The master lease: at most one master advances a run at a time.

The lease is in the run's row, with an epoch that grows with every acquisition. Every write of a
master checks it; if the lease has another holder, the write raises MasterLeaseLost.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.core.builds import Builds
from spsa.db.database import Database
from spsa.db.rows import MasterLease
from spsa.db.schema import runs, seconds_from_now
from spsa.errors import MasterLeaseLost


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
        with self._write() as connection:
            epoch = connection.scalar(
                update(runs)
                .where(
                    runs.c.id == run_id,
                    sa.or_(
                        runs.c.master_id.is_(None),
                        runs.c.master_id == master_id,
                        runs.c.lease_expires_at < seconds_from_now(0),
                        runs.c.lease_expires_at == abandoned,
                    ),
                )
                .values(
                    epoch=runs.c.epoch + 1,
                    master_id=master_id,
                    lease_expires_at=seconds_from_now(lease_seconds),
                )
                .returning(runs.c.epoch)
            )
            if epoch is None:
                lease = select(runs.c.master_id, runs.c.lease_expires_at)
                holder, end = connection.execute(lease.where(runs.c.id == run_id)).one()
                raise MasterLeaseLost(f"the master {holder} holds this run", end)
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def release_master_lease(self, master_lease: MasterLease) -> None:
        """Release the lease, so that the next master need not wait until it expires."""
        with self._write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.id == master_lease.run_id, runs.c.epoch == master_lease.epoch)
                .values(master_id=None, lease_expires_at=None)
            )

    def _locked_run(
        self,
        connection: sa.Connection,
        master_lease: MasterLease,
        *,
        lease_seconds: float | None = None,
        builds: Builds | None = None,
    ) -> Any:
        """The run's row, locked, if this lease is still valid; else MasterLeaseLost.

        `lease_seconds` renews the lease, `builds` tells what the master builds.
        """
        changed: dict[str, Any] = {"epoch": runs.c.epoch}
        if lease_seconds is not None:
            changed["lease_expires_at"] = seconds_from_now(lease_seconds)
        if builds is not None:
            changed["builds"] = builds.to_json()
        row = connection.execute(
            update(runs)
            .where(
                runs.c.id == master_lease.run_id,
                runs.c.epoch == master_lease.epoch,
                runs.c.master_id == master_lease.master_id,
            )
            .values(changed)
            .returning(*runs.c)
        ).one_or_none()
        if row is None:
            raise MasterLeaseLost("another master holds this run now; this one stops")
        return row
