"""Values sent by setoption into one binary: everything but the delivery is the same."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tuner import Tuner

from spsa.store import open_store

ENGINE = Path(__file__).parent / "engines" / "optional.py"

CONFIG = """
[run]
name = "small"
seed = 3
[time_control]
kind = "depth"
low = 1
high = 1
[games]
games_per_iteration = 4
batch_size = 2
[spsa]
max_iterations = 3
[delivery]
kind = "uci"
engine = "optional"
[build]
distribute = "database"
[adjudication]
max_moves = 20
"""

PARAMS = """
[boldness]
value = 3
min = 0
max = 50
step = 2

[calm]
value = 10
min = 0
max = 50
step = 4
option = "patience"
"""


@pytest.fixture
def tuner(tmp_path: Path) -> Iterator[Tuner]:
    (tmp_path / "config.toml").write_text(CONFIG)
    (tmp_path / "params.toml").write_text(PARAMS)
    engine = tmp_path / "optional"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{ENGINE}"\n')
    engine.chmod(0o755)
    made = Tuner(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}", tmp_path / "engines")
    yield made
    made.kill_all()


def test_one_binary_is_tuned_over_uci_and_travels_through_the_database(tuner: Tuner) -> None:
    master = tuner.master()
    tuner.wait_for_tables()
    worker = tuner.worker()
    assert (master.wait(60), worker.wait(60)) == (0, 0), tuner.words()
    assert tuner.ask("doctor").returncode == 0
    with open_store(tuner.url) as store:
        run = store.run()
        rows = store.iterations(run.id)
        assert len({sha for it in rows for sha in (it.plus_sha256, it.minus_sha256)}) == 1
        assert run.applied == 3 and run.source_sha256 is None
        assert store.engine_bytes(rows[-1].plus_sha256)
    assert {it.plus_parameters["calm"] > it.minus_parameters["calm"] for it in rows}


def test_an_option_that_the_engine_does_not_have_pauses_the_run_with_the_reason(
    tuner: Tuner,
) -> None:
    (tuner.folder / "params.toml").write_text(PARAMS.replace('option = "patience"', ""))
    tuner.master()
    tuner.wait_for_tables()
    tuner.worker("--idle-timeout", "30")
    tuner.wait_until("paused", 1, seconds=60)
    status = tuner.status()
    assert "calm" in status["reason"], status["reason"]
    assert status["games"]["games"] == 0
