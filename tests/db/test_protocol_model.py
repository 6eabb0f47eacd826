"""The protocol under any order of calls: on both databases, by workers of both kinds.

The short form takes seconds; SPSA_TEST_LONG=1 searches through 1,000 histories each way,
SPSA_TEST_EXAMPLES=n through n, and SPSA_TEST_SEED=n repeats a search.
"""

import os
import re
from pathlib import Path

import pytest
from cutting import CutStore
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol_machine import Place, ProtocolMachine
from served import serving
from shell import Shell

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SEED = os.environ.get("SPSA_TEST_SEED")
EXAMPLES = int(os.environ.get("SPSA_TEST_EXAMPLES", 1_000 if LONG else 6))
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


_TEXT = Path(__file__).with_name("stories.txt").read_text(encoding="utf-8")
STORIES = dict(re.findall(r"^(\w.*)\n((?: .*\n)+)", _TEXT, re.MULTILINE))


@pytest.fixture(scope="module")
def database(shared_database_url):
    with CutStore(shared_database_url) as store:
        shell = Shell(shared_database_url)
        yield Place(store, shell)
        shell.close()


@pytest.fixture(scope="module", params=["direct", "remote"])
def place(request, database):
    if request.param == "direct":
        yield database
    else:
        with serving(database.store) as url:
            yield Place(database.store, database.sql, url)


def machine_at(place):
    """The model in a place; a class of its own, because a seed sticks to it."""
    chosen = type("Chosen", (ProtocolMachine,), {"place": place})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


@pytest.mark.timeout(max(300, 6 * EXAMPLES))
def test_any_history_leaves_the_database_as_it_should_be(place):
    run_state_machine_as_test(machine_at(place), settings=SEARCH)


@pytest.mark.slow_on("direct-postgresql")
@pytest.mark.slow_on("remote-sqlite")
@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_should(story, place):
    told = machine_at(place)()
    try:
        told.begin()
        for word in STORIES[story].split():
            act, _, how = word.partition(":")
            pick, _, cut = how.partition("/")
            told.act(act, int(pick or 0), cut or None)
            told.the_database_is_the_model()
    finally:
        told.teardown()
