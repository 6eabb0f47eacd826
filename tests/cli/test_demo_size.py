"""The demo plays what fits into its time, and its smallest size still shows a gain."""

import sys
from pathlib import Path

import numpy as np
import pytest
from algorithms.test_algorithms_recovery import Case, recovered

from spsa.cli.demonstration import bundled, fresh
from spsa.cli.measuring import SIZES, Size, chosen_size, write_size
from spsa.cli.trial import Speed
from spsa.config import load_config

FOUR_MINUTES = 240.0
REPLICAS = 40


def test_a_machine_half_as_fast_plays_less() -> None:
    quick, slow = Speed(builds=4.0, game=0.25), Speed(builds=8.0, game=0.5)
    sizes = [chosen_size(speed, 2, 4, FOUR_MINUTES) for speed in (quick, slow)]
    games = [size.iterations * size.games for size in sizes]
    assert games[0] > games[1]
    assert chosen_size(quick, 2, 4, 15 * FOUR_MINUTES) == SIZES[0]


def test_a_machine_that_is_too_slow_for_all_plays_the_smallest() -> None:
    assert chosen_size(Speed(builds=60.0, game=9.0), 2, 4, FOUR_MINUTES) == SIZES[-1]
    assert chosen_size(Speed(builds=1.0, game=0.1), 2, 4, -5.0) == SIZES[-1]


def test_the_size_is_written_into_the_configuration(tmp_path: Path) -> None:
    folder = fresh(tmp_path / "demo", bundled(), 7)
    write_size(folder / "config.toml", SIZES[-1])
    config = load_config(folder / "config.toml", {})
    found = (config.spsa.max_iterations, config.games.games_per_iteration, config.validation.games)
    assert found == (SIZES[-1].iterations, SIZES[-1].games, SIZES[-1].match_games)
    assert config.run.seed == 7


def test_each_size_recovers_most_of_the_elo(capsys: pytest.CaptureFixture[str]) -> None:
    found = [mean_recovered(size) for size in SIZES]
    with capsys.disabled():
        sys.stdout.write(f"\nrecovered by each size of the demo: {np.round(found, 2)}\n")
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.95
    assert found[-1] > 0.8


def mean_recovered(size: Size) -> float:
    case = Case(
        parameters=7,
        iterations=size.iterations,
        pairs=size.games // 2,
        distance=(2, 5),
        stake=(20, 80),
        each=True,
        replicas=REPLICAS,
    )
    return float(np.mean([recovered(case, {}, seed, "mixture") for seed in range(REPLICAS)]))
