"""One UCI engine: the handshake, the options, the searches.

Of the output of a search only the `bestmove` line and the last line with a score are parsed. Every
wait has a deadline, every line a maximum length, and every number a range.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from spsa.core.game_settings import (
    MATE,
    MAX_DEPTH,
    MAX_MATE,
    MAX_NODES,
    MAX_SCORE,
    TimeKind,
    clamped,
    counted,
)
from spsa.core.uci_options import Declarations
from spsa.errors import EngineFault
from spsa.uci.process import EngineProcess, Overdue
from spsa.uci.spawning import EngineLimits, EngineSpec

LINE_CAP = 65_536

UNREAD_CAP = 16_384
"""Bytes of commands that an engine may leave unread; a pipe holds 64 KiB."""

_BESTMOVE = b"\nbestmove"
_MOVE = re.compile(rb"bestmove\s+([a-h][1-8][a-h][1-8][qrbn]?)(?=\s|$)")
_SCORE = re.compile(rb" score (cp|mate) (-?\d+)(?=\s|$)")
_NODES = re.compile(rb" nodes (\d+)(?=\s|$)")
_DEPTH = re.compile(rb" depth (\d+)(?=\s|$)")
_SHOWN_BYTES = 80  # of a line that is no move


class Limit(NamedTuple):
    """The limit of one move: the `go` line, seconds to wait, then seconds to obey `stop`."""

    go: bytes
    seconds: float
    stop_seconds: float = 0.0


def fixed_limit(kind: TimeKind, value: float, limits: EngineLimits) -> Limit:
    """A limit that is no clock: seconds, nodes or plies of depth a move."""
    if kind is TimeKind.MOVETIME:
        go, seconds = f"go movetime {_milliseconds(value)}", value + limits.grace
    elif kind is TimeKind.NODES:
        go, seconds = f"go nodes {_whole(value)}", value / limits.slowest + limits.grace
    else:
        go, seconds = f"go depth {_whole(value)}", limits.depth
    return Limit(f"{go}\n".encode(), seconds)


def clock_line(left: Sequence[float], gains: Sequence[float], moves: int) -> bytes:
    """The `go` line with the clocks of Black and White, in seconds; without `moves` to go if 0."""
    black, white = map(_milliseconds, left)
    black_gain, white_gain = (round(gain * 1000) for gain in gains)
    go = f"go wtime {white} btime {black} winc {white_gain} binc {black_gain}"
    return f"{go} movestogo {moves}\n".encode() if moves else f"{go}\n".encode()


def _whole(value: float) -> int:
    return max(1, int(value))


def _milliseconds(seconds: float) -> int:
    # Some engines read a zero as "no limit", some divide by it.
    return max(1, round(seconds * 1000))


class SearchReply(NamedTuple):
    """One move: UCI text, the last score (mover's centipawns), and the seconds it took.

    `info` is the line with the score; `nodes` and `depth` are parsed from it when they are read.
    """

    move: str
    score: int | None
    seconds: float
    info: bytes = b""

    @classmethod
    def of(cls, line: bytes, info: bytes, seconds: float) -> Self:
        """From the `bestmove` line and the last line with a score before it; EngineFault."""
        found = _MOVE.match(line)
        if found is None:
            raise _no_move(line.strip())
        return cls(found[1].decode(), _score(info), seconds, info)

    @property
    def nodes(self) -> int:
        """0 where the engine gave no number, or an impossible one."""
        return _count(_NODES, self.info, MAX_NODES)

    @property
    def depth(self) -> int:
        return _count(_DEPTH, self.info, MAX_DEPTH)


def _refuse_stray_move(line: str) -> None:
    if line.startswith("bestmove"):
        raise EngineFault("garbage", "a bestmove without a go")


class UciEngine:
    """A running engine, made, used and closed by one thread. Its faults raise EngineFault."""

    def __init__(
        self, spec: EngineSpec, limits: EngineLimits, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        """Start the program and send `uci`; `complete_handshake` has to follow."""
        self.name = spec.name
        self.options: dict[str, str] = {}
        self.limits = limits.of_threads(spec.threads)
        self._program = spec.program
        self._output = bytearray(b"\n")  # not yet parsed; begins with the end of a line
        self.declared = Declarations()
        self._process = EngineProcess(spec.program, self.limits, is_stopped)
        with suppress(EngineFault):  # it has ended; the handshake says so
            self._process.write(b"uci\n")

    @property
    def last_lines(self) -> str:
        return self._process.last_lines

    def complete_handshake(self, spec: EngineSpec) -> None:
        """Wait for `uciok`, then send the options of `spec`."""
        self._await_line(b"uciok", self.limits.start, self.declared.read_line)
        self.configure(spec)

    def configure(self, spec: EngineSpec) -> None:
        """Send those of `spec`'s options that differ from what the engine has."""
        new = {n: v for n, v in spec.options.items() if self.options.get(n) != v}
        commands = b""
        for name, value in new.items():
            command = self.declared.command(name, value)
            if len(commands) + len(command) > UNREAD_CAP:
                self._process.write(commands + b"isready\n")
                self.await_ready()
                commands = b""
            commands += command
        self._process.write(commands)
        self.options.update(new)

    def serves(self, spec: EngineSpec) -> bool:
        """Whether this process can play as `spec`: no option would keep an older value."""
        return self._program == spec.program and self.options.keys() <= spec.options.keys()

    def prepare(self) -> None:
        """Announce a new game. `await_ready` waits, so that two engines can get ready at once."""
        self._process.write(b"ucinewgame\nisready\n")

    def settle(self) -> None:
        """Send `isready` after the game; `await_ready` then finds an extra `bestmove`.

        A second `bestmove` may come so late that it counts as the reply to the next `go`. The real
        reply to that is then left over in turn, so one `bestmove` is left at the end of the game.
        """
        self._process.write(b"isready\n")

    def await_ready(self) -> None:
        self._await_line(b"readyok", self.limits.ready, _refuse_stray_move)

    def ask(self, command: bytes, seconds: float) -> list[str]:
        """The lines that a command of the engine's own writes until the engine is ready again."""
        lines: list[str] = []
        self._process.write(command + b"isready\n")
        self._await_line(b"readyok", seconds, lines.append)
        return lines

    def search(self, position: bytes, limit: Limit) -> SearchReply:
        """Search for a move. The seconds run from writing `go` to having read `bestmove`."""
        self._refuse_unasked_move()
        started = time.monotonic()
        self._process.write(position + b"\n" + limit.go)
        line, info = self._bestmove(started, limit)
        seconds = time.monotonic() - started
        return SearchReply.of(line, info, seconds)

    def close(self, *, at_once: bool = False) -> None:
        self._process.close(b"quit\n", 0.0 if at_once else self.limits.quit)

    def _await_line(self, wanted: bytes, seconds: float, hear: Callable[[str], None]) -> None:
        """Wait for this line; `hear` gets each line before it."""
        deadline = time.monotonic() + seconds
        with suppress(Overdue):
            while time.monotonic() < deadline:
                for line in self._complete_lines():
                    if line == wanted:
                        return
                    hear(line.decode("utf-8", "replace"))
                _refuse_endless(self._output)
                self._process.read(self._output, deadline)
        raise EngineFault("hang", f"no {wanted.decode()} within {seconds:g} s")

    def _complete_lines(self) -> Iterator[bytes]:
        """Take the lines that have come whole out of the output, one by one."""
        while (end := self._output.find(b"\n", 1)) >= 0:
            line = bytes(self._output[:end]).strip()
            del self._output[:end]
            yield line

    def _refuse_unasked_move(self) -> None:
        if b"bestmove" in self._output + self._process.unread():
            raise EngineFault("garbage", "a second bestmove after one go")
        self._output = bytearray(b"\n")

    def _bestmove(self, started: float, limit: Limit) -> tuple[bytes, bytes]:
        """The `bestmove` line and the last line with a score before it."""
        with suppress(Overdue):
            return self._read_search(started + limit.seconds)
        if not limit.stop_seconds:
            asked = limit.go.decode().strip()
            raise EngineFault("hang", f"no bestmove within {limit.seconds:.3g} s of `{asked}`")
        # Its flag has fallen. An engine that obeys `stop` is late, another one hangs.
        self._process.write(b"stop\n")
        with suppress(Overdue):
            return self._read_search(time.monotonic() + limit.stop_seconds)
        raise EngineFault("hang", f"no bestmove {limit.stop_seconds:.3g} s after stop")

    def _read_search(self, deadline: float) -> tuple[bytes, bytes]:
        data, read, info, searched = self._output, self._process.read, b"", 0
        while True:
            start = data.find(_BESTMOVE, searched)
            end = data.find(b"\n", start + len(_BESTMOVE)) if start >= 0 else -1
            if end >= 0:
                break
            if len(data) > LINE_CAP:
                info = last_info(data, data.rfind(b"\n")) or info
                del data[: data.rfind(b"\n")]
                _refuse_endless(data)
                # With an engine that writes without a pause, no wait times out.
                if time.monotonic() > deadline:
                    raise Overdue
            searched = data.rfind(b"\n")  # the last line may still be cut off
            read(data, deadline)
        line = bytes(data[start:end]).lstrip()
        info = last_info(data, start) or info
        del data[:end]
        return line, info


def _refuse_endless(output: bytearray) -> None:
    if len(output) > LINE_CAP:
        raise EngineFault("flood", f"a line of more than {LINE_CAP} bytes")


def last_info(output: bytearray, end: int) -> bytes:
    """The last `info` line with a score in output[:end], which ends with a line, else nothing.

    Lines without a score are passed over, not parsed: this is done for every move.
    """
    while (at := output.rfind(b" score ", 0, end)) >= 0:
        start = output.rfind(b"\n", 0, at) + 1
        line = bytes(output[start : output.find(b"\n", at)])
        if line.startswith(b"info ") and not line.startswith(b"info string"):
            return line
        end = start
    return b""


def _no_move(line: bytes) -> EngineFault:
    text = repr(line[:_SHOWN_BYTES].decode("ascii", "replace"))
    words = line.split()
    given_up = len(words) < 2 or words[1] in (b"(none)", b"0000")
    return EngineFault("no move" if given_up else "garbage", text)


def _score(info: bytes) -> int | None:
    found = _SCORE.search(info)
    if found is None:
        return None
    if found[1] == b"cp":
        return clamped(found[2], MAX_SCORE)
    value = clamped(found[2], MAX_MATE)
    return MATE - value if value > 0 else -MATE - value


def _count(pattern: "re.Pattern[bytes]", info: bytes, most: int) -> int:
    found = pattern.search(info)
    number = counted(found[1], most) if found else None
    return number or 0
