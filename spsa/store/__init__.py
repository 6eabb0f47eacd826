"""The one place that speaks SQL to a running tuner: one method is one transaction.

A worker uses the verbs of `worker_queries`, a master those of `mastership`, `view` and `moves`, a
person those of `runs`, `fleet` and `purging`. The `ledger` and the `records` of purges are only
read.
"""

from collections.abc import Callable

from spsa.connection import nobody_leaves, parse_url
from spsa.store.copying import CopyDesk
from spsa.store.entries import (
    BatchResult,
    NewEngine,
    NewIteration,
    NewRun,
    NewStep,
    Values,
    WorkerInfo,
)
from spsa.store.fleet import FleetQueries
from spsa.store.ledger import Ledger
from spsa.store.moves import MasterDesk
from spsa.store.purging import PurgeDesk
from spsa.store.rows import (
    BatchRow,
    Claim,
    Costs,
    Engine,
    EngineRow,
    Event,
    Failure,
    Iteration,
    MachineFailures,
    Mastership,
    RegisteredWorker,
    Run,
    RunView,
    SetAside,
    Standing,
    Step,
    Totals,
    WorkerRow,
)
from spsa.store.runs import OwnerDesk
from spsa.store.standings import StandingDesk
from spsa.store.struck import Judgement, Match, NewPurge, Purge, Selection, Struck, StruckTotals
from spsa.store.view import ViewDesk
from spsa.store.worker_queries import WorkerQueries


class Store(
    WorkerQueries,
    ViewDesk,
    MasterDesk,
    OwnerDesk,
    FleetQueries,
    PurgeDesk,
    StandingDesk,
    CopyDesk,
    Ledger,
):
    """All verbs on one database."""


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
    if parse_url(url).get_backend_name() == "sqlite":
        return Store
    from spsa.store.server import ServerStore  # loads what only who has a server needs

    return ServerStore


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
    "Judgement",
    "MachineFailures",
    "Mastership",
    "Match",
    "NewEngine",
    "NewIteration",
    "NewPurge",
    "NewRun",
    "NewStep",
    "Purge",
    "RegisteredWorker",
    "Run",
    "RunView",
    "Selection",
    "SetAside",
    "Standing",
    "Step",
    "Store",
    "Struck",
    "StruckTotals",
    "Totals",
    "Values",
    "WorkerInfo",
    "WorkerRow",
    "open_store",
]
