"""What an engine's search comes to: its move, and what of its last words anybody asks for."""

import re
from typing import NamedTuple, Self

from spsa.errors import EngineFault

MATE = 100_000
"""Centipawns of a mate at hand; a mate in n moves is worth n less."""

_SCORE = re.compile(rb" score (cp|mate) (-?\d+)")
_NODES = re.compile(rb" nodes (\d+)")
_DEPTH = re.compile(rb" depth (\d+)")
_BESTMOVE = re.compile(rb"bestmove\s+([a-h][1-8][a-h][1-8][qrbn]?)(?=\s|$)")


class Answer(NamedTuple):
    """One move: UCI text, the last score (mover's centipawns), and the seconds it took.

    `info` is the line the score was in; the rest of it is read when somebody asks.
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
        return _number(_NODES, self.info)

    @property
    def depth(self) -> int:
        return _number(_DEPTH, self.info)


def last_info(heard: bytearray, end: int) -> bytes:
    """The last whole `info` line with a score in heard[:end]; empty when there is none."""
    while (at := heard.rfind(b" score ", 0, end)) >= 0:
        start = heard.rfind(b"\n", 0, at) + 1
        line = bytes(heard[start : heard.find(b"\n", at)])
        if line.startswith(b"info ") and not line.startswith(b"info string"):
            return line
        end = start
    return b""


def _no_move(line: bytes) -> EngineFault:
    said = repr(line[:80].decode("ascii", "replace"))
    words = line.split()
    given_up = len(words) < 2 or words[1] in (b"(none)", b"0000")
    return EngineFault("no move" if given_up else "garbage", said)


def _score(info: bytes) -> int | None:
    found = _SCORE.search(info)
    if found is None:
        return None
    value = int(found[2])
    if found[1] == b"cp":
        return value
    return MATE - value if value > 0 else -MATE - value


def _number(pattern: "re.Pattern[bytes]", info: bytes) -> int:
    found = pattern.search(info)
    return int(found[1]) if found else 0
