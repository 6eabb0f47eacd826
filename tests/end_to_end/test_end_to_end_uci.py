"""Values sent by setoption into one binary: everything but the delivery is the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tuner import Tuner
from uci_tuner import CONFIG, PARAMS, uci_tuner

from spsa.db import Store

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def tuner(tmp_path: Path) -> Iterator[Tuner]:
    made = uci_tuner(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}")
    yield made
    made.kill_all()


@pytest.mark.slow
def test_one_binary_is_tuned_over_uci_and_travels_through_the_database(tuner: Tuner) -> None:
    master = tuner.master()
    tuner.wait_for_tables()
    worker = tuner.worker()
    assert (tuner.ended(master), tuner.ended(worker)) == (0, 0), tuner.account()
    assert tuner.ask("doctor").returncode == 0
    with Store(tuner.url) as store:
        run = store.run()
        rows = store.iterations(run.id)
        assert len({sha for it in rows for sha in (it.plus_sha256, it.minus_sha256)}) == 1
        assert run.applied == 3 and run.source_sha256 is None
        assert store.file(rows[-1].plus_sha256)
    assert {it.plus_parameters["calm"] > it.minus_parameters["calm"] for it in rows}


def test_what_the_engine_would_not_obey_is_refused_before_anything_is_played(tuner: Tuner) -> None:
    wrong = PARAMS.replace('option = "patience"', "").replace("max = 50", "max = 51", 1)
    (tuner.folder / "params.toml").write_text(wrong)
    with (tuner.folder / "config.toml").open("a") as config:
        config.write("[engine.options]\nHash = 16\n")
    refused = tuner.ask("run")
    said = refused.stderr.splitlines()
    assert refused.returncode == 2, refused.stderr
    assert [line.partition(";")[0] for line in said] == [
        f"config.toml:{CONFIG.count(chr(10)) + 2}: [engine.options] "
        "the engine would not accept it: it declares no option 'Hash'",
        f"{tuner.folder}/params.toml:2: [boldness] "
        "the engine would not accept it: boldness = 51 is outside 0 .. 50",
        f"{tuner.folder}/params.toml:8: [calm] "
        "the engine would not accept it: it declares no option 'calm'",
        "3 faults",
    ]
    assert not (tuner.folder / "spsa.db").exists()
