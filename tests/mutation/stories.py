"""The stories of the protocol on a server, a test each, so that the first one to fail is enough."""

import pytest
from test_protocol import STORIES, tell
from test_protocol_functions import machine  # noqa: F401 (a fixture)


@pytest.mark.parametrize("story", STORIES)
def test_a_story_on_postgresql(story, machine):  # noqa: F811
    tell(machine, STORIES[story])
