"""Clocks that step, full disks and listings of processes, under real masters and workers.

Whatever the disk or the clock does, every program says it, nothing is lost, and the run goes on. No
password is in what `ps` and /proc show: every process of the machine is looked at again and again,
as root where this is root. The two programs themselves have the database's URL in their
environment; nothing that they start has.
"""

import os
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from asking import Store
from console import FIXTURES, PATIENCE, Running
from engines.faulty import wait_until
from shell import Shell, broken
from trials import UNHURRIED, OneIteration
from tuner import ENDLESS, Tuner, texts, uci_tuner

from spsa.core.scoring import Tally
from spsa.db.url import parse_url
from spsa.history.doctor import check_run
from spsa.lifecycle import RunStatus

ITERATIONS, GAMES = 2, 4
SLEEP = FIXTURES / "sleep.c"


def step(clock, offset):
    """Within a second it is so much later, or earlier, by a clock: `+1d` or `-1d`."""
    draft = clock.with_suffix(".new")
    draft.write_text(offset)
    draft.replace(clock)


def variables(clock, zone):
    """What gives a process the time of day of a clock, in a time zone.

    libfaketime moves it; like a real step, that leaves the monotonic clock alone.
    """
    return {
        "TZ": zone,
        "LD_PRELOAD": f"{_real_sleep(clock)}:{_libfaketime()}",
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _libfaketime():
    """The library of the Debian package `faketime`."""
    found = [str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no libfaketime")
    return found[0]


def _real_sleep(clock):
    """A library with the kernel's clock_nanosleep."""
    library = clock.with_suffix(".so")
    subprocess.run(["cc", "-shared", "-fPIC", str(SLEEP), "-o", str(library)], check=True)
    return library


def sound(url):
    """The games of a run in whose rows neither the doctor nor SQL finds anything wrong."""
    with Store(url) as store, closing(Shell(url)) as sql:
        run = store.run()
        assert check_run(store, run) == [] and broken(sql) == []
        return run.applied, store.totals(run.id).tally.games


@pytest.mark.slow
def test_clocks_that_step_a_day_and_two_time_zones(sqlite_url, tmp_path):
    tuner = uci_tuner(tmp_path / "tuner", sqlite_url, iterations=ITERATIONS)
    masters, workers = tmp_path / "masters", tmp_path / "workers"
    step(masters, "+0")
    step(workers, "+1d")
    tuner.master(**variables(masters, "America/New_York"))
    tuner.wait_for_work()
    once = ("--once", "--lease", "60")
    tuner.worker(*once, **variables(workers, "Asia/Kolkata"))
    tuner.worker(*once, TZ="America/New_York")
    tuner.wait_for_games(2)
    step(masters, "-1d")
    step(workers, "-1d")
    tuner.ends(*tuner.processes, codes=(0, 3))
    assert sound(tuner.url) == (ITERATIONS, ITERATIONS * GAMES)


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


def fill(disk):
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
        process.until(lambda one=process: "spsa.db: database or disk is full; make room" in one.log)
    with Store(tuner.url) as store:  # who only looks, can
        assert store.run().status is RunStatus.RUNNING
    ballast.unlink()
    last = tuner.end_soon()
    tuner.ends(master, worker)
    assert sound(tuner.url) == (last, last * GAMES)
    with closing(Shell(tuner.url)) as sql:
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
    sound(fleet.url)
    with Store(fleet.url) as store:
        assert store.iterations(store.run().id)[0].tally == Tally(8, 0, 0, (0, 0, 0, 0, 4))


@pytest.mark.slow
def test_a_killed_worker_leaves_no_folders(fleet, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    fleet.open(UNHURRIED, gate=tmp_path / "closed")
    worker = fleet.start(TMPDIR=str(temporary))
    wait_until(lambda: len(list(temporary.glob("*/*"))) >= 2, PATIENCE)
    worker.kill()
    wait_until(lambda: not list(temporary.iterdir()), PATIENCE)


PASSWORD, OTHER = "correct-horse-battery", "staple-of-the-driver"


def listed(secrets):
    """The programs that run, and the command lines of those that show a secret to others."""
    seen, found = set(), set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if not (words := (process / "cmdline").read_bytes()):
                continue  # it is just being started
            environment = (process / "environ").read_bytes()
            seen.add(Path(words.split(b"\0")[0].decode(errors="replace")).name)
            ours = b"from spsa.cli import main" in words or b"\0-m\0worker\0" in words
            if any(one in words or (one in environment and not ours) for one in secrets):
                found.add(words.replace(b"\0", b" ").decode(errors="replace"))
    return seen, found


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_secret_is_listed_or_logged(postgresql_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", OTHER)
    url = parse_url(postgresql_url).set(password=PASSWORD).render_as_string(hide_password=False)
    shutil.copytree(FIXTURES / "crate", tmp_path / "engine")
    tuner = Tuner(tmp_path, url, *texts("margin"))
    seen, found = set(), set()

    def has_seen_all():
        """The compiler, and an engine of a worker's cache, whose file has the name of its hash."""
        programs, showing = listed([PASSWORD.encode(), OTHER.encode()])
        seen.update(programs)
        found.update(showing)
        return {"cargo", "rustc"} <= seen and any(len(name) == 64 for name in seen)

    tuner.master()
    tuner.worker("-v")
    wait_until(has_seen_all, PATIENCE)
    assert found == set()
    assert PASSWORD not in tuner.words() and OTHER not in tuner.words()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("shown", ["argument", "environment"])
def test_the_look_finds_what_is_there(shown):
    arguments = [PASSWORD] if shown == "argument" else []
    given = {"SECRET": PASSWORD} if shown == "environment" else {}
    Running(["sh", "-c", "sleep 60; true", "sh", *arguments], env={"PATH": os.defpath, **given})
    wait_until(lambda: bool(listed([PASSWORD.encode()])[1]))
