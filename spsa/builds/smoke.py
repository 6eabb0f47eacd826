"""Smoke test of a new binary: the UCI handshake and its bench, before a row names it.

Every wait has a deadline, and the test kills every process that it started.
"""

import errno
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from spsa.core.game_settings import Declarations, TimeControl, TimeKind, counted
from spsa.core.game_settings.numbers import MAX_NODES
from spsa.errors import EngineFault, SmokeTestFailed
from spsa.uci.system import kill, pipes

_PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
_TAIL = 65_536
_SHOWN_LINES = 12
_SLOWEST = 100.0  # nodes a second, as for the games of workers
_GRACE = 10.0
_LONGEST = 120.0
_OTHER_KIND = "; if the engine does not know this limit, set another `kind` in [time_control]"
_BUSY_TRIES = 40
_BUSY_PAUSE = 0.025
_COUNTS = (
    re.compile(r"nodes\s+searched\s*[:=]?\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
    re.compile(r"(\d[\d,']*)\s+nodes\b(?!\s*(?:/|per\b))", re.ASCII | re.IGNORECASE),
    re.compile(r"\b(?:nodes|bench)\s*[:=]\s*(\d[\d,']*)", re.ASCII | re.IGNORECASE),
)

Hear = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeTimeouts:
    """Seconds an engine is given for `uci` and `isready`, and for its bench."""

    handshake: float = 10.0
    bench: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSearch:
    """A `go` line, and the seconds until `bestmove` is due."""

    go: str
    seconds: float

    @classmethod
    def of(cls, control: TimeControl) -> Self:
        """The longest search of a run: an engine that ignores this limit would hang in games."""
        match control.kind:
            case TimeKind.NODES:
                return cls.of_nodes(int(control.high))
            case TimeKind.DEPTH:
                return cls(go=f"go depth {int(control.high)}", seconds=_LONGEST)
            case TimeKind.MOVETIME:
                go = f"go movetime {max(1, round(control.high * 1000))}"
                return cls(go=go, seconds=control.high + _GRACE)
        base, gain = (max(1, round(s * 1000)) for s in (control.high, control.increment))
        go = f"go wtime {base} btime {base} winc {gain} binc {gain}"
        return cls(go=go, seconds=control.high + _GRACE)

    @classmethod
    def of_nodes(cls, nodes: int) -> Self:
        return cls(go=f"go nodes {nodes}", seconds=min(nodes / _SLOWEST + _GRACE, _LONGEST))


class Silent(Exception):
    """The engine ended, or its deadline passed."""


class ProcessUnderTest:
    """One process of the engine under test; keeps the end of what it writes."""

    def __init__(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        assert process.stdout is not None
        self._process = process
        self._out = process.stdout
        pipes.open(self._out.fileno())
        self._wait = pipes.waiting(self._out.fileno())
        self.give(seconds)
        self._unheard = b""  # what has come since the last line that was looked at
        self.tail = b""

    def give(self, seconds: float) -> None:
        """Set the time for all that is read from now on."""
        self._seconds = seconds
        self._deadline = time.monotonic() + seconds

    def send(self, command: str) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{command}\n".encode())

    def expect(self, answer: str, hear: Hear = lambda line: None) -> str:
        """Read until a line begins with the word `answer`; `hear` gets each line before it."""
        while (line := self._heard(answer.encode(), hear)) is None:
            if not self._read():
                raise Silent(f"it {self._end()} without saying `{answer}`")
        return line.decode(errors="replace").strip()

    def _heard(self, answer: bytes, hear: Hear) -> bytes | None:
        *lines, rest = self._unheard.split(b"\n")
        for number, line in enumerate(lines, start=1):
            if line.split(maxsplit=1)[:1] == [answer]:
                self._unheard = b"\n".join([*lines[number:], rest])
                return line
            hear(line.decode(errors="replace").strip())
        found = rest.strip() == answer
        self._unheard = b"" if found else rest[-_TAIL:]
        return rest if found else None

    def search(self, position: str, first: FirstSearch, hear: Hear = lambda line: None) -> str:
        """The move that the engine finds. Raises Silent with what was asked."""
        self.give(first.seconds)
        self.send(f"{position}\n{first.go}")
        try:
            words = self.expect("bestmove", hear).split()
        except Silent as silent:
            remedy = _OTHER_KIND if time.monotonic() >= self._deadline else ""
            raise Silent(f"asked `{first.go}`, {silent}{remedy}") from None
        return words[1] if len(words) > 1 else ""

    def _end(self) -> str:
        """How it ended, as a shell would say it."""
        with suppress(subprocess.TimeoutExpired):
            status = self._process.wait(1.0)
            return f"was killed by signal {-status}" if status < 0 else f"exited with {status}"
        return "closed its output"

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
        kill(self._process)
        self.close_input()
        pipes.close(self._out.fileno())
        self._out.close()
        self._process.wait()

    def _read(self) -> bool:
        left = self._deadline - time.monotonic()
        if left <= 0 or not self._wait(left * 1000):
            raise Silent(f"it did not answer in time ({self._seconds:g} s)")
        chunk = pipes.read(self._out.fileno(), _TAIL)
        self.tail = (self.tail + chunk)[-_TAIL:]
        self._unheard += chunk
        return bool(chunk)


def examine(
    binary: Path,
    bench: bool | None,
    timeouts: SmokeTimeouts,
    arguments: Sequence[str] = (),
    first_search: FirstSearch | None = None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> int | None:
    """Shake hands with the engine, then ask for its bench; the node count if it has one.

    It also has to declare `options` with these values, and to obey the limit of `first_search`.

    Raises SmokeTestFailed with the end of the output. An engine without a bench passes unless
    `bench` is True; it is not asked for one if `bench` is False.
    """
    command = [str(binary), *arguments]
    declarations = Declarations()
    _shake_hands(command, timeouts.handshake, declarations.read_line, first_search)
    for name, value in options.items():
        if objection := declarations.objection(name, value):
            raise SmokeTestFailed(f"it does not accept an option of [engine]: {objection}")
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
        _shake_hands([str(binary), *arguments], timeouts.handshake, declarations.read_line)
    except EngineFault as fault:
        raise SmokeTestFailed(f"the UCI handshake failed: {fault}") from fault
    return declarations


def node_count(output: str) -> int | None:
    """The last node count a bench printed; lines of a search in progress do not count."""
    lines = [line for line in output.splitlines() if not line.lstrip().startswith("info ")]
    for line in reversed(lines):
        for pattern in _COUNTS:
            if found := pattern.search(line):
                return counted(re.sub(r"\D", "", found[1]), MAX_NODES)
    return None


def _shake_hands(
    command: Sequence[str],
    seconds: float,
    hear: Hear = lambda line: None,
    first_search: FirstSearch | None = None,
) -> None:
    """Take the engine to `readyok`; `hear` gets each line that it says before `uciok`."""
    with process_under_test(command, seconds) as process:
        try:
            process.send("uci")
            process.expect("uciok", hear)
            process.send("isready")
            process.expect("readyok")
            if first_search is not None:
                _obey(process, first_search)
            process.send("quit")
        except Silent as silent:
            words = f"the UCI handshake failed: {silent}"
            raise SmokeTestFailed(f"{words}\n{_last_lines(process.tail)}") from silent


def _obey(process: ProcessUnderTest, first: FirstSearch) -> None:
    """Search with the run's own limit. An engine that knows only its clock may move at once."""
    if _searches(process, first):
        return
    with suppress(Silent):
        if _searches(process, FirstSearch(go="go wtime 1000 btime 1000", seconds=5.0)):
            raise SmokeTestFailed(f"asked `{first.go}`, it moves without a search{_OTHER_KIND}")


def _searches(process: ProcessUnderTest, asked: FirstSearch) -> bool:
    heard: list[str] = []
    process.search("position startpos", asked, heard.append)
    return any(" depth " in line for line in heard)


def _bench(command: Sequence[str], seconds: float) -> tuple[int | None, str]:
    with process_under_test([*command, "bench"], seconds) as process, suppress(Silent):
        process.read_out()
    output = process.tail.decode(errors="replace")
    return node_count(output), _last_lines(process.tail)


@contextmanager
def process_under_test(argv: Sequence[str], seconds: float) -> Iterator[ProcessUnderTest]:
    """A process in an empty directory of its own, killed with its whole group at the end."""
    with tempfile.TemporaryDirectory(prefix="spsa-smoke-") as directory:
        process = ProcessUnderTest(_start(argv, Path(directory)), seconds)
        try:
            yield process
        finally:
            process.end()


def _start(argv: Sequence[str], directory: Path) -> subprocess.Popen[bytes]:
    """Start the engine; retry while another process still has the file open for writing.

    A process that is forked while the file is written inherits the descriptor until it runs its
    own program, and the kernel starts no file that a process can write (ETXTBSY).
    """
    for _ in range(_BUSY_TRIES):
        try:
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
        except OSError as error:
            if error.errno != errno.ETXTBSY:
                raise SmokeTestFailed(f"it cannot be started here: {error.strerror}") from error
            time.sleep(_BUSY_PAUSE)
    raise SmokeTestFailed("another process keeps the file open for writing")


def _last_lines(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines()[-_SHOWN_LINES:]
    return "\n".join(f"  | {line}" for line in lines) if lines else "  | (it wrote nothing)"
