"""Disks that are full or can only be read, under real masters and workers on an SQLite file.

Every program says which it is, nothing is lost, and the run goes on once there is room again.
"""

import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from asking import Store
from console import PATIENCE
from engines.faulty import wait_until
from invariants import broken
from shell import Shell
from trials import UNHURRIED, OneIteration
from tuner import ENDLESS, uci_tuner

from spsa.core.scoring import Tally
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus

GAMES = 4


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with 16 MiB; only root may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=755", "tmpfs", disk]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def fill(disk: Path) -> Path:
    """Take what room there is, to the last page; the file that took it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for piece in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(piece))
            except OSError:
                continue
    return ballast


@pytest.mark.slow
def test_a_disk_that_is_full_in_the_middle_of_a_run(small_disk, tmp_path):
    tuner = uci_tuner(tmp_path / "tuner", f"sqlite:///{small_disk}/spsa.db", iterations=ENDLESS)
    master = tuner.master()
    tuner.wait_for_work()
    worker = tuner.worker()
    tuner.wait_for_games(2)
    ballast = fill(small_disk)
    for process in (master, worker):
        process.until(lambda one=process: "spsa.db: database or disk is full" in one.log)
    with Store(tuner.url) as store:  # who only looks, can
        assert store.run().status is RunStatus.RUNNING
    ballast.unlink()
    last = tuner.end_soon()
    tuner.ends(master, worker)
    with Store(tuner.url) as store, closing(Shell(tuner.url)) as sql:
        run = store.run()
        assert (run.applied, store.totals(run.id).tally.games) == (last, last * GAMES)
        assert check_run(store, run) == [] and broken(sql) == []
        assert sql("PRAGMA integrity_check")[0][0] == "ok"


@pytest.fixture
def fleet(sqlite_url, tmp_path):
    return OneIteration(sqlite_url, tmp_path)


@pytest.mark.slow
def test_a_worker_whose_cache_has_no_room_leaves_the_batch_to_others(small_disk, fleet, tmp_path):
    fleet.open(UNHURRIED)
    fill(small_disk)
    unlucky = fleet.start("--max-batches", 1, "--engines-cache", small_disk / "cache")
    assert unlucky.ended() == 1
    assert "cannot be written: No space left on device" in unlucky.log
    other = str(tmp_path / "another machine")  # has a secret of its own
    lucky = fleet.start("--max-batches", 2, XDG_CACHE_HOME=other)
    assert lucky.ended() == 0, lucky.log
    with Store(fleet.url) as store, closing(Shell(fleet.url)) as sql:
        assert store.iterations(store.run().id)[0].tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
        assert check_run(store, store.run()) == [] and broken(sql) == []


@pytest.mark.slow
def test_a_killed_worker_leaves_no_folders(fleet, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    fleet.open(UNHURRIED, gate=tmp_path / "closed")
    worker = fleet.start(TMPDIR=str(temporary))
    wait_until(lambda: len(list(temporary.glob("*/*"))) >= 2, PATIENCE)
    worker.kill()
    wait_until(lambda: not list(temporary.iterdir()), PATIENCE)
