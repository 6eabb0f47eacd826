"""Disks that are full or can only be read, under real masters and workers on an SQLite file.

Every program says which it is, nothing is lost, and the run goes on once there is room again.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from asking import Store
from engines.faulty import wait_until
from invariants import broken
from shell import Shell
from trials import UNHURRIED, OneIteration
from tuner import ENDLESS, PATIENCE, Tuner
from uci_tuner import uci_tuner

from spsa.core.scoring import Tally
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus

GAMES = 4


@contextmanager
def playing(folder: Path, database: Path) -> Iterator[Tuner]:
    """A real master with work for others, which does not end by itself."""
    database.mkdir(exist_ok=True)
    tuner = uci_tuner(folder, f"sqlite:///{database}/spsa.db", iterations=ENDLESS)
    try:
        tuner.master()
        tuner.wait_for_work()
        yield tuner
    finally:
        tuner.kill_all()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
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


def wait_for_words(tuner: Tuner, words: str, of: str) -> None:
    """Wait until both kinds of program, or one, have said so."""
    logs = [log for kind in of.split() for log in tuner.folder.glob(f"{kind}-*.log")]
    assert len(logs) >= len(of.split())
    try:
        wait_until(lambda: all(words in log.read_text() for log in logs), PATIENCE)
    except TimeoutError:
        raise AssertionError(f"nobody said {words!r}\n{tuner.account()}") from None


def assert_all_is_well(tuner: Tuner) -> None:
    """The run ends by itself when it may, with every game counted once."""
    last = tuner.end_soon()
    codes = [tuner.ended(process) for process in tuner.processes]
    assert set(codes) == {0}, tuner.account()
    assert "Traceback" not in tuner.words()
    with Store(tuner.url) as store, closing(Shell(tuner.url)) as sql:
        run = store.run()
        assert (run.applied, store.totals(run.id).tally.games) == (last, last * GAMES)
        assert check_run(store, run) == [] and broken(sql) == []
        assert sql("PRAGMA integrity_check")[0][0] == "ok"


@pytest.mark.slow
def test_a_disk_that_is_full_in_the_middle_of_a_run(small_disk: Path, tmp_path: Path) -> None:
    with playing(tmp_path / "tuner", small_disk) as tuner:
        tuner.worker()
        tuner.wait_until("games", 2)
        ballast = fill(small_disk)
        said = "spsa.db: database or disk is full"
        wait_for_words(tuner, said, of="spsa.master worker")
        with Store(tuner.url) as store:  # who only looks, can
            assert store.run().status is RunStatus.RUNNING
        ballast.unlink()
        assert_all_is_well(tuner)


@pytest.fixture
def fleet(sqlite_url: str, tmp_path: Path) -> OneIteration:
    return OneIteration(sqlite_url, tmp_path)


@pytest.mark.slow
def test_a_worker_whose_cache_has_no_room_leaves_the_batch_to_others(
    small_disk: Path, fleet: OneIteration, tmp_path: Path
) -> None:
    fleet.open(UNHURRIED)
    fill(small_disk)
    unlucky = fleet.start("--max-batches", 1, "--engines-cache", small_disk / "cache")
    _, told = unlucky.communicate(timeout=PATIENCE)
    assert unlucky.returncode == 1 and "cannot be written: No space left on device" in told, told
    other = str(tmp_path / "another machine")  # has a secret of its own
    lucky = fleet.start("--max-batches", 2, XDG_CACHE_HOME=other)
    _, told = lucky.communicate(timeout=PATIENCE)
    assert lucky.returncode == 0, told
    with Store(fleet.url) as store, closing(Shell(fleet.url)) as sql:
        assert store.iterations(store.run().id)[0].tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))
        assert check_run(store, store.run()) == [] and broken(sql) == []


@pytest.mark.slow
def test_a_killed_worker_leaves_no_folders(fleet: OneIteration, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    fleet.open(UNHURRIED, gate=tmp_path / "closed")
    worker = fleet.start(TMPDIR=str(temporary))
    wait_until(lambda: len(list(temporary.glob("*/*"))) >= 2, PATIENCE)
    worker.kill()
    worker.communicate()
    wait_until(lambda: not list(temporary.iterdir()), PATIENCE)
