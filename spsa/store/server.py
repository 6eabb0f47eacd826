"""A store on a PostgreSQL server."""

from spsa.store import Store
from spsa.store.worker_functions import WorkerFunctions


class ServerStore(WorkerFunctions, Store):
    """All verbs on a PostgreSQL server, where a worker's are functions."""
