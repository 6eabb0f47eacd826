"""The master lease: at most one master moves a run at a time.

The lease is in the run's row, with an epoch that grows with every acquisition. Every write of a
master checks it; if the lease has another holder, the write raises MasterLeaseLost.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.core.builds import Builds
from spsa.db.database import Database
from spsa.db.rows import MasterLease
from spsa.db.schema import runs, seconds_from_now
from spsa.errors import MasterLeaseLost

LONGEST_LEASE_SECONDS = 3600.0
"""No lease is longer: one that ends later was taken before the database's clock was set back."""


class MasterLeaseQueries(Database):
    """Acquire, check and release the master lease of a run."""

    def acquire(self, run_id: int, master_id: str, lease_seconds: float) -> MasterLease:
        """Become the master of a run.

        A lease that ends later than LONGEST_LEASE_SECONDS from now counts as expired: otherwise a
        clock that was set back, as a laptop's may be, would block the run for that long.

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
                        runs.c.lease_expires_at > seconds_from_now(LONGEST_LEASE_SECONDS),
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
                raise MasterLeaseLost(f"the master {holder} holds this run")
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def resign(self, master_lease: MasterLease) -> None:
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
