"""`init` proposes what loads, overwrites nothing, and refuses what would not load."""

import pytest
from console import write_project
from transcripts import headings

ENGINES, *SITUATIONS = headings(__file__)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_init(situation, folder, transcript):
    """Beside the folder of an engine's source, and an engine with options."""
    write_project(folder)
    for name in ("config.toml", "params.toml"):
        (folder / name).unlink()
    transcript(ENGINES)
    transcript(situation)
