"""One machine that cannot start the engine, among four that can: the run ends as without it."""

from pathlib import Path

import pytest
from asking import Store
from engines.faulty import wait_until
from invariants import broken
from shell import Shell
from tuner import Tuner
from uci_tuner import uci_tuner

from spsa.db.tables import Run
from spsa.lifecycle import RunStatus

pytestmark = pytest.mark.timeout(600)

GOOD = ("one", "two", "three", "four")


def prepared(folder: Path, url: str, name: str) -> Tuner:
    """A run in which what is played follows from the seeds alone; no engine starts in `bad`."""
    tuner = uci_tuner(folder, url, name=name, iterations=3, think=0.02)
    config = (folder / "config.toml").read_text()
    config = config.replace("games_per_iteration = 4", "games_per_iteration = 16")
    (folder / "config.toml").write_text(
        config.replace("iterations_in_flight = 2", "iterations_in_flight = 1")
    )
    engine = folder / "optional"
    broken_in = '#!/bin/sh\ncase "$0" in */bad/*) exit 1;; esac\n'
    engine.write_text(engine.read_text().replace("#!/bin/sh\n", broken_in))
    return tuner


def is_at_work(tuner: Tuner) -> bool:
    """Whether a worker has come."""
    with Store(tuner.url) as store:
        return bool(store.workers())


def has_set_aside(tuner: Tuner) -> bool:
    """Whether the master has set a machine aside."""
    with Store(tuner.url) as store:
        return bool(store.machines_set_aside())


def disturb(tuner: Tuner) -> None:
    """Play beside a machine that fails every batch until it is set aside."""
    tuner.worker_on("bad")
    wait_until(lambda: is_at_work(tuner))
    tuner.worker_on(GOOD[0])
    wait_until(lambda: has_set_aside(tuner))


def finished(tuner: Tuner, name: str, *, disturbed: bool) -> Run:
    """The run, played to its end by the good machines."""
    moving = tuner.master()
    tuner.wait_for_work()
    try:
        if disturbed:
            disturb(tuner)
        for machine in GOOD[1:] if disturbed else GOOD:
            tuner.worker_on(machine)
        assert tuner.ended(moving) == 0, tuner.account()
    finally:
        tuner.kill_all()
    with Store(tuner.url) as store:
        run = store.run(name)
    assert run.status is RunStatus.FINISHED, tuner.account()
    return run


@pytest.mark.slow
@pytest.mark.long_on("sqlite")
def test_a_run_with_one_bad_machine_ends_as_if_it_were_not_there(
    tmp_path: Path, database_url: str
) -> None:
    tuner = prepared(tmp_path / "disturbed", database_url, "disturbed")
    disturbed = finished(tuner, "disturbed", disturbed=True)
    alone = prepared(tmp_path / "quiet", database_url, "quiet")
    quiet = finished(alone, "quiet", disturbed=False)
    assert disturbed.theta == quiet.theta
    assert disturbed.theta != disturbed.start_theta

    shell = Shell(database_url)
    assert broken(shell) == []
    paused = shell("SELECT 1 FROM spsa_event WHERE kind = 'paused'")
    (aside,) = shell("SELECT machine, sha256, reason FROM spsa_set_aside")
    blamed = shell("SELECT DISTINCT machine FROM spsa_failure WHERE failures > 0")
    shell.close()
    assert paused == []
    assert [row.machine for row in blamed] == [aside.machine]
    assert aside.sha256 is not None and "that other machines can play" in aside.reason
    assert f"machine {aside.machine} is set aside" in tuner.words()
