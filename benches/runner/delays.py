"""What a runner adds to a move: from one engine's `bestmove` to the other engine's `go`."""

import random
import shlex
import sys
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import chess

from benches.runner.contenders import FIRST, SECOND

ECHO = Path(__file__).with_name("echo.py")
Entry = tuple[int, int, int]


def long_game(plies: int) -> list[str]:
    """A game of random moves that is not over after `plies` plies."""
    rng = random.Random(1)
    while True:
        board = chess.Board()
        while board.ply() < plies and not board.is_game_over(claim_draw=True):
            board.push(rng.choice(list(board.legal_moves)))
        if board.ply() == plies and not board.is_game_over(claim_draw=True):
            return [move.uci() for move in board.move_stack]


def echoes(folder: Path, plies: int, seconds: float) -> tuple[Path, Path]:
    """Two programs that play a long game by rote, each move after so many seconds."""
    moves = folder / "moves"
    moves.write_text(" ".join(long_game(plies)))
    (folder / "log").mkdir()
    return _echo(folder, FIRST, seconds), _echo(folder, SECOND, seconds)


def _echo(folder: Path, name: str, seconds: float) -> Path:
    path = folder / name
    words = [sys.executable, "-S", "-E", ECHO, folder / "moves", folder / "log", seconds, name]
    path.write_text(f"#!/bin/sh\nexec {shlex.join(map(str, words))}\n")
    path.chmod(0o755)
    return path


def delays(folder: Path) -> list[float]:
    """Microseconds of every move but the first of a game, from the logs of a match's engines."""
    firsts, seconds = (
        [_entries(file) for file in sorted((folder / "log").glob(f"{name}-*"))]
        for name in (FIRST, SECOND)
    )
    found: list[float] = []
    for one in firsts:
        candidates = [_between(one, other) for other in seconds]
        best: list[float] = min(candidates, key=_implausibility)
        found += best
    return found


def _entries(log: Path) -> list[Entry]:
    numbers = array("q")
    numbers.frombytes(log.read_bytes())
    return list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))


def _between(one: list[Entry], other: list[Entry]) -> list[float]:
    return list(_waits(sorted(one + other, key=lambda entry: entry[1])))


def _waits(entries: list[Entry]) -> Iterator[float]:
    for (ply, _, answered), (next_ply, asked, _) in pairwise(entries):
        if next_ply == ply + 1:
            yield (asked - answered) / 1000
        elif next_ply:
            yield -1.0


def _implausibility(waits: list[float]) -> tuple[int, float]:
    """Engines of two different games do not take turns: they are asked before the other answers."""
    return sum(wait < 0 for wait in waits), sum(waits)
