"""An engine's reply to `go`: its move, and the numbers of its last `info` line.

`spsa.core.game_settings.numbers` has the range of every number.
"""

import re
from typing import NamedTuple, Self

from spsa.core.game_settings import clamped, counted
from spsa.core.game_settings.numbers import MATE, MAX_DEPTH, MAX_MATE, MAX_NODES, MAX_SCORE
from spsa.errors import EngineFault

_SCORE = re.compile(rb" score (cp|mate) (-?\d+)(?=\s|$)")
_NODES = re.compile(rb" nodes (\d+)(?=\s|$)")
_DEPTH = re.compile(rb" depth (\d+)(?=\s|$)")
_BESTMOVE = re.compile(rb"bestmove\s+([a-h][1-8][a-h][1-8][qrbn]?)(?=\s|$)")


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
        found = _BESTMOVE.match(line)
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


def last_info(output: bytearray, end: int) -> bytes:
    """The last complete `info` line with a score in output[:end]; empty when there is none."""
    while (at := output.rfind(b" score ", 0, end)) >= 0:
        start = output.rfind(b"\n", 0, at) + 1
        line = bytes(output[start : output.find(b"\n", at)])
        if line.startswith(b"info ") and not line.startswith(b"info string"):
            return line
        end = start
    return b""


def _no_move(line: bytes) -> EngineFault:
    text = repr(line[:80].decode("ascii", "replace"))
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
    return (found and counted(found[1], most)) or 0
