"""Two masters that are started together: one moves the run, the other stands by."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from shell import Shell
from tuner import PATIENCE, Tuner
from uci_tuner import uci_tuner

pytestmark = pytest.mark.timeout(600)

STANDING_BY = "standing by to take over"


Pair = tuple[Tuner, Tuner]


@pytest.fixture(params=["sqlite", "postgresql"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Two masters' folders on one fresh database: one folder twice, and with a server two."""
    url = request.getfixturevalue(f"empty_{request.param}_url")
    first = uci_tuner(tmp_path / "first", url, iterations=2)
    alone = request.param == "sqlite"
    second = first if alone else uci_tuner(tmp_path / "second", url, iterations=2)
    yield first, second
    first.kill_all()
    second.kill_all()


def said(pair: Pair) -> str:
    first, second = pair
    return first.words() + ("" if second is first else second.words())


def start_together(pair: Pair) -> dict[int, subprocess.Popen[bytes]]:
    """Both masters, by their process ids, once one of them stands by."""
    masters = [tuner.master() for tuner in pair]
    end = time.monotonic() + PATIENCE
    while STANDING_BY not in said(pair):
        assert time.monotonic() < end, said(pair)
        time.sleep(0.1)
    return {master.pid: master for master in masters}


def leader_of(url: str) -> int:
    """The process of the master that holds the lease: its id is host, process and a random word."""
    with closing(Shell(url)) as sql:
        ((master_id,),) = sql("SELECT master_id FROM spsa_run")
    return int(master_id.split("-")[-2])


@pytest.mark.slow
def test_the_one_that_stands_by_takes_over_from_one_that_was_killed(pair: Pair) -> None:
    tuner, _ = pair
    masters = start_together(pair)
    leader = masters.pop(leader_of(tuner.url))
    (other,) = masters.values()
    assert (leader.poll(), other.poll()) == (None, None)
    leader.kill()
    leader.wait()
    tuner.expire()
    tuner.worker()
    assert tuner.ended(other) == 0, said(pair)
    assert "Traceback" not in said(pair)
    assert said(pair).count(STANDING_BY) == 1
    assert tuner.ask("doctor").returncode == 0
