"""Runs programs in their own process groups, each with a deadline, and can stop all of them."""

import re
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from spsa.errors import BuildFailed, TuningError
from spsa.uci.process import kill

_INSTALL = "install Rust (https://rustup.rs), or put the directory that has it into PATH"
_ELSE = "install it, or put the directory that has it into PATH"
_SECRET = re.compile(r"DATABASE_URL.*|SPSA_.*|PG[A-Z]+")
_ANSWER_SECONDS = 120.0


class BuildCancelled(TuningError):
    """The build was stopped by `cancel`; the source may be fine."""

    exit_code = 130


class Commands:
    """Runs programs for any number of threads; after `stop` none runs and none starts.

    They get the environment without the variables that give access to the database, because a build
    runs programs of the source.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = {k: v for k, v in environment.items() if not _SECRET.fullmatch(k)}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()
        self._guard = threading.Lock()

    def stop(self) -> None:
        with self._guard:
            self._stopped.set()
            for process in self._running:
                _kill(process)

    def wait(self, seconds: float) -> None:
        """Sleep; raises BuildCancelled as soon as `stop` is called."""
        if self._stopped.wait(seconds):
            raise BuildCancelled("the build was stopped")

    def run(
        self, argv: Sequence[str], cwd: Path, logs: Path, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """Run `argv` in `cwd` and return what it wrote, which is also left in `logs`.

        The output goes to files, so that a daemon which the program starts (a compiler cache)
        cannot hold the caller by keeping a pipe open. Raises BuildFailed if the program is not
        there or does not end within `timeout` seconds.
        """
        logs.mkdir(parents=True, exist_ok=True)
        out, err = logs / "stdout.log", logs / "stderr.log"
        for old in (out, err):
            old.unlink(missing_ok=True)  # which may be a link by now
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = self._start(argv, cwd, stdout.fileno(), stderr.fileno())
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired as late:
            words = " ".join(argv[:2])
            raise BuildFailed(f"`{words}` had not ended after {timeout:g} seconds") from late
        finally:
            with self._guard:
                _kill(process)
                self._running.discard(process)
            process.wait()
        self.wait(0)
        return subprocess.CompletedProcess(argv, process.returncode, _text(out), _text(err))

    def answer(self, argv: Sequence[str], cwd: Path) -> str:
        """The output of a quick program; BuildFailed with its error output if it fails."""
        with tempfile.TemporaryDirectory(prefix="spsa-build-") as logs:
            output = self.run(argv, cwd, Path(logs), _ANSWER_SECONDS)
        if output.returncode != 0:
            raise BuildFailed(f"`{' '.join(argv)}` failed: {output.stderr.strip()}")
        return output.stdout

    def _start(
        self, argv: Sequence[str], cwd: Path, stdout: int, stderr: int
    ) -> subprocess.Popen[bytes]:
        with self._guard:
            self.wait(0)
            try:
                process = subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise BuildFailed(_not_started(argv[0], error)) from error
            self._running.add(process)
            return process


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a process that still runs."""
    if process.poll() is None:
        kill(process)


def _not_started(program: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        remedy = _INSTALL if program in ("cargo", "rustc") else _ELSE
        return f"`{program}` is not found; {remedy}"
    return f"`{program}` cannot be started: {error.strerror}"
