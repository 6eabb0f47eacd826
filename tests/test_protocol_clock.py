"""Two workers whose clocks are a day off: whatever they believe, nothing is lost or doubled.

Their clock is set by a small library that is loaded before any other, made here by the compiler.
On PostgreSQL times are the server's, so nothing at all may come of it. With an SQLite file whoever
writes is the server: leases are then too long or have run out when they begin, which costs games
played again and never a wrong count.
"""

import multiprocessing
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from crew import LONG, Crew, assert_undisturbed, of_six, working
from fleet import Post, play

SECONDS = 30 if LONG else 2
DAY = 86_400
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {
    const char *text = getenv("CLOCK_SHIFT");
    return text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int failed = real(now, zone);
    if (!failed) now->tv_sec += shift();
    return failed;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to make another clock with")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "shim.c").write_text(SHIM)
    made = folder / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-o", made, folder / "shim.c", "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return made


def test_the_shim_works(shim: Path) -> None:
    ask = ["date", "-u", "+%s"]
    told = subprocess.run(
        ask, env={"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(DAY)}, capture_output=True, check=True
    )
    assert DAY - 60 < int(told.stdout) - time.time() < DAY + 60


def wrong_by(seconds: int, post: Post, shim: Path, monkeypatch: pytest.MonkeyPatch) -> Crew:
    """One worker with such a clock, in a process that was started with it."""
    with monkeypatch.context() as patch:
        patch.setenv("LD_PRELOAD", str(shim))
        patch.setenv("CLOCK_SHIFT", str(seconds))
        return Crew([(play, (post,))], multiprocessing.get_context("spawn"))


@pytest.mark.timeout(600)
def test_a_clock_that_is_a_day_off(database_url, shim, monkeypatch, figures):
    began, post = time.monotonic(), Post(database_url)
    with working(database_url, of_six(post)) as works:
        others = [wrong_by(shift, post, shim, monkeypatch) for shift in (DAY, -DAY)]
        try:
            time.sleep(SECONDS)
            for crew in (works.crew, *others):
                crew.check()
            works.finish()
            games = assert_undisturbed(works)
        finally:
            for crew in others:
                crew.end()
    figures(games=games, seconds=time.monotonic() - began)
