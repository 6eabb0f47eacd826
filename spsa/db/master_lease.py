"""One master at a time moves a run: a lease row with an epoch.

Every write of a master is guarded by it; a guard that matches no row is an error, never silence.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.db.database import Database
from spsa.db.rows import MasterLease
from spsa.db.schema import runs, seconds_from_now
from spsa.errors import MasterLeaseLost


class MasterLeaseQueries(Database):
    """Where a master takes a run and gives it up."""

    def acquire(self, run_id: int, master_id: str, lease_seconds: float) -> MasterLease:
        """Become the master of a run.

        Raises:
            MasterLeaseLost: another master's lease is live.
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
                holder = connection.scalar(select(runs.c.master_id).where(runs.c.id == run_id))
                raise MasterLeaseLost(f"the run is moved by the master {holder}")
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def resign(self, master_lease: MasterLease) -> None:
        """Give the mastership up, so that the next master need not wait for the lease to end."""
        with self._write() as connection:
            connection.execute(
                update(runs)
                .where(runs.c.id == master_lease.run_id, runs.c.epoch == master_lease.epoch)
                .values(master_id=None, lease_expires_at=None)
            )

    def _lead(
        self,
        connection: sa.Connection,
        master_lease: MasterLease,
        *,
        lease_seconds: float | None = None,
    ) -> Any:
        """The run's row, locked, if this mastership still holds; else MasterLeaseLost."""
        changed: dict[str, Any] = {"epoch": runs.c.epoch}
        if lease_seconds is not None:
            changed["lease_expires_at"] = seconds_from_now(lease_seconds)
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
            raise MasterLeaseLost("another master has taken over this run; this one stops")
        return row
