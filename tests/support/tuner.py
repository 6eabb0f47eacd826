"""A real tuner in a folder: the bundled engine, cargo, a master and workers as processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asking import Store
from shell import Shell

from spsa.errors import IllegalTransition, TuningError
from spsa.report.status import STATUS
from spsa.report.status import status as status_of
from spsa.report.table import record

ROOT = Path(__file__).resolve().parents[2]

ENDLESS = 1000
"""Iterations that nobody plays; a run that has to last longer than what is done to it has them."""

PATIENCE = 240.0
"""Seconds; what is not done by then on the slowest machine never will be."""

CONFIG = """
[run]
name = "small"
seed = 7
[database]
url = "{url}"
[time_control]
kind = "nodes"
low = 150
high = 250
[games]
games_per_iteration = 8
batch_size = 2
iterations_in_flight = 2
[spsa]
max_iterations = {iterations}
[build]
source_path = "{engine}"
engines_path = "{engines}"
bench = false
[engine.options]
Hash = 1
[adjudication]
max_moves = 60
"""

PARAMS = """\
# the comments of a person
[knight_value_opening]
value = 560  # an opinion
min = 300
max = 900
step = 40
constant = "KNIGHT_VALUE_PAIR.0"

[see_prune_margin]
value = 20
min = 5
max = 80
step = 5
"""


@dataclass(slots=True)
class Tuner:
    """The files of one run in `folder`, and the processes started for it."""

    folder: Path
    url: str
    engines: Path
    iterations: int = 4
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def write_files(self) -> None:
        text = CONFIG.format(
            url=self.url,
            iterations=self.iterations,
            engine=self.engine_source(),
            engines=self.engines.as_posix(),
        )
        (self.folder / "config.toml").write_text(text)
        (self.folder / "params.toml").write_text(PARAMS)

    @staticmethod
    def engine_source() -> str:
        return (ROOT / "engine").as_posix()

    def master(self, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start("run", *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command of spsa-master that goes on for a while."""
        return self._start("spsa.master", *arguments)

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        usual = ("--spsa", "-c", "1", "--lease", "10", "--engines-cache", self.cache)
        return self._start("worker", *usual, *(arguments or ("--once",)))

    def worker_on(self, machine: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A worker with the caches, and so the secret, of a machine of its own."""
        caches = (self.folder / machine).as_posix()
        usual = ("--spsa", "-c", "1", "--lease", "10", "--engines-cache", f"{caches}/engines")
        return self._start("worker", *usual, *arguments, XDG_CACHE_HOME=caches)

    def server(self, port: int) -> subprocess.Popen[bytes]:
        """The server of remote workers, at `address(port)`."""
        return self.start("serve", "--port", str(port))

    @staticmethod
    def address(port: int) -> str:
        return f"http://127.0.0.1:{port}"

    def invite(self, machine: str, *arguments: str) -> str:
        """The token of a machine that is invited now."""
        found = self.ask("workers", "invite", machine, *arguments)
        assert found.returncode == 0, found.stderr
        return found.stdout.partition("SPSA_TOKEN=")[2].split()[0]

    def remote_worker(
        self, port: int, machine: str, token: str, *arguments: str
    ) -> subprocess.Popen[bytes]:
        """A worker that knows the server's address and a token, and no database."""
        caches = (self.folder / machine).as_posix()
        usual = ("--spsa", "--server", self.address(port), "-c", "1")
        usual = (*usual, "--engines-cache", f"{caches}/engines")
        known = {"SPSA_TOKEN": token, "DATABASE_URL": "", "XDG_CACHE_HOME": caches}
        return self._start("worker", *usual, *arguments, **known)

    @property
    def cache(self) -> str:
        """Where the workers keep what they run."""
        return (self.folder / "cache").as_posix()

    def ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command of spsa-master that ends by itself."""
        return subprocess.run(
            [sys.executable, "-m", "spsa.master", *arguments],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def status(self) -> Mapping[str, Any]:
        found = self.ask("status", "--json")
        return dict(json.loads(found.stdout)) if found.returncode == 0 else {}

    def wait_until(self, reached: str, at_least: int, seconds: float = PATIENCE) -> None:
        """Wait until a number of the status is large enough, while any process is left."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            over = bool(self.processes) and all(one.poll() is not None for one in self.processes)
            if self._number(reached) >= at_least:
                return
            if over:
                break
            time.sleep(0.05)
        raise AssertionError(f"{reached} never reached {at_least}\n{self.account()}")

    def wait_for_tables(self) -> None:
        """Wait until the master has made the database and its run."""
        self.wait_until("max_iterations", 1)

    def wait_for_work(self) -> None:
        """Wait until the master has opened an iteration: there is something to play."""
        self.wait_until("open", 1)

    def ended(self, process: subprocess.Popen[bytes], seconds: float = PATIENCE) -> int:
        """The exit code of a process that ends by itself; all that is known where it does not."""
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = _command_of(process)
        raise AssertionError(f"`{late}` had not ended after {seconds:g} s\n{self.account()}")

    def expire(self) -> None:
        """Time passes for the lease of a master that was killed."""
        with Store(self.url) as store, closing(Shell(self.url)) as sql:
            sql.expire(run_id=store.run(None).id)

    def end_soon(self) -> int:
        """Let the run end with little more than it has opened; its iterations then."""
        with Store(self.url) as store:
            run = store.run(None)
            while True:
                last = 3 + max(it.k or 0 for it in store.iterations(run.id))
                with suppress(IllegalTransition):  # more were opened just now: asked again
                    store.extend(run.name, "test", last)
                    return last

    def kill_all(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self.processes.clear()

    def _look(self) -> Mapping[str, Any]:
        """As `status`, without a process, which a busy machine starts too late to see a run."""
        try:
            with Store(self.url) as store:
                return record(STATUS, status_of(store, store.run(None)))
        except TuningError:
            return {}

    def _number(self, name: str) -> int:
        status = self._look()
        match name:
            case "paused":
                return int(status.get("status") == "paused")
            case "games":
                return int(status.get("games", {}).get("games", 0))
            case "open":
                return len(status.get("open", ()))
        return int(status.get(name, 0))

    def words(self) -> str:
        """All that the processes have said."""
        return "\n".join(log.read_text() for log in self._logs())

    def account(self) -> str:
        """Who runs, who has left and how, how the run stands, and what everybody said."""
        processes = [f"{_state_of(process)}: {_command_of(process)}" for process in self.processes]
        status = self._look()
        shown = ("run", "status", "reason", "iterations_applied", "games", "open", "workers")
        standing = [f"{name}: {status[name]}" for name in shown if name in status]
        said = [f"{log.name}:\n{log.read_text()}" for log in self._logs()]
        return "\n".join([*processes, *standing, *said])

    def _logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.log"))

    def _start(self, module: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{module}-{len(self.processes)}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=self.folder,
                env=self._environment() | env,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def _environment(self) -> dict[str, str]:
        path = str(Path(__file__).parent)
        return {**os.environ, "PYTHONPATH": path, "SPSA_DEBUG": "1", "DATABASE_URL": self.url}


def _command_of(process: subprocess.Popen[bytes]) -> str:
    return " ".join(map(str, process.args[2:]))


def _state_of(process: subprocess.Popen[bytes]) -> str:
    code = process.poll()
    return "runs" if code is None else f"exit {code}"
