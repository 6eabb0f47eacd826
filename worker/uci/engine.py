"""One UCI engine: the handshake, options, and the only two things read of a search.

Of all that an engine prints while it thinks, the `bestmove` line and the last line with a score
are read; the rest is passed over unparsed. Every wait has a deadline and every line a length.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from spsa.core.game_settings import Declarations
from spsa.errors import EngineFault
from worker.uci.process import Alarm, EngineProcess, Overdue
from worker.uci.search_reply import SearchReply, last_info
from worker.uci.spawning import EngineLimits

LINE_CAP = 65_536
_MARK = b"\nbestmove"


@dataclass(frozen=True, slots=True, kw_only=True)
class UciTimeouts:
    """How long a worker waits, in seconds.

    `start` for `uciok`, `ready` for `readyok`, `grace` beyond the time of a move before the engine
    counts as hung, `quit` for it to leave by itself, `depth` for a move limited by depth only.
    An engine that searches fewer than `slowest` nodes a second hangs when it plays by nodes.
    """

    start: float = 30.0
    ready: float = 30.0
    grace: float = 1.5
    quit: float = 1.0
    depth: float = 300.0
    slowest: float = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """What to start: an executable file, and the options it gets before its games."""

    name: str
    path: str
    options: Mapping[str, str]


class Limit(NamedTuple):
    """One move's allowance: the `go` line, seconds to wait, then seconds to obey `stop`."""

    go: bytes
    seconds: float
    stop_seconds: float = 0.0


class UciEngine:
    """A running engine; made, used and closed by one thread.

    Faults are EngineFault with the engine's name in the detail.
    """

    def __init__(
        self, spec: EngineSpec, alarm: Alarm, timeouts: UciTimeouts, confinement: EngineLimits
    ) -> None:
        """Start the program and ask who it is; `introduce` has to follow, when there is time."""
        self.name = spec.name
        self.path = spec.path
        self.options: dict[str, str] = {}
        self._timeouts = timeouts
        self._heard = bytearray(b"\n")  # what is not yet read of it, from the end of a line on
        self._declared = Declarations()
        self._process = EngineProcess(spec.path, alarm, confinement)
        try:
            self._process.write(b"uci\n")
        except EngineFault:
            self.close(at_once=True)
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def introduce(self, spec: EngineSpec) -> None:
        """Wait until it has said who it is, and send it the options of `spec`."""
        self._await_line(b"uciok", self._timeouts.start, self._declared.read_line)
        self.configure(spec)

    def configure(self, spec: EngineSpec) -> None:
        """Send those of `spec`'s options that differ from what the engine has."""
        self.name = spec.name
        new = {n: v for n, v in spec.options.items() if self.options.get(n) != v}
        self._process.write(b"".join(self._declared.command(n, v) for n, v in new.items()))
        self.options.update(new)

    def serves(self, spec: EngineSpec) -> bool:
        """Whether this process can play as `spec`: no option would keep an older value."""
        return self.path == spec.path and self.options.keys() <= spec.options.keys()

    def prepare(self) -> None:
        """Ask for a new game; `await_ready` waits, so that two engines can get ready at once."""
        self._process.write(b"ucinewgame\nisready\n")

    def settle(self) -> None:
        """Ask whether it has done with its game; `await_ready` hears what it still had to say.

        A second answer may come so late that it is taken for that to the next question. The answer
        to that one is then left over, and however many follow, one is left when the game is over.
        """
        self._process.write(b"isready\n")

    def await_ready(self) -> None:
        self._await_line(b"readyok", self._timeouts.ready, _refuse_stray_move)

    def search(self, position: bytes, limit: Limit) -> SearchReply:
        """Let it move. Seconds run from writing `go` to having read `bestmove`."""
        self._refuse_unasked_move()
        started = time.monotonic()
        self._process.write(position + b"\n" + limit.go)
        line, info = self._bestmove(started, limit)
        seconds = time.monotonic() - started
        return SearchReply.of(line, info, seconds)

    def close(self, *, at_once: bool = False) -> None:
        self._process.close(b"quit\n", 0.0 if at_once else self._timeouts.quit)

    def _await_line(self, wanted: bytes, seconds: float, hear: Callable[[str], None]) -> None:
        deadline = time.monotonic() + seconds
        try:
            while not self._heard_line(wanted, hear):
                if time.monotonic() > deadline:
                    raise Overdue
                _refuse_endless(self._heard)
                self._process.read(self._heard, deadline)
        except Overdue:
            raise EngineFault("hang", f"no {wanted.decode()} within {seconds:g} s") from None

    def _heard_line(self, wanted: bytes, hear: Callable[[str], None]) -> bool:
        """Go through the whole lines that have come, up to the wanted one."""
        *lines, rest = bytes(self._heard).split(b"\n")
        for number, line in enumerate(lines, start=1):
            if line.strip() == wanted:
                self._heard = bytearray(b"\n" + b"\n".join([*lines[number:], rest]))
                return True
            hear(line.decode("utf-8", "replace").strip())
        self._heard = bytearray(b"\n" + rest)
        return False

    def _refuse_unasked_move(self) -> None:
        heard = self._heard
        heard += self._process.unread()
        if len(heard) > 1:
            if b"bestmove" in heard:
                raise EngineFault("garbage", "a second bestmove nobody asked for")
            del heard[1:]

    def _bestmove(self, started: float, limit: Limit) -> tuple[bytes, bytes]:
        """The `bestmove` line and the last line with a score before it."""
        try:
            return self._read_search(started + limit.seconds)
        except Overdue:
            if not limit.stop_seconds:
                raise EngineFault("hang", f"no bestmove within {limit.seconds:.3g} s") from None
        return self._stopped_move(limit.stop_seconds)

    def _stopped_move(self, seconds: float) -> tuple[bytes, bytes]:
        # Its flag has fallen. Whether it is only late, or hangs, shows in whether it obeys.
        self._process.write(b"stop\n")
        try:
            return self._read_search(time.monotonic() + seconds)
        except Overdue:
            raise EngineFault("hang", f"no bestmove {seconds:.3g} s after stop") from None

    def _read_search(self, deadline: float) -> tuple[bytes, bytes]:
        heard, read, info, looked = self._heard, self._process.read, b"", 0
        while (start := heard.find(_MARK, looked)) < 0 or (end := heard.find(b"\n", start + 1)) < 0:
            if len(heard) > LINE_CAP:
                info = last_info(heard, heard.rfind(b"\n")) or info
                del heard[: heard.rfind(b"\n")]
                _refuse_endless(heard)
                # An engine that never pauses would let no wait time out.
                if time.monotonic() > deadline:
                    raise Overdue
            looked = start if start >= 0 else max(0, len(heard) - len(_MARK))
            read(heard, deadline)
        line = bytes(heard[start + 1 : end])
        info = last_info(heard, start) or info
        del heard[:end]
        return line, info


def _refuse_stray_move(line: str) -> None:
    if line.startswith("bestmove"):
        raise EngineFault("garbage", "a bestmove nobody asked for")


def _refuse_endless(heard: bytearray) -> None:
    if len(heard) > LINE_CAP:
        raise EngineFault("flood", f"a line of more than {LINE_CAP} bytes")
