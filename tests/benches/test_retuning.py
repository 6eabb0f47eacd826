"""What a prior saves after a change of the engine: the same engines and games for every start."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from benches.papers.commands.locked import retune
from benches.papers.retuning import CHANGES, FIRST_VALUES, THETA, Retuning, saving


def lost(change: str, *doubts: float) -> dict[str, np.ndarray]:
    asked = Retuning(change=change, doubts=doubts, earlier=6000, later=1200, runs=12)
    return asked.lost()


def test_a_prior_starts_where_the_earlier_run_ended_and_the_first_values_do_not():
    found = lost("nothing", 1.0, 1000.0)
    assert list(found) == [FIRST_VALUES, THETA, "doubt 1", "doubt 1000"]
    assert {each.shape for each in found.values()} == {(40, 12)}
    assert found["doubt 1"][0].mean() < found[FIRST_VALUES][0].mean() / 2
    near = np.abs(found["doubt 1000"][0] - found[THETA][0]).mean()
    assert near < np.abs(found["doubt 1"][0] - found[THETA][0]).mean() + 0.5


def test_games_saved_are_those_after_which_a_start_is_as_strong():
    reference = np.linspace(10.0, 1.0, 10)[:, None] * np.ones(3)
    assert saving(reference, reference) == pytest.approx(0.0)
    assert saving(reference / 2, reference) == pytest.approx(0.1)
    assert saving(np.minimum(reference, 1.0), reference) == pytest.approx(0.9)
    assert saving(reference + 1, reference) is None


def test_the_command_tells_every_change_and_every_start():
    quick = ("--runs", "4", "--earlier", "1500", "--games", "1000", "--doubt", "2")
    told = CliRunner().invoke(retune, quick)
    assert told.exit_code == 0, told.output
    assert all(f"changed: {change}; " in told.stdout for change in CHANGES)
    found = json.loads(CliRunner().invoke(retune, (*quick, "--json")).stdout)
    assert found["1 step"]["doubt 2"]["saved"].keys() == {FIRST_VALUES, THETA}
    assert len(found["everything"][THETA]["elo_left"]) == 1000 // 30
