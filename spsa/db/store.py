"""The one place that speaks SQL to a running tuner: one method is one transaction.

A worker uses the verbs of `worker_queries`, a master those of `master_lease`, `view` and `moves`, a
person those of `runs`, `fleet` and `purging`. The `ledger` and the `records` of purges are only
read.
"""

from collections.abc import Callable

from spsa.db.backup import BackupQueries
from spsa.db.connection import nobody_leaves, parse_url
from spsa.db.entries import (
    BatchResult,
    NewEngine,
    NewIteration,
    NewRun,
    NewStep,
    Values,
    WorkerInfo,
)
from spsa.db.history_queries import HistoryQueries
from spsa.db.machine_queries import MachineQueries
from spsa.db.master_queries import MasterQueries
from spsa.db.purge_queries import PurgeQueries
from spsa.db.purge_values import (
    NewPurge,
    Purge,
    PurgedBatch,
    PurgedTotals,
    PurgeMatch,
    PurgeVerdict,
    Selection,
)
from spsa.db.read_queries import ReadQueries
from spsa.db.rows import (
    BatchRow,
    Claim,
    Costs,
    Engine,
    EngineRow,
    Event,
    Failure,
    Iteration,
    MachineFailures,
    MasterLease,
    RegisteredWorker,
    Run,
    RunOverview,
    RunView,
    SetAside,
    Step,
    Totals,
    WorkerRow,
)
from spsa.db.run_overview import RunOverviewQueries
from spsa.db.run_queries import RunQueries
from spsa.db.run_view import RunViewQueries
from spsa.db.worker_functions import WorkerFunctions
from spsa.db.worker_queries import WorkerQueries


class Store(
    WorkerQueries,
    RunViewQueries,
    MasterQueries,
    RunQueries,
    MachineQueries,
    PurgeQueries,
    RunOverviewQueries,
    BackupQueries,
    HistoryQueries,
    ReadQueries,
):
    """All verbs on one database."""


class ServerStore(WorkerFunctions, Store):
    """All verbs on a PostgreSQL server, where those of a worker are functions."""


def open_store(
    url: str, *, durable: bool = True, hurried: Callable[[], bool] = nobody_leaves
) -> Store:
    """Open the database at `url`.

    Args:
        durable: whether the commits of transactions wait for the disk; a worker's need not, because
            a report that is lost with the server is played again from its seed. The functions of a
            PostgreSQL server never wait.
        hurried: whether somebody wants to leave; asked while PostgreSQL is silent, which is then
            given up within two seconds.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file.
        DatabaseUnreachable: it does not answer.
        SchemaMismatch: its tables are older or newer than this program's.
    """
    return _kind(url)(url, durable=durable, hurried=hurried)


def _kind(url: str) -> type[Store]:
    return Store if parse_url(url).get_backend_name() == "sqlite" else ServerStore


__all__ = [
    "BatchResult",
    "BatchRow",
    "Claim",
    "Costs",
    "Engine",
    "EngineRow",
    "Event",
    "Failure",
    "Iteration",
    "MachineFailures",
    "MasterLease",
    "NewEngine",
    "NewIteration",
    "NewPurge",
    "NewRun",
    "NewStep",
    "Purge",
    "PurgeMatch",
    "PurgeVerdict",
    "PurgedBatch",
    "PurgedTotals",
    "RegisteredWorker",
    "Run",
    "RunOverview",
    "RunView",
    "Selection",
    "SetAside",
    "Step",
    "Store",
    "Totals",
    "Values",
    "WorkerInfo",
    "WorkerRow",
    "open_store",
]
