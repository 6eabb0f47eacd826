"""Results are purged while a master and two workers play on, and the purge is killed on the way."""

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Store
from invariants import broken
from shell import Shell
from tuner import ENDLESS, Tuner
from uci_tuner import uci_tuner

from spsa.config.projection import says
from spsa.lifecycle import RunStatus

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture
def tuner(tmp_path: Path, database_url: str) -> Iterator[Tuner]:
    made = uci_tuner(tmp_path, database_url, iterations=ENDLESS)
    yield made
    made.kill_all()


@pytest.mark.slow
@pytest.mark.long_on("sqlite")
def test_a_machine_is_purged_from_a_run_that_goes_on(tuner: Tuner, sql: Shell) -> None:
    master = tuner.master()
    tuner.wait_for_tables()
    workers = [tuner.worker(), tuner.worker()]
    tuner.wait_until("iterations_applied", 3)
    bad = most_busy(tuner)
    removed = re.search(
        r"purge 1: (\d+) games", tuner.ask("purge", "--worker", bad, "--yes").stdout
    )
    assert removed is not None
    dice = random.Random(1)
    for number in (1, 4):
        kill_in_the_middle(tuner, dice.uniform(0.2, 1.2), "--iteration", str(number), "--yes")
    assert tuner.ask("doctor").returncode == 0, tuner.ask("doctor").stdout
    last = tuner.end_soon()
    ended = [tuner.ended(process) for process in (master, *workers)]
    # a worker that never was the first to ask had nothing to do, and says so
    assert ended[0] == 0 and set(ended[1:]) in ({0}, {0, 3}), tuner.account()
    purged = tuner.ask("purge", "--iteration", str(last), "--yes")
    assert purged.returncode == 0, purged.stderr
    doctor = tuner.ask("doctor")
    assert doctor.returncode == 0, doctor.stdout
    assert broken(sql) == []
    with Store(tuner.url) as store:
        run = store.run()
        assert (run.status, run.applied) == (RunStatus.FINISHED, last)
        assert 2 <= run.purges <= 4
        assert says(tuner.folder / "params.toml", run.theta)
        theta = json.loads(tuner.ask("replay", "--json").stdout)["parameters"]
        assert {p["name"]: p["value"] for p in theta} == dict(run.theta)
        removed_games = sum(purge.games for purge in store.purges(run.id))
    assert tuner.status()["purged_games"] == removed_games >= int(removed[1]) + 4


def most_busy(tuner: Tuner) -> str:
    """The worker that has played the most."""
    workers = tuner.status()["workers"]
    return str(max(workers, key=lambda worker: worker["games"])["name"])


def kill_in_the_middle(tuner: Tuner, seconds: float, *arguments: str) -> None:
    purging = tuner.start("purge", *arguments)
    time.sleep(seconds)  # whatever it is at by then
    purging.kill()
    purging.wait()
