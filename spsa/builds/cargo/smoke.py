"""Smoke test of a new binary: the UCI handshake and its bench, before a row names it.

Every wait has a deadline, and the test kills every process that it started.
"""

import errno
import os
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from spsa.core.game_settings import Declarations, counted
from spsa.core.game_settings.numbers import MOST_NODES
from spsa.errors import EngineFault, SmokeTestFailed

_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
_TAIL = 65_536
_SHOWN_LINES = 12
_BUSY_TRIES = 40
_BUSY_PAUSE = 0.025
_COUNTS = (
    re.compile(r"nodes\s+searched\s*[:=]?\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
    re.compile(r"(\d[\d,']*)\s+nodes\b(?!\s*(?:/|per\b))", re.ASCII | re.IGNORECASE),
    re.compile(r"\b(?:nodes|bench)\s*[:=]\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeTimeouts:
    """Seconds an engine is given for `uci` and `isready`, and for its bench."""

    handshake: float = 10.0
    bench: float = 60.0


class _Silent(Exception):
    """The engine ended, or its deadline passed."""


class _Trial:
    """One process of the engine under test; keeps the end of what it writes."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        self._process = process
        self._deadline = deadline
        self._unheard = b""  # what has come since the last line that was looked at
        self.tail = b""

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{command}\n".encode())

    def expect(self, answer: str, hear: Callable[[str], None] = lambda line: None) -> None:
        """Read until there is a line `answer`; `hear` gets each line before it."""
        while not self._heard(answer.encode(), hear):
            if not self._read():
                raise _Silent(f"it ended without saying `{answer}`")

    def _heard(self, answer: bytes, hear: Callable[[str], None]) -> bool:
        *lines, rest = self._unheard.split(b"\n")
        for number, line in enumerate(lines, start=1):
            if line.strip() == answer:
                self._unheard = b"\n".join([*lines[number:], rest])
                return True
            hear(line.decode(errors="replace").strip())
        self._unheard = b"" if rest.strip() == answer else rest[-_TAIL:]
        return rest.strip() == answer

    def read_out(self) -> None:
        """Send `quit`, close the input, and read until the engine closes its output."""
        self.send("quit")
        self.close_input()
        while self._read():
            self._unheard = b""

    def close_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        """Kill the engine's process group, whose id is still its own until it is reaped."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.close_input()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.wait()

    def _read(self) -> bool:
        assert self._process.stdout is not None
        left = self._deadline - time.monotonic()
        if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
            raise _Silent("it did not answer in time")
        chunk = os.read(self._process.stdout.fileno(), _TAIL)
        self.tail = (self.tail + chunk)[-_TAIL:]
        self._unheard += chunk
        return bool(chunk)


def examine(
    binary: Path, bench: bool | None, timeouts: SmokeTimeouts, arguments: Sequence[str] = ()
) -> int | None:
    """Shake hands with the engine, then ask for its bench; the node count if it has one.

    Raises SmokeTestFailed with the end of the output. An engine without a bench passes unless
    `bench` is True; it is not asked for one if `bench` is False.
    """
    command = [str(binary), *arguments]
    _shake_hands(command, timeouts.handshake)
    if bench is False:
        return None
    nodes, words = _bench(command, timeouts.bench)
    if nodes is None and bench:
        raise SmokeTestFailed(f"`bench` gave no node count within {timeouts.bench:g} s\n{words}")
    return nodes


def declared_options(
    binary: Path, timeouts: SmokeTimeouts, arguments: Sequence[str] = ()
) -> Declarations:
    """The options that the engine declares. Raises SmokeTestFailed if the handshake fails."""
    declarations = Declarations()
    try:
        command = [str(binary), *arguments]
        _shake_hands(command, timeouts.handshake, declarations.read_line)
    except EngineFault as fault:
        raise SmokeTestFailed(f"the UCI handshake failed: {fault}") from fault
    return declarations


def node_count(output: str) -> int | None:
    """The last node count a bench printed; lines of a search in progress do not count."""
    lines = [line for line in output.splitlines() if not line.lstrip().startswith("info ")]
    for line in reversed(lines):
        for pattern in _COUNTS:
            if found := pattern.search(line):
                return counted(re.sub(r"\D", "", found[1]), MOST_NODES)
    return None


def _shake_hands(
    command: Sequence[str], seconds: float, hear: Callable[[str], None] = lambda line: None
) -> None:
    """Take the engine to `readyok`; `hear` gets each line that it says before `uciok`."""
    with _trial(command, seconds) as trial:
        try:
            trial.send("uci")
            trial.expect("uciok", hear)
            trial.send("isready")
            trial.expect("readyok")
            trial.send("quit")
        except _Silent as silent:
            words = f"the UCI handshake failed: {silent} ({seconds:g} s)"
            raise SmokeTestFailed(f"{words}\n{_last_lines(trial.tail)}") from silent


def _bench(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    with _trial([*command, "bench"], seconds) as trial, suppress(_Silent):
        trial.read_out()
    output = trial.tail.decode(errors="replace")
    return node_count(output), _last_lines(trial.tail)


@contextmanager
def _trial(argv: Sequence[str], seconds: float) -> Iterator[_Trial]:
    """A process in an empty directory of its own, killed with its whole group at the end."""
    with tempfile.TemporaryDirectory(prefix="spsa-smoke-") as directory:
        trial = _Trial(_start(argv, Path(directory)), time.monotonic() + seconds)
        try:
            yield trial
        finally:
            trial.end()


def _start(argv: Sequence[str], directory: Path) -> subprocess.Popen[bytes]:
    """Start the engine; retry while another process still has the file open for writing.

    A process that is forked while the file is written inherits the descriptor until it runs its
    own program, and the kernel starts no file that a process can write (ETXTBSY).
    """
    for _ in range(_BUSY_TRIES):
        try:
            return _spawn(argv, directory)
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise SmokeTestFailed(f"it cannot be started here: {error.strerror}") from error
            time.sleep(_BUSY_PAUSE)
    raise SmokeTestFailed("another process keeps the file open for writing")


def _spawn(argv: Sequence[str], directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv,
        bufsize=0,
        cwd=directory,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _last_lines(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines()[-_SHOWN_LINES:]
    return "\n".join(f"  | {line}" for line in lines) if lines else "  | (it wrote nothing)"
