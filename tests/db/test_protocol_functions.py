"""The protocol of `protocol`, with the functions of a PostgreSQL server in the workers' place.

sql/worker_functions.sql and sql/worker_statements.sql are held to one behaviour by the same model.
Every machine has a login of its own that may call the functions and nothing else.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from protocol_server import machine  # noqa: F401 (a fixture)
from protocol_stories import STORIES, tell
from shell import Shell

from spsa.db import sql_files

EXAMPLES = 200 if os.environ.get("SPSA_TEST_LONG") else 4
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_the_stories_go_as_they_should(machine):  # noqa: F811
    for story in STORIES.values():
        tell(machine, story)


@pytest.mark.slow
def test_any_history_leaves_the_database_as_it_should_be(machine):  # noqa: F811
    run_state_machine_as_test(machine, settings=SEARCH)


def test_the_functions_of_a_database_are_those_of_this_program(postgresql_url):
    shell = Shell(postgresql_url)
    found = {row.proname for row in shell("SELECT proname FROM pg_proc WHERE proname LIKE 'spsa%'")}
    bodies = [row.prosrc for row in shell("SELECT prosrc FROM pg_proc WHERE proname LIKE 'spsa%'")]
    shell.close()
    text = "".join(sql_files.programs("postgresql"))
    assert found == set(sql_files.functions())
    assert all(body in text for body in bodies)
