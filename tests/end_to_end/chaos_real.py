"""Real games under chaos: `make chaos-real ARGS="--minutes 10"`.

PostgreSQL, two masters, four workers, the bundled engine at fixed nodes. For so many minutes
workers and masters are killed (SIGKILL) and the server is crashed at random moments, then the run
may end. Afterwards the same run is played undisturbed, by one master and two workers on an SQLite
file: `doctor` has to find nothing in either, and theta and every count have to be the same.
"""

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
from postgres_server import CrashingServer, binaries
from tuner import Tuner

from spsa.db import Store
from spsa.db.tables import Iteration, Run

PLANNED = 5_000
DEEDS = {"kill a worker": 14, "crash the server": 4, "kill a master": 1}
"""How often each is done; a master's death costs half a minute until its lease has run out."""
RETRY_SECONDS = 600
Process = subprocess.Popen[bytes]


@dataclass(slots=True)
class Chaos:
    """A tuner whose processes are killed and replaced."""

    tuner: Tuner
    server: CrashingServer
    chance: random.Random
    masters: list[Process] = field(default_factory=list)
    workers: list[Process] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        self.masters.append(self.tuner.master())
        self.tuner.wait_for_tables()
        self.masters.append(self.tuner.master())
        self.workers += [self._worker() for _ in range(4)]

    def _worker(self) -> Process:
        return self.tuner.worker("--idle-timeout", "3600")

    def rage(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.chance.uniform(1.0, 6.0))
            (deed,) = self.chance.choices(list(DEEDS), list(DEEDS.values()))
            self.done[deed] += 1
            self._do(deed)
            self.replace_missing()

    def _do(self, deed: str) -> None:
        if deed == "crash the server":
            self.server.start()
        elif deed == "kill a worker":
            self.chance.choice(self.workers).kill()
        else:
            self.chance.choice(self.masters).kill()

    def replace_missing(self) -> None:
        """Also those that left of themselves, as a master that found another one at work does."""
        for processes, hire in ((self.masters, self.tuner.master), (self.workers, self._worker)):
            for place, process in enumerate(processes):
                if process.poll() is not None:
                    processes[place] = hire()


def say(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


def finish(tuner: Tuner, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Wait until a run has ended by itself."""
    end = time.monotonic() + RETRY_SECONDS
    while tuner.status().get("status") != "finished":
        if time.monotonic() > end:
            raise click.ClickException(f"the run did not end: {tuner.words()[-3000:]}")
        meanwhile()
        time.sleep(1)


def shorten(tuner: Tuner, iterations: int | None = None) -> int:
    """Let a run end with what it has opened, or after so many; how many it has then."""
    while True:
        wanted = iterations or opened(tuner) + 1
        if tuner.ask("set", "--iterations", str(wanted)).returncode == 0:
            return wanted


def opened(tuner: Tuner) -> int:
    run, iterations = outcome(tuner)
    return max((it.iteration_number for it in iterations), default=run.applied)


def outcome(tuner: Tuner) -> tuple[Run, list[Iteration]]:
    with Store(tuner.url) as store:
        run = store.run("small")
        return run, store.iterations(run.id)


def results(iterations: list[Iteration]) -> list[tuple[object, ...]]:
    """What was played and what came of it, without who did it when."""
    return [
        (it.k, it.opened_on, dict(it.plus_parameters), dict(it.minus_parameters), it.tally)
        for it in iterations
    ]


def assert_healthy(tuner: Tuner) -> None:
    doctor = tuner.ask("doctor")
    if doctor.returncode:
        raise click.ClickException(f"doctor: {doctor.stdout}{doctor.stderr}")
    say(f"doctor: {doctor.stdout.strip().splitlines()[-1]}")


@contextmanager
def prepared(folder: Path, url: str, engines: Path) -> Iterator[Tuner]:
    folder.mkdir()
    tuner = Tuner(folder, url, engines, iterations=PLANNED)
    tuner.write_files()
    try:
        yield tuner
    finally:
        tuner.kill_all()


def disturbed(
    folder: Path, engines: Path, seconds: float, seed: int
) -> tuple[Run, list[Iteration]]:
    """The run as it comes out of the chaos."""
    found = binaries()
    if found is None:
        raise click.ClickException("no PostgreSQL: no initdb in PATH")
    (folder / "cluster").mkdir()
    server = CrashingServer(found, folder / "cluster")
    server.start()
    try:
        with prepared(folder / "chaos", f"{server.url}/postgres", engines) as tuner:
            chaos = Chaos(tuner, server, random.Random(seed))
            chaos.begin()
            chaos.rage(seconds)
            say(", ".join(f"{deed}: {count}" for deed, count in chaos.done.items()))
            say(f"{opened(tuner)} iterations opened; letting the run end")
            shorten(tuner)
            finish(tuner, chaos.replace_missing)
            assert_healthy(tuner)
            return outcome(tuner)
    finally:
        server.crash()


def undisturbed(folder: Path, engines: Path, iterations: int) -> tuple[Run, list[Iteration]]:
    """The same run as nobody disturbs it."""
    url = f"sqlite:///{folder / 'quiet' / 'spsa.db'}"
    with prepared(folder / "quiet", url, engines) as tuner:
        tuner.master()
        tuner.wait_for_tables()
        shorten(tuner, iterations)
        for _ in range(2):
            tuner.worker("--idle-timeout", "3600")
        finish(tuner)
        assert_healthy(tuner)
        return outcome(tuner)


@click.command()
@click.option("--minutes", type=float, default=10.0, show_default=True)
@click.option("--seed", default=1, show_default=True, help="Decides who is killed when.")
def main(minutes: float, seed: int) -> None:
    """Play real games while everything is killed, and then the same ones in peace."""
    with tempfile.TemporaryDirectory(prefix="spsa-chaos-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        run, iterations = disturbed(folder, folder / "engines", 60 * minutes, seed)
        games = sum(it.games_played for it in iterations)
        say(f"{run.applied} iterations, {games} games; now the same in peace")
        quiet, expected = undisturbed(folder, folder / "engines", run.max_iterations)
    if (dict(run.theta), results(iterations)) != (dict(quiet.theta), results(expected)):
        say(f"theta {dict(run.theta)} instead of {dict(quiet.theta)}")
        sys.exit(1)
    say(f"the same theta to the bit: {dict(run.theta)}")
    if dict(run.theta) == dict(run.start_theta):
        say("but no result has moved it: the comparison says nothing")
        sys.exit(1)
    moved = {name: run.theta[name] - start for name, start in run.start_theta.items()}
    say(f"the results have moved it by {moved}")


if __name__ == "__main__":
    main()
