"""Workers and a master whose clocks are a day off, and step: nothing is lost or doubled.

On PostgreSQL times are the server's, so nothing at all may come of it. All processes of an SQLite
file have the one clock of their machine; tests/end_to_end/test_trials_clocks.py steps that one.
"""

import multiprocessing
import subprocess
import time
from pathlib import Path

import pytest
from fleet import ProcessSettings, lead, play
from processes import LONG, Processes, assert_undisturbed, of_six, working
from wrong_clock import WrongClock

SECONDS = 30 if LONG else 2
DAY = 86_400


def test_the_clock_is_really_wrong(tmp_path: Path) -> None:
    clock = WrongClock(tmp_path / "clock")
    for offset, days in (("+1d", 1), ("-1d", -1)):
        clock.step(offset)
        with clock.inside("UTC"):
            told = subprocess.run(["date", "+%s"], capture_output=True, check=True)
        assert int(told.stdout) - time.time() == pytest.approx(DAY * days, abs=60)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_clocks_that_are_a_day_off_and_step(postgresql_url, tmp_path, figures):
    began, post = time.monotonic(), ProcessSettings(postgresql_url)
    spawn = multiprocessing.get_context("spawn")
    ahead, behind = WrongClock(tmp_path / "ahead", "+1d"), WrongClock(tmp_path / "behind", "-1d")
    with working(postgresql_url, of_six(post)) as works:
        with ahead.inside("Asia/Kolkata"):
            others = [Processes([(play, (post,)), (lead, (post, "m3"))], spawn)]
        with behind.inside("America/New_York"):
            others.append(Processes([(play, (post,))], spawn))
        try:
            time.sleep(SECONDS / 2)
            ahead.step("-1d")
            behind.step("+1d")
            time.sleep(SECONDS / 2)
            for processes in (works.processes, *others):
                processes.check()
            works.finish()
            games = assert_undisturbed(works)
        finally:
            for processes in others:
                processes.end()
    figures(games=games, seconds=time.monotonic() - began)
