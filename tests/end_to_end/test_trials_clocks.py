"""A real master and real workers on one SQLite file, in two time zones, with clocks that step."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from asking import Store
from invariants import broken
from shell import Shell
from tuner import uci_tuner

from spsa.history.doctor import check_run

ITERATIONS, GAMES = 2, 4
SLEEP = """\
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until,
                    struct timespec *left) {
    return syscall(SYS_clock_nanosleep, clock, flags, until, left) ? errno : 0;
}
"""
"""A sleep is on the monotonic clock; libfaketime's own refuses one now and then with EINVAL."""


class WrongClock:
    """The time of day of what is started `inside`: an offset, `+1d` or `-1d`, that may change.

    libfaketime moves it; like a real step, that leaves the monotonic clock alone.
    """

    def __init__(self, file: Path, offset: str = "+0") -> None:
        self._libraries = f"{_real_sleep(file.parent)}:{_libfaketime()}"
        self._file = file
        self.step(offset)

    def step(self, offset: str) -> None:
        """Within a second it is so much later, or earlier, than it is."""
        draft = self._file.with_suffix(".new")
        draft.write_text(offset)
        draft.replace(self._file)

    @contextmanager
    def inside(self, zone: str) -> Iterator[None]:
        """What is started here has this clock for good, and this time zone."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", zone)
            patch.setenv("LD_PRELOAD", self._libraries)
            patch.setenv("FAKETIME_TIMESTAMP_FILE", str(self._file))
            patch.setenv("FAKETIME_CACHE_DURATION", "1")
            patch.setenv("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            yield


def _libfaketime() -> str:
    """The library of the Debian package `faketime`."""
    found = [str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    if not found:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no libfaketime")
    return found[0]


def _real_sleep(folder: Path) -> Path:
    """A library with the kernel's clock_nanosleep."""
    library = folder / "sleep.so"
    compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(compiler, input=SLEEP, text=True, check=True)
    return library


@pytest.mark.slow
def test_clocks_that_step_a_day_and_two_time_zones(sqlite_url, tmp_path):
    tuner = uci_tuner(tmp_path / "tuner", sqlite_url, iterations=ITERATIONS)
    masters, workers = WrongClock(tmp_path / "masters"), WrongClock(tmp_path / "workers", "+1d")
    with masters.inside("America/New_York"):
        tuner.master()
    tuner.wait_for_work()
    with workers.inside("Asia/Kolkata"):
        tuner.worker("--once", "--lease", "60")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        tuner.worker("--once", "--lease", "60")
    tuner.wait_for_games(2)
    masters.step("-1d")
    workers.step("-1d")
    tuner.ends(*tuner.processes, codes=(0, 3))
    with Store(tuner.url) as store, closing(Shell(tuner.url)) as sql:
        run = store.run()
        assert (run.applied, store.totals(run.id).tally.games) == (ITERATIONS, ITERATIONS * GAMES)
        assert check_run(store, run) == [] and broken(sql) == []
