"""The protocol of `protocol`, with the functions of a PostgreSQL server in the workers' place.

sql/worker_functions.sql and sql/worker_statements.sql are held to one behaviour by the same model.
Every machine has a login of its own that may call the functions and nothing else.
"""

import os
import uuid

import pytest
from builders import new_worker
from cutting import ServerCutStore
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol import MACHINES, Protocol
from shell import Shell
from test_protocol import STORIES, tell

from spsa.db import sql_files
from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.schema import metadata
from spsa.db.store import RegisteredWorker

EXAMPLES = 200 if os.environ.get("SPSA_TEST_LONG") else 4
SEED = os.environ.get("SPSA_TEST_SEED")
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class OnServer(Protocol):
    """One database for all histories, each of which begins with empty tables."""

    url: str
    stores: dict[str, ServerCutStore]

    def opened(self):
        shell = Shell(self.url)
        shell(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY CASCADE")
        return ServerCutStore(self.url), shell

    def registered(self, i):
        info = new_worker(f"w{i}", host=MACHINES[i], secret=f"the secret of {MACHINES[i]}")
        return self.stores[MACHINES[i]].register_worker(info)

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


@pytest.mark.slow
def test_the_stories_go_as_they_should(machine):
    for story in STORIES.values():
        tell(machine, story)


@pytest.mark.slow
def test_any_history_leaves_the_database_as_it_should_be(machine):
    run_state_machine_as_test(machine, settings=SEARCH)


def test_the_functions_of_a_database_are_those_of_this_program(postgresql_url):
    shell = Shell(postgresql_url)
    found = {row.proname for row in shell("SELECT proname FROM pg_proc WHERE proname LIKE 'spsa%'")}
    bodies = [row.prosrc for row in shell("SELECT prosrc FROM pg_proc WHERE proname LIKE 'spsa%'")]
    shell.close()
    text = "".join(sql_files.programs("postgresql"))
    assert found == set(sql_files.functions())
    assert all(body in text for body in bodies)
