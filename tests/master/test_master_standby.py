"""Two masters that are started together: one moves the run, the other stands by."""

import subprocess
import sys
import time
from contextlib import closing
from math import inf
from pathlib import Path
from threading import Event
from unittest.mock import Mock

import pytest
from engines.faulty import wait_until
from shell import Shell
from tuner import Tuner, uci_tuner

from spsa.errors import MasterLeaseLost
from spsa.master.loop import MASTER_LEASE_SECONDS, acquired
from spsa.uci.linux import has_ended, this_process

pytestmark = pytest.mark.timeout(600)

STANDING_BY = "standing by to take over if it ends"


Pair = tuple[Tuner, Tuner]


@pytest.fixture(params=["sqlite", "postgresql"])
def pair(request, tmp_path):
    """Two masters' folders on one fresh database: one folder twice, and with a server two."""
    url = request.getfixturevalue(f"empty_{request.param}_url")
    first = uci_tuner(tmp_path / "first", url, iterations=2)
    alone = request.param == "sqlite"
    return first, first if alone else uci_tuner(tmp_path / "second", url, iterations=2)


def leader_of(url):
    """The process of the master that holds the lease, after the host in its id."""
    with closing(Shell(url)) as sql:
        ((master_id,),) = sql("SELECT master_id FROM spsa_run")
    return int(master_id.split("-")[-4])


def test_a_master_that_works_is_not_waited_for_by_a_validation(capsys, monkeypatch):
    monkeypatch.setattr("spsa.master.loop.POLL_SECONDS", 0.0)
    held = [MasterLeaseLost("the master m holds this run", end) for end in range(9)]
    asked = Mock(side_effect=held)
    with pytest.raises(MasterLeaseLost, match="m holds this run; stop it first"):
        acquired(Mock(acquire_master_lease=asked), Mock(), Event(), 32.0)
    assert asked.call_count == 3
    assert "standing by for up to 32 s to take over if it ends" in capsys.readouterr().err
    asked.side_effect = [*held, "the lease"]
    assert acquired(Mock(acquire_master_lease=asked), Mock(), Event(), inf) == "the lease"
    assert capsys.readouterr().err.count(STANDING_BY) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")
def test_a_process_has_ended_only_if_it_was_of_this_boot_and_container(monkeypatch):
    with subprocess.Popen(["sleep", "600"]) as process:
        host, _, _, system = this_process().rsplit("-", 3)
        start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        its = f"{host}-{process.pid}-{start}-{system}-0a1b2c3d"
        of_another = its.replace(system, system[::-1])
        before = f"{host}-{process.pid}-{int(start) - 1}-{system}-0a1b2c3d"
        assert [has_ended(one) for one in (its, before, of_another)] == [False, True, False]
        process.kill()
        # a process that was killed is there until its parent waits for it
        wait_until(lambda: has_ended(its))
    assert [has_ended(one) for one in (its, before, of_another)] == [True, True, False]
    unknown = ("", "m1", f"{host}-{process.pid}", this_process(), f"{this_process()}-0a1b2c3d")
    assert not any(map(has_ended, unknown))
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert this_process() == "", "/proc is that of another namespace"


@pytest.mark.slow
def test_the_one_that_stands_by_takes_over_from_one_that_was_killed(pair):
    tuner, _ = pair
    masters = {master.pid: master for master in [one.master() for one in pair]}
    wait_until(lambda: any(STANDING_BY in master.log for master in masters.values()))
    leader = masters.pop(leader_of(tuner.url))
    (other,) = masters.values()
    assert (leader.poll(), other.poll()) == (None, None)
    leader.kill()
    killed_at = time.monotonic()
    wait_until(lambda: leader_of(tuner.url) == other.pid)
    assert time.monotonic() - killed_at < MASTER_LEASE_SECONDS / 2
    assert "but its process has ended; taking over" in other.log
    tuner.worker()
    assert other.ended() == 0, other.log
    assert (leader.log + other.log).count(STANDING_BY) == 1
    tuner.ask("doctor")
