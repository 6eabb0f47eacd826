"""The stories of the protocol on a server, a test each, so that the first one to fail is enough."""

import pytest
from protocol_server import machine  # noqa: F401 (a fixture)
from protocol_stories import STORIES, tell


@pytest.mark.parametrize("story", STORIES)
def test_a_story_on_postgresql(story, machine):  # noqa: F811
    tell(machine, STORIES[story])
