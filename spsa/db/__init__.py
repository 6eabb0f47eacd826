"""All queries on one database: one method is one transaction.

A worker uses `worker_queries` and `build_queries`, a master `run_view` and `master_queries`, a
person `run_queries`, `machine_queries` and `purge_queries`. `read_queries` only reads.
"""

from collections.abc import Callable

from spsa.db import migrate
from spsa.db.build_queries import BuildQueries
from spsa.db.database import never
from spsa.db.machine_queries import MachineQueries
from spsa.db.master_queries import MasterQueries
from spsa.db.purge_queries import PurgeQueries
from spsa.db.read_queries import ReadQueries
from spsa.db.run_queries import RunQueries
from spsa.db.worker_queries import WorkerQueries


class Store(
    WorkerQueries,
    BuildQueries,
    MasterQueries,
    RunQueries,
    MachineQueries,
    PurgeQueries,
    ReadQueries,
):
    """All queries on the database at `url`.

    Commits wait for the disk if they are `durable`; a worker's need not, because a batch whose
    report is lost in a crash is played again from its seed. While `is_stopping`, a silent
    PostgreSQL server counts as unreachable within two seconds.

    Raises InvalidInput: it is no URL of PostgreSQL or of an SQLite file. DatabaseUnreachable: it
    does not respond. SchemaMismatch: its tables are those of another version.
    """

    def __init__(
        self, url: str, *, durable: bool = True, is_stopping: Callable[[], bool] = never
    ) -> None:
        super().__init__(url, durable=durable, is_stopping=is_stopping)
        self.check()

    def check(self) -> None:
        """Read the version of the tables."""
        with self._read() as connection:
            migrate.check(connection)
