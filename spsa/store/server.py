"""A store on a PostgreSQL server."""

from spsa.store import Store
from spsa.store.calls import CallDesk


class ServerStore(CallDesk, Store):
    """All verbs on a PostgreSQL server, where a worker's are functions."""
