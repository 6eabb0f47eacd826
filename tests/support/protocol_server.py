"""The protocol with the functions of a PostgreSQL server in the place of the workers."""

import os
import uuid

import pytest
from cutting import ServerCutStore
from hypothesis import seed as seeded
from protocol import MACHINES, Protocol
from shell import Shell

from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.schema import metadata
from spsa.db.store import RegisteredWorker

SEED = os.environ.get("SPSA_TEST_SEED")


class OnServer(Protocol):
    """One database for all histories, each of which begins with empty tables."""

    url: str
    stores: dict[str, ServerCutStore]

    def opened(self):
        shell = Shell(self.url)
        shell(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY CASCADE")
        return ServerCutStore(self.url), shell

    def registered(self, i):
        return self.stores[MACHINES[i]].register_worker(self.info(i))

    def store_of(self, worker: RegisteredWorker):
        return self.stores[worker.machine]

    def do(self, call, plan, cut=None):
        for store in self.stores.values():
            store.cut_next(cut)
        try:
            return super().do(call, plan, cut)
        finally:
            for store in self.stores.values():
                store.cut_next(None)  # whichever was not asked


@pytest.fixture
def machine(postgresql_url):
    """The model on a server, with a login for each machine."""
    logins = {name: f"spsa_{name}_{uuid.uuid4().hex[:8]}" for name in MACHINES}
    with GrantQueries(postgresql_url) as owner:
        for login in logins.values():
            owner.grant(Grant(role=Role.WORKER, user=login, connections=9))
    stores = {
        name: ServerCutStore(postgresql_url.replace("//postgres@", f"//{login}@"))
        for name, login in logins.items()
    }
    chosen = type("Chosen", (OnServer,), {"url": postgresql_url, "stores": stores})
    yield chosen if SEED is None else seeded(int(SEED))(chosen)
    for store in stores.values():
        store.close()
