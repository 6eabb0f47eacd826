"""`params import` and `params export`: what they write, print and refuse."""

import pytest
from transcripts import headings

from spsa.config import load_config

CONFIG = '[delivery]\nengine = "engine"\n'
TUNE, *SITUATIONS = headings(__file__)


@pytest.fixture(autouse=True)
def folder(folder):
    (folder / "tune.txt").write_text("razor,446.5,0,892,44,0.002\nlmr,18,-20,60,4,0.002\n")
    (folder / "config.toml").write_text(CONFIG)
    return folder


def test_a_tune_is_imported_with_what_goes_into_config_toml(folder, transcript):
    imported, _ = transcript(TUNE)
    (folder / "config.toml").write_text(CONFIG + imported.out)
    config = load_config(folder / "config.toml", {})
    assert (config.spsa.algorithm, config.spsa.settings["played"]) == ("fishtest", 1000)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_parameters_are_imported_and_exported(situation, transcript):
    transcript(situation)
