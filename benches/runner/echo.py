"""A UCI engine without a thought: it plays by rote, and writes down when it was asked and answered.

    python -S -E echo.py MOVES_FILE LOG_FOLDER SECONDS

The moves are a whole game from the start position. For each move it logs three 64-bit integers:
the ply, and the nanoseconds of the monotonic clock, which all processes share, just after `go` was
read and just before `bestmove` was written.
"""

import os
import sys
import time
from array import array
from pathlib import Path


def main() -> None:
    moves = Path(sys.argv[1]).read_text().split()
    log = Path(sys.argv[2]) / f"{Path(sys.argv[4]).name}-{os.getpid()}"
    pause = float(sys.argv[3])
    seen = array("q")
    replies = [f"info depth 1 score cp 0 nodes 1\nbestmove {move}\n".encode() for move in moves]
    ply = 0
    for line in sys.stdin.buffer:
        if line.startswith(b"go"):
            asked = time.monotonic_ns()
            if pause:
                time.sleep(pause)
            seen.extend((ply, asked, time.monotonic_ns()))
            os.write(1, replies[ply])
        elif line.startswith(b"position"):
            ply = max(0, line.count(b" ") - 2)
        elif line.startswith(b"isready"):
            os.write(1, b"readyok\n")
        elif line.startswith(b"ucinewgame"):
            seen = _kept(log, seen)
        elif line.startswith(b"uci"):
            os.write(1, b"id name echo\nuciok\n")
        elif line.startswith(b"quit"):
            break
    _kept(log, seen)


def _kept(log: Path, seen: "array[int]") -> "array[int]":
    with log.open("ab") as file:
        seen.tofile(file)
    return array("q")


if __name__ == "__main__":
    main()
