"""All queries on one database: one method is one transaction.

A worker uses `worker_queries`, a master `master_lease`, `run_view` and `master_queries`, a person
`run_queries`, `machine_queries` and `purge_queries`. `read_queries`, `history_queries`,
`batch_queries`, `match_queries` and `purge_records` only read.
"""

from collections.abc import Callable

from spsa.db.backup import BackupQueries
from spsa.db.batch_queries import BatchQueries
from spsa.db.build_queries import (
    BuildOrderQueries,
    BuildQueries,
    LeasedBuild,
    NewBuild,
    OrderedBuild,
    Published,
)
from spsa.db.connection import never, parse_url
from spsa.db.entries import (
    BatchResult,
    Compared,
    NewChange,
    NewEngine,
    NewIteration,
    NewRun,
    NewStep,
    Values,
    WorkerInfo,
)
from spsa.db.history_queries import HistoryQueries
from spsa.db.history_rows import Change, Costs, EngineRow, Totals
from spsa.db.machine_queries import MachineQueries
from spsa.db.master_queries import MasterQueries
from spsa.db.match_queries import MatchQueries
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
    Engine,
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
    WorkerRow,
)
from spsa.db.run_queries import RunQueries
from spsa.db.run_view import RunOverviewQueries, RunViewQueries
from spsa.db.worker_functions import BuildFunctions, WorkerFunctions
from spsa.db.worker_queries import WorkerQueries


class Store(
    WorkerQueries,
    BuildQueries,
    BuildOrderQueries,
    RunViewQueries,
    MasterQueries,
    RunQueries,
    MachineQueries,
    PurgeQueries,
    RunOverviewQueries,
    BackupQueries,
    HistoryQueries,
    BatchQueries,
    MatchQueries,
    ReadQueries,
):
    """All queries on one database."""


class ServerStore(WorkerFunctions, BuildFunctions, Store):
    """All queries on a PostgreSQL server, where those of a worker are functions."""


def open_store(url: str, *, durable: bool = True, is_stopping: Callable[[], bool] = never) -> Store:
    """Open the database at `url`.

    Args:
        durable: whether commits wait for the disk; a worker's need not, because a batch whose
            report is lost in a crash is played again from its seed. The functions of a PostgreSQL
            server never wait.
        is_stopping: whether the program is stopping; a silent PostgreSQL server then counts as
            unreachable within two seconds.

    Raises:
        InvalidInput: it is no URL of PostgreSQL or of an SQLite file.
        DatabaseUnreachable: it does not respond.
        SchemaMismatch: its tables are older or newer than this program's.
    """
    is_file = parse_url(url).get_backend_name() == "sqlite"
    return (Store if is_file else ServerStore)(url, durable=durable, is_stopping=is_stopping)


__all__ = [
    "BatchResult",
    "BatchRow",
    "Change",
    "Claim",
    "Compared",
    "Costs",
    "Engine",
    "EngineRow",
    "Event",
    "Failure",
    "Iteration",
    "LeasedBuild",
    "MachineFailures",
    "MasterLease",
    "NewBuild",
    "NewChange",
    "NewEngine",
    "NewIteration",
    "NewPurge",
    "NewRun",
    "NewStep",
    "OrderedBuild",
    "Published",
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
