"""Results are purged while a master and two workers play on, and the purge is killed on the way."""

import random
import re
import time

import pytest
from asking import Store
from invariants import broken
from tuner import ENDLESS, Tuner, uci_tuner

from spsa.config.projection import says
from spsa.lifecycle import RunStatus

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def tuner(tmp_path, database_url):
    return uci_tuner(tmp_path, database_url, iterations=ENDLESS)


@pytest.mark.slow
@pytest.mark.long_on("sqlite")
def test_a_machine_is_purged_from_a_run_that_goes_on(tuner, sql):
    master = tuner.master()
    tuner.wait_for_run()
    workers = [tuner.worker(), tuner.worker()]
    tuner.wait_for_results(3)
    bad = most_busy(tuner)
    said = tuner.ask("purge", "--worker", bad, "--yes").stdout
    removed = re.search(r"purge 1: (\d+) games", said)
    assert removed is not None
    dice = random.Random(1)
    for number in (1, 4):
        purging = tuner.start("purge", "--iteration", number, "--yes")
        time.sleep(dice.uniform(0.2, 1.2))  # whatever it is at by then
        purging.kill()
        purging.wait()
    tuner.ask("doctor")
    last = tuner.end_soon()
    tuner.ends(master)
    tuner.ends(*workers, codes=(0, 3))  # one that never was the first to ask had nothing to do
    tuner.ask("purge", "--iteration", last, "--yes")
    tuner.ask("doctor")
    assert broken(sql) == []
    with Store(tuner.url) as store:
        run = store.run()
        assert (run.status, run.applied) == (RunStatus.FINISHED, last)
        assert 2 <= run.purges <= 4
        assert says(tuner.folder / "params.toml", run.theta)
        theta = tuner.ask_json("replay")["parameters"]
        assert {p["name"]: p["value"] for p in theta} == dict(run.theta)
        removed_games = sum(purge.games for purge in store.purges(run.id))
    assert tuner.ask_json("status")["purged_games"] == removed_games >= int(removed[1]) + 4


def most_busy(tuner: Tuner) -> str:
    """The worker that has played the most."""
    workers = tuner.ask_json("status")["workers"]
    return str(max(workers, key=lambda worker: worker["games"])["name"])
