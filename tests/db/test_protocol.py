"""The protocol under any order of calls; `tests/mutation` proves that the search finds defects.

The short form takes seconds; SPSA_TEST_EXAMPLES=n searches through n histories instead (20,000 is a
good night), SPSA_TEST_LONG=1 is 2,000, and SPSA_TEST_SEED=n repeats a search.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import seed as seeded
from hypothesis.stateful import run_state_machine_as_test
from protocol import Protocol
from protocol_stories import STORIES, tell

LONG = 2_000 if os.environ.get("SPSA_TEST_LONG") else 25
EXAMPLES = int(os.environ.get("SPSA_TEST_EXAMPLES", LONG))
SEED = os.environ.get("SPSA_TEST_SEED")
SEARCH = settings(
    max_examples=EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def machine(sqlite_template):
    """The model, over copies of a migrated database; a class of its own, as a seed sticks to it."""
    chosen = type("Chosen", (Protocol,), {"template": sqlite_template})
    return chosen if SEED is None else seeded(int(SEED))(chosen)


@pytest.mark.timeout(max(300, EXAMPLES))
def test_any_history_leaves_the_database_as_it_should_be(machine):
    run_state_machine_as_test(machine, settings=SEARCH)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_goes_as_it_should(story, machine):
    tell(machine, STORIES[story])
