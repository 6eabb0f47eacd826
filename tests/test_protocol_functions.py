"""The protocol of `protocol`, with the functions of a PostgreSQL server in the workers' place.

They are made of the same statements as SQLite's steps; here they are held to the same model.
"""

import os

import pytest
from cutting import ServerCutStore
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol import Protocol
from shell import Shell
from test_protocol import STORIES, tell

from spsa import soundness
from spsa.lifecycle import BATCH, BatchStatus, sources
from spsa.schema import metadata
from spsa.store import functions

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

    def opened(self):
        shell = Shell(self.url)
        shell(f"TRUNCATE {', '.join(metadata.tables)} RESTART IDENTITY CASCADE")
        return ServerCutStore(self.url), shell


@pytest.fixture
def machine(postgresql_url):
    chosen = type("Chosen", (OnServer,), {"url": postgresql_url})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


def test_the_stories_go_as_they_should(machine):
    for story in STORIES.values():
        tell(machine, story)


def test_any_history_leaves_the_database_as_it_should_be(machine):
    run_state_machine_as_test(machine, settings=SEARCH)


def test_the_guards_are_those_of_the_lifecycle():
    made = "".join(functions.statements("public"))
    for to in (BatchStatus.DONE, BatchStatus.READY, BatchStatus.FAILED):
        words = ", ".join(f"'{source}'" for source in sorted(sources(BATCH, to)))
        assert f"(spsa_batch.status || '') IN ({words})" in made


def test_the_functions_of_a_database_are_those_of_this_program(postgresql_url):
    """Whoever changes a step of a worker's has to write a migration that makes them anew."""
    shell = Shell(postgresql_url)
    found = {row.prosrc for row in shell("SELECT prosrc FROM pg_proc WHERE proname LIKE 'spsa%'")}
    shell.close()
    creating = [text for text in functions.statements("public") if text.startswith("CREATE")]
    creating += [soundness.making(table) for table in soundness.TABLES]
    assert found == {text.partition("$body$")[2].removesuffix("$body$") for text in creating}
