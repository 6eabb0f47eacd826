"""Real games while workers of both kinds, the server, the master and the database are killed.

The engine's moves follow from its options, so the same run played in peace has the same counts, the
same theta and the same state of its rule, to the bit. The short form lasts seconds;
SPSA_TEST_LONG=1 goes on for ten minutes, and SPSA_TEST_SEED=n decides who is killed when.
"""

import os
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from console import PATIENCE, Running
from postgres_server import CrashingServer, binaries
from tuner import Tuner, uci_tuner

from benches.cluster import free_port
from spsa.lifecycle import RunStatus

LONG = bool(os.environ.get("SPSA_TEST_LONG"))
SECONDS = 600.0 if LONG else 12.0
SEED = int(os.environ.get("SPSA_TEST_SEED", 1))
MACHINES = ("first", "second")
VICTIMS = {"server": 6, "direct": 4, "first": 4, "second": 4, "master": 4}
"""How often each is killed."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 if LONG else 600)]


@dataclass(slots=True)
class Fleet:
    """A master, a server, a direct and two remote workers, each of which is replaced when it dies.

    `crash` crashes the database and starts it again, where it is a server.
    """

    tuner: Tuner
    crash: Callable[[], None] | None
    chance: random.Random
    port: int = field(default_factory=free_port)
    tokens: dict[str, str] = field(default_factory=dict)
    processes: dict[str, Running] = field(default_factory=dict)

    def begin(self):
        self.processes["master"] = self.tuner.master()
        self.tuner.wait_for_run()
        self.tokens = {machine: self.tuner.invite(machine) for machine in MACHINES}
        self.replace()

    def replace(self):
        for name in VICTIMS:
            process = self.processes.get(name)
            if process is None or process.poll() is not None:
                self.processes[name] = self._start(name)

    def _start(self, name):
        match name:
            case "master":
                return self.tuner.master()
            case "server":
                return self.tuner.start("serve", "--port", self.port)
            case "direct":
                return self.tuner.worker("--idle-timeout", 600)
        server = ("--server", f"http://127.0.0.1:{self.port}", "--idle-timeout", 600)
        known = {"SPSA_TOKEN": self.tokens[name], "DATABASE_URL": ""}
        return self.tuner.worker(*server, machine=name, **known)

    def rage(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(0.5, 2.0))
            if self.crash is not None and self.chance.random() < 0.15:
                self.crash()
            else:
                (victim,) = self.chance.choices(list(VICTIMS), list(VICTIMS.values()))
                self.processes[victim].kill()
            self.replace()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """A database, and how to crash it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'spsa.db'}", None
        return
    found = binaries()
    if found is None:
        pytest.skip("no PostgreSQL: no initdb in PATH")
    with tempfile.TemporaryDirectory(prefix="spsa-chaos-") as name:
        Path(name).chmod(0o755)  # the server has an account of its own
        (Path(name) / "cluster").mkdir()
        server = CrashingServer(found, Path(name) / "cluster")
        server.start()
        yield f"{server.url}/postgres", server.start
        server.crash()


def begun(folder, url, iterations):
    """A run of two time controls, each of which every second batch has."""
    tuner = uci_tuner(folder, url, iterations=iterations, think=0.002)
    two = "".join(f'[[time_control]]\nkind = "nodes"\nlow = {low}\n' for low in (200, 400))
    tuner.configure('[time_control]\nkind = "depth"\nlow = 1\n', two)
    return tuner


def test_whatever_is_killed_every_game_counts_once(tmp_path, place):
    url, crash = place
    tuner = begun(tmp_path / "chaos", url, 100_000)
    fleet = Fleet(tuner, crash, random.Random(SEED))
    fleet.begin()
    tuner.wait_for_work()
    fleet.rage(SECONDS)
    iterations = tuner.end_soon()
    end = time.monotonic() + PATIENCE
    while tuner.outcome()[0].status is not RunStatus.FINISHED:
        assert time.monotonic() < end, tuner.account()
        fleet.replace()
        time.sleep(0.5)
    run, played = tuner.outcome()
    tuner.ask("doctor")
    shown = tuner.ask_json("status")["time_controls"]
    assert [(row["time_control"], row["tally"]["games"]) for row in shown] == [
        ("nodes=200", 2 * iterations),
        ("nodes=400", 2 * iterations),
    ]
    tuner.kill_all()
    assert run.applied == iterations
    peace = begun(tmp_path / "peace", f"sqlite:///{tmp_path / 'peace.db'}", iterations)
    peace.tune()
    quiet, expected = peace.outcome()
    assert played == expected
    assert (run.theta, run.state) == (quiet.theta, quiet.state)
