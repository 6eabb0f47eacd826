"""Processes that an engine leaves outside its group end with it, and with a killed worker."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from console import ROOT, environment, worker
from engines.faulty import (
    LOSER,
    PATIENT,
    WINNER,
    alive,
    children,
    engine,
    open_files,
    running_with,
    spec,
    start_book,
    started,
    wait_until,
)

from spsa.uci.engine import UciEngine
from spsa.uci.process import StopSignal
from spsa.uci.spawning import EngineLimits
from spsa.uci.system import ENGINE_ID, OrphanReaper, isolation, orphan_reaper

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


def _unavailable() -> str:
    with isolation() as found:
        return "" if found and found.wrapper else "neither bwrap nor unshare makes PID namespaces"


pid_namespaces = pytest.mark.skipif(bool(_unavailable()), reason=_unavailable() or "-")


@pytest.fixture
def stop_signal() -> Iterator[StopSignal]:
    made = StopSignal()
    yield made
    made.close()


@pytest.fixture
def strays(tmp_path: Path) -> Iterator[Callable[[], list[int]]]:
    """The daemons of engines of this test that run; killed in the end, whatever happened."""

    def left() -> list[int]:
        return running_with(str(tmp_path / "strays"))

    yield left
    for pid in left():
        os.kill(pid, signal.SIGKILL)


def has_id(pid: int) -> bool:
    """Whether it has the environment of an engine."""
    return f"{ENGINE_ID}=".encode() in Path(f"/proc/{pid}/environ").read_bytes()


def animal(folder: Path, name: str = "minus", moves: str = LOSER, **more: object) -> Path:
    return engine(folder, name, moves=moves, stray=folder / "strays", **more)


def with_a_stray(folder: Path, stop_signal: StopSignal, reaper: OrphanReaper | None) -> UciEngine:
    return started(spec(animal(folder)), stop_signal, PATIENT, EngineLimits(orphan_reaper=reaper))


def test_a_daemon_ends_with_the_engine_that_left_it_and_no_other(
    tmp_path: Path, stop_signal: StopSignal, strays: Callable[[], list[int]]
) -> None:
    with orphan_reaper() as reaper:
        first = with_a_stray(tmp_path, stop_signal, reaper)
        wait_until(lambda: len(strays()) == 1)
        (one,) = strays()
        second = with_a_stray(tmp_path, stop_signal, reaper)
        wait_until(lambda: len(strays()) == 2)
        (other,) = set(strays()) - {one}
        assert os.getsid(one) not in (os.getsid(0), os.getsid(first.pid))
        first.close()
        wait_until(lambda: not alive(one))
        assert alive(other) and alive(second.pid)
        second.close()
        wait_until(lambda: not alive(other))


def test_without_an_orphan_reaper_it_stays(
    tmp_path: Path, stop_signal: StopSignal, strays: Callable[[], list[int]]
) -> None:
    with_a_stray(tmp_path, stop_signal, None).close()
    wait_until(lambda: len(strays()) == 1)


def test_leaving_waits_until_nothing_is_left(
    tmp_path: Path, stop_signal: StopSignal, strays: Callable[[], list[int]]
) -> None:
    files, family = open_files(), children()
    with orphan_reaper() as reaper:
        first = with_a_stray(tmp_path, stop_signal, reaper)
        wait_until(lambda: len(strays()) == 1 and has_id(strays()[0]))
    assert not strays()
    assert not alive(first.pid)
    first.close()
    assert (open_files(), children()) == (files, family)


def test_other_processes_live_on(tmp_path: Path) -> None:
    """Other children of the same process, even those with an id of another worker."""
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    plain = subprocess.Popen(sleep)
    dead = subprocess.Popen([sys.executable, "-S", "-c", ""])
    with orphan_reaper() as other, orphan_reaper() as reaper:
        assert other is not None and reaper is not None
        foreign_id = other.new_id()
        foreign = subprocess.Popen(sleep, env={ENGINE_ID: foreign_id})
        namesake = subprocess.Popen(sleep, env={ENGINE_ID: f"{reaper.new_id()}0"})
        wait_until(lambda: has_id(namesake.pid) and has_id(foreign.pid))
        for unused in (reaper.new_id(), "", "x" * 100):
            reaper.engine_ended(unused)
        other.engine_ended(foreign_id)
        assert foreign.wait(240) == -signal.SIGKILL
        assert namesake.poll() is None
    assert namesake.wait(240) == -signal.SIGKILL
    assert plain.poll() is None
    plain.kill()
    plain.wait()
    assert dead.wait(240) == 0


def test_a_killed_reaper_does_not_stop_the_worker(
    tmp_path: Path, stop_signal: StopSignal, strays: Callable[[], list[int]]
) -> None:
    before = children()
    with orphan_reaper() as reaper:
        (pid,) = children() - before
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid))
        with_a_stray(tmp_path, stop_signal, reaper).close()
    assert children() == before


def test_signals_of_the_terminal_and_of_services_do_not_end_it(tmp_path: Path) -> None:
    before = children()
    with orphan_reaper():
        (pid,) = children() - before
        wait_until(lambda: os.getsid(pid) == pid and _ignores(pid, signal.SIGQUIT))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(pid, number)
        assert alive(pid)


def _ignores(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(ignored >> (number - 1) & 1)


WAYS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "PID namespaces": ((), {}),
    "no tools": ((), {"PATH": "/none"}),
    "no sandbox": (("--no-sandbox",), {}),
}
ways = pytest.mark.parametrize(
    "way", [pytest.param("PID namespaces", marks=pid_namespaces), "no tools", "no sandbox"]
)


def match(folder: Path, way: str, **switches: object) -> "subprocess.Popen[bytes]":
    """A real match of an engine that always wins and one that leaves daemons behind."""
    engines = [engine(folder, "plus", moves=WINNER), animal(folder, **switches)]
    words, variables = WAYS[way]
    words += ("--book", str(start_book(folder)), "--nodes", "3000", "--games", "2")
    return subprocess.Popen(
        worker(*map(str, engines), *words),
        cwd=ROOT,
        env=environment(**variables),
        stdout=subprocess.DEVNULL,
    )


@pytest.mark.slow
@ways
def test_a_match_leaves_nothing(tmp_path: Path, strays: Callable[[], list[int]], way: str) -> None:
    assert match(tmp_path, way).wait(240) == 0
    assert len((tmp_path / "strays").read_text().split()) == 1
    assert not strays()


@ways
def test_a_match_that_is_killed_leaves_nothing(
    tmp_path: Path, strays: Callable[[], list[int]], way: str
) -> None:
    pid = tmp_path / "pid"
    playing = match(tmp_path, way, fault="hang", at_ply=1, pid=pid)
    wait_until(lambda: pid.exists() and len(strays()) == 1)
    playing.kill()
    playing.wait()
    wait_until(lambda: not strays() and not running_with(f"--pid={pid}"))


@pid_namespaces
def test_a_killed_match_leaves_not_even_what_dropped_its_environment(
    tmp_path: Path, strays: Callable[[], list[int]]
) -> None:
    pid = tmp_path / "pid"
    playing = match(tmp_path, "PID namespaces", fault="hang", at_ply=1, pid=pid, bare=True)
    wait_until(lambda: pid.exists() and len(strays()) == 1)
    playing.kill()
    playing.wait()
    wait_until(lambda: not strays())
